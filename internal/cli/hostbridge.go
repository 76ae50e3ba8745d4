package cli

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/policy"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// The environment variables of the command line.
const (
	envHome      = "HOME"
	envLogLevel  = "AKK_LOG_LEVEL"
	envLogFormat = "AKK_LOG_FORMAT"
)

// HostBridgeOptions is a checked command line of host-bridge.
type HostBridgeOptions struct {
	// Admitted is the Profile, with the trusted session, after every start check.
	Admitted *profile.Admitted
	// Host and HostVersion are the flags; they satisfy the Profile.
	Host, HostVersion string
	StoreDir          string // absolute
	RuntimeDir        string // absolute, or "" for a private directory that the Bridge makes
	LogLevel          slog.Level
	LogJSON           bool // one JSON object a line on stderr, in place of text
	// Extended adds the tools that only an administrator switches on.
	Extended bool
	// Toolsets are the families of tools that are served; at least one.
	Toolsets []Toolset
	// TmuxSockets limits the Bridge to these tmux servers; none means all of this user.
	TmuxSockets []string // absolute
	// Policy is what an administrator's file approves; the zero one approves nothing.
	Policy policy.Policy
}

func newHostBridge(deps Deps) *cobra.Command {
	var selection, host, hostVersion, storeDir, runtimeDir, logLevel, logFormat, autoApprove, tools, toolsets onceFlag
	var sockets []string
	cmd := &cobra.Command{
		Use:   "host-bridge",
		Short: "Serve the tools to the Host that started it, as MCP over stdio",
		Long: "Run the foreground Bridge of one Host. The Host starts it as an MCP server over stdio and owns it: the Bridge\n" +
			"ends when its stdin closes or on SIGINT, SIGTERM or SIGHUP. stdout carries only MCP frames; logs go to stderr.\n" +
			"Every check of `doctor` is made before the first frame; a failure prints one line and exits 1.",
		Example: "  MY_AGENT_SESSION_ID=... agent-knock-knock host-bridge \\\n" +
			"    --profile /absolute/path/to/my-agent.json --host my-agent --host-version 1.8.0",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireFlags(cmd, "profile", "host", "host-version"); err != nil {
				return err
			}
			o := HostBridgeOptions{Host: host.value, HostVersion: hostVersion.value}
			var err error
			if o.LogLevel, err = parseLevel(cmd, logLevel.value, deps); err != nil {
				return err
			}
			if o.LogJSON, err = parseFormat(cmd, logFormat.value, deps); err != nil {
				return err
			}
			if o.StoreDir, err = storePath(storeDir.value, deps); err != nil {
				return err
			}
			if o.RuntimeDir, err = absolute(runtimeDir.value); err != nil {
				return err
			}
			if o.TmuxSockets, err = socketPaths(sockets); err != nil {
				return err
			}
			if o.Extended, err = toolSet(cmd, tools.value); err != nil {
				return err
			}
			if o.Toolsets, err = parseToolsets(cmd, toolsets.value); err != nil {
				return err
			}
			if o.Policy, err = readPolicy(autoApprove.value, deps); err != nil {
				return err
			}
			if o.Admitted, err = profile.Admit(selection.value, host.value, hostVersion.value, deps.LookupEnv); err != nil {
				return err
			}
			return deps.HostBridge(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.Var(&selection, "profile", "Host Profile: a path or a built-in id (required)")
	f.Var(&host, "host", "exact Host id (required)")
	f.Var(&hostVersion, "host-version", "exact SemVer version of the Host (required)")
	f.Var(&storeDir, "store-dir", "Store directory (default ~/.agent-knock-knock/store)")
	f.Var(&runtimeDir, "runtime-dir", "directory for the sockets of this run (default: a private temporary one)")
	f.Var(&logLevel, "log-level", "debug, info, warn or error (default $AKK_LOG_LEVEL, then info)")
	f.Var(&logFormat, "log-format", "text or json, one object a line with the Bridge's id (default $AKK_LOG_FORMAT, then text)")
	f.Var(&autoApprove, "auto-approve", "file of commands that are approved without asking (default: none); writable by its owner only")
	f.Var(&tools, "tools", "default: the 19 tools; extended: five more that reach deeper into an agent's own controls")
	f.Var(&toolsets, "toolsets", "terminal, coordination or both with a comma; coordination is the ledger, kept in the Store (default terminal)")
	addSocketFlag(cmd, &sockets)
	return cmd
}

// toolSet reads --tools.
func toolSet(cmd *cobra.Command, value string) (extended bool, err error) {
	switch value {
	case "", "default":
		return false, nil
	case "extended":
		return true, nil
	}
	return false, usage(cmd, "--tools must be default or extended")
}

func addSocketFlag(cmd *cobra.Command, value *[]string) {
	cmd.Flags().StringArrayVar(value, "tmux-socket", nil, "look at the tmux server of this socket only; may be repeated (default: every server of this user)")
}

// socketPaths makes the given sockets absolute and refuses an empty one, which would mean
// "every server" by accident.
func socketPaths(given []string) ([]string, error) {
	out := make([]string, 0, len(given))
	for _, s := range given {
		if s == "" {
			return nil, fault.New(CodeUsage, "cli", "--tmux-socket is empty").WithHint("name the socket, or leave the flag out for all servers")
		}
		full, err := absolute(s)
		if err != nil {
			return nil, err
		}
		out = append(out, full)
	}
	return out, nil
}

func parseLevel(cmd *cobra.Command, flag string, deps Deps) (slog.Level, error) {
	text, source := flag, "--log-level"
	if text == "" {
		text, _ = deps.LookupEnv(envLogLevel)
		source = envLogLevel
	}
	switch strings.ToLower(text) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, usage(cmd, "%s must be debug, info, warn or error", source)
}

func parseFormat(cmd *cobra.Command, flag string, deps Deps) (asJSON bool, err error) {
	text, source := flag, "--log-format"
	if text == "" {
		text, _ = deps.LookupEnv(envLogFormat)
		source = envLogFormat
	}
	switch strings.ToLower(text) {
	case "", "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, usage(cmd, "%s must be text or json", source)
}

// storePath is the absolute Store directory: the flag's, or the one below the home.
func storePath(flag string, deps Deps) (string, error) {
	if flag != "" {
		return absolute(flag)
	}
	home, _ := deps.LookupEnv(envHome)
	if !filepath.IsAbs(home) {
		return "", fault.New(CodeUsage, "cli", "HOME is not an absolute path, so there is no default Store directory").
			WithHint("pass --store-dir")
	}
	return filepath.Join(home, "."+Name, "store"), nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fault.Wrap(err, CodeUsage, "cli", "a relative directory cannot be resolved").WithHint("pass an absolute path")
	}
	return full, nil
}

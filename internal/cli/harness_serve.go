package cli

import (
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
)

// serverAlias is the name under which the program answers as `harness serve`.
const serverAlias = "hacpd"

// HarnessServeOptions is a checked command line of harness serve.
type HarnessServeOptions struct {
	Config     config.Config
	ConfigPath string // of the file that was read, "" for none
	Supervised bool   // end when stdin ends
	LogLevel   slog.Level
}

// Arguments returns the command line of argv, which begins with the program's name: called
// as hacpd the program is the harness server.
func Arguments(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if filepath.Base(argv[0]) == serverAlias {
		return append([]string{"harness", "serve"}, argv[1:]...)
	}
	return argv[1:]
}

// exitStatus is the exit code of a failure.
func exitStatus(err error) int {
	switch fault.CodeOf(err) {
	case CodeUnchecked:
		return 2
	case harness.ServerAlreadyRunning:
		return 3
	}
	return 1
}

func newHarness(deps Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "harness",
		Short: "Run headless agents behind one local server",
		Long: "Headless agents speak the Agent Client Protocol. A server on a loopback address runs them; clients start it when it is\n" +
			"needed, share it and may leave it.",
		Example: "  agent-knock-knock harness serve",
		Args:    cobra.ArbitraryArgs,
		RunE:    needCommand,
	}
	if deps.HarnessServe != nil {
		cmd.AddCommand(newHarnessServe(deps))
	}
	if deps.HarnessMCP != nil {
		cmd.AddCommand(newHarnessMCP(deps))
	}
	if deps.HarnessSupervise != nil {
		cmd.AddCommand(newHarnessSupervise(deps))
	}
	return cmd
}

func newHarnessServe(deps Deps) *cobra.Command {
	var file, listen, stateDir, logLevel onceFlag
	var supervised bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve headless agents on a loopback address",
		Long: "Serve the harness API (POST /api/<operation>) until SIGTERM or SIGINT; with --supervised also until stdin ends. All agents\n" +
			"end with the server. Clients prove themselves with the token in the state directory. Called as hacpd the program does the same.",
		Example: "  agent-knock-knock harness serve\n" +
			"  agent-knock-knock harness serve --config ./harness.yaml --listen 127.0.0.1:9000",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, _ := deps.LookupEnv("HOME")
			if home == "" && stateDir.value == "" {
				return usage(cmd, "HOME is not set; pass --state-dir")
			}
			c, path, err := config.Load(config.Source{Flag: file.value, LookupEnv: deps.LookupEnv, Home: home})
			if err != nil {
				return err
			}
			if listen.set {
				c.Listen = listen.value
			}
			if stateDir.set {
				if c.StateDir, err = absolute(stateDir.value); err != nil {
					return err
				}
			}
			if c, err = c.Check(home); err != nil {
				return err
			}
			level, err := parseLevel(cmd, logLevel.value, deps)
			if err != nil {
				return err
			}
			return deps.HarnessServe(cmd.Context(), HarnessServeOptions{Config: c, ConfigPath: path, Supervised: supervised, LogLevel: level}, cmd.InOrStdin(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.Var(&file, "config", "YAML file (default $"+config.EnvFile+", $"+config.EnvFilePeer+", then harness.yaml in the user's configuration)")
	f.Var(&listen, "listen", "loopback address and port (default "+config.DefaultListen+")")
	f.Var(&stateDir, "state-dir", "directory of records, lock and token (default ~/.agent-knock-knock/harness)")
	f.BoolVar(&supervised, "supervised", false, "end when stdin ends: the starter is gone")
	f.Var(&logLevel, "log-level", "debug, info, warn or error (default $AKK_LOG_LEVEL, then info)")
	return cmd
}

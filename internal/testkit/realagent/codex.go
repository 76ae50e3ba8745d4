package realagent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// codexConfig is a Codex that works against the model server alone: no login, no update
// check, no statistics, quick failures, and a title that shows state and thread.
const codexConfig = `model = "fake-model"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = "%[1]s/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 60000

[analytics]
enabled = false

[features]
daemon_auto_start = %[2]t

[tui]
%[5]sanimations = false
show_tooltips = false

[projects."%[3]s"]
trust_level = "trusted"

%[4]s
`

const titleConfig = "terminal_title = [\"activity\", \"run-state\", \"thread-id\"]\n"

// MCPServer is the part of config.toml that gives Codex an MCP server whose tools it may
// call without asking. The model sees them in the namespace "mcp__<name>". Codex passes
// none of its own environment on: env (NAME=value) is all that the server gets besides
// PATH, HOME and the like.
func MCPServer(name string, env []string, command string, args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.%s]\ncommand = %q\nargs = [", name, command)
	for _, arg := range args {
		fmt.Fprintf(&b, "%q, ", arg)
	}
	fmt.Fprintf(&b, "]\ndefault_tools_approval_mode = \"approve\"\nstartup_timeout_sec = 60\n\n[mcp_servers.%s.env]\n", name)
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		fmt.Fprintf(&b, "%s = %q\n", k, v)
	}
	return b.String()
}

func (a *Agent) prepareCodex(ctx context.Context) (command []string, err error) {
	command = []string{filepath.Join(a.Bin, "codex")}
	if a.Beside != nil {
		if a.Mode == CodexRemote {
			command = append(command, "--remote", a.ServerURL)
		}
		return command, nil
	}
	title := titleConfig
	if a.PlainTitle {
		title = ""
	}
	config := fmt.Sprintf(codexConfig, a.ModelURL, a.Mode == CodexDaemon, a.Cwd, a.Config, title)
	if err := os.WriteFile(filepath.Join(a.AgentHome, "config.toml"), []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("realagent: %w", err)
	}
	switch a.Mode {
	case CodexRemote:
		if err := a.appServer(ctx); err != nil {
			return nil, err
		}
		command = append(command, "--remote", a.ServerURL)
	case CodexDaemon:
		a.ServerURL = "unix://" + filepath.Join(a.AgentHome, "app-server-control", "app-server-control.sock")
	}
	return command, nil
}

// Exec runs `codex exec` with one prompt in a home of its own in o.Dir, and returns what it
// printed: one JSON event a line. Of o also Bin, ModelURL, Env, Config and CaseID are used.
func Exec(ctx context.Context, o Options, prompt string) ([]byte, error) {
	o.Mode = CodexEmbedded
	a := newAgent(o)
	if err := a.folders(); err != nil {
		return nil, err
	}
	if _, err := a.prepareCodex(ctx); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(a.Bin, "codex"), "exec", "--json", "--skip-git-repo-check", prompt)
	cmd.Env, cmd.Dir = a.env(), a.Cwd
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("realagent: codex exec: %w: %s", err, stderr.String())
	}
	return out, nil
}

// appServer starts the server of the remote mode and waits until it accepts connections.
// Down ends it by its case id, as it ends what the server starts.
func (a *Agent) appServer(ctx context.Context) error {
	socket := filepath.Join(a.Dir, "s.sock")
	log, err := os.Create(filepath.Join(a.Dir, "app-server.log"))
	if err != nil {
		return fmt.Errorf("realagent: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(a.Bin, "codex"), "app-server", "--listen", "unix://"+socket)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = a.env(), a.Cwd, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("realagent: app-server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the server, which Down kills
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			a.ServerURL = "unix://" + socket
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("realagent: app-server ended: %w; see %s", err, log.Name())
		case <-ctx.Done():
			return fmt.Errorf("realagent: app-server does not listen: %w", ctx.Err())
		case <-time.After(readyPoll):
		}
	}
}

// controlSocket is where the shared server really listens: in a folder of the machine, to
// which a link in its home leads. "" when it does not run.
func (a *Agent) controlSocket() string {
	socket, err := os.Readlink(strings.TrimPrefix(a.ServerURL, "unix://"))
	if err != nil || !strings.HasPrefix(filepath.Base(filepath.Dir(socket)), "codex-daemon-") {
		return ""
	}
	return socket
}

// removeSocket removes what the shared server leaves there.
func removeSocket(socket string) {
	if socket != "" {
		os.Remove(socket) // an error: the server has removed it
		os.Remove(socket + ".lock")
	}
}

// codexReady: the title names state and thread, and the composer has the cursor. A plain
// title says nothing, and that of an old version little; then the composer must show that
// it is empty.
func (a *Agent) codexReady(ctx context.Context) (bool, error) {
	out, err := a.tmux(ctx, "display-message", "-p", "-t", a.PaneID, "#{cursor_flag} #{cursor_x} #{pane_title}")
	if err != nil || !strings.HasPrefix(out, "1 2 ") {
		return false, err
	}
	if !a.PlainTitle && a.Launcher == "" {
		return strings.HasPrefix(out, "1 2 Ready | "), nil
	}
	screen, err := a.tmux(ctx, "capture-pane", "-p", "-t", a.PaneID)
	return strings.Contains(screen, "\n› ") && !strings.Contains(screen, "loading "), err
}

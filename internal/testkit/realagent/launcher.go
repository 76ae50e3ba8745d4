package realagent

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// launch lets the command line of a Launcher start the agent, as a person would:
// `LAUNCHER pane codex …`, with the agent's folder first on PATH.
func (a *Agent) launch(ctx context.Context) error {
	argv := append([]string{"pane", a.Mode.Kind(), "--json", "--tmux-socket", a.Socket, "--name", a.Session, "--dir", a.Cwd}, a.LaunchFlags...)
	if len(a.Args) > 0 {
		argv = append(append(argv, "--"), a.Args...)
	}
	cmd := exec.CommandContext(ctx, a.Launcher, argv...)
	for _, kv := range a.env() {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			kv = "PATH=" + a.Bin + string(filepath.ListSeparator) + path
		}
		cmd.Env = append(cmd.Env, kv)
	}
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if exit, ok := err.(*exec.ExitError); ok {
			said = string(exit.Stderr)
		}
		return fmt.Errorf("realagent: %s %s: %w: %s", filepath.Base(a.Launcher), strings.Join(argv[:2], " "), err, said)
	}
	if err := json.Unmarshal(out, &a.Launched); err != nil {
		return fmt.Errorf("realagent: the launcher printed %q: %w", out, err)
	}
	a.PaneID = a.Launched.PaneID
	pid, err := a.tmux(ctx, "display-message", "-p", "-t", a.PaneID, "#{pane_pid}")
	if err != nil {
		return err
	}
	a.PanePID, err = strconv.Atoi(strings.TrimSpace(pid))
	return err
}

// Launched is what a launcher says.
type Launched struct {
	Version  string   `json:"agent_version"`
	Mode     string   `json:"mode"`
	PaneID   string   `json:"pane_id"`
	ThreadID string   `json:"native_thread_id"`
	Commands []string `json:"commands"`
	Notes    []string `json:"notes"`
}

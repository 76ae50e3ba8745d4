package pane

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// terminal is the person's tmux: unlike package tmux it may start a server, because a
// person asks for it, and so it gets the person's environment.
type terminal struct {
	path   string
	socket string // given by the person; "" for tmux's own choice
	env    []string
	inside bool // the person sits in a pane of that very server
}

func findTmux(r Request) (terminal, error) {
	path, err := tmux.Program()
	if err != nil {
		return terminal{}, err
	}
	t := terminal{path: path, socket: r.Socket, env: r.Env}
	own, _, _ := strings.Cut(lookup(r.Env, "TMUX"), ",")
	t.inside = own != "" && (t.socket == "" || sameFile(own, t.socket))
	return t, nil
}

func sameFile(a, b string) bool {
	if real, err := filepath.EvalSymlinks(a); err == nil {
		a = real
	}
	if real, err := filepath.EvalSymlinks(b); err == nil {
		b = real
	}
	return a == b
}

// argv is a tmux command line as a person would type it.
func (t terminal) argv(args ...string) []string {
	argv := []string{"tmux"}
	if t.socket != "" {
		argv = append(argv, "-S", t.socket)
	}
	return append(argv, args...)
}

// run runs one tmux command and returns what it printed.
func (t terminal) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path, append([]string{"-u"}, t.argv(args...)[1:]...)...)
	cmd.Env = t.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killGrace
	out, failed := &head{max: maxAnswer}, &head{max: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, failed
	if err := cmd.Run(); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "pane.tmux", "tmux %s fails: %s", args[0], strings.TrimSpace(failed.buf.String()))
	}
	return strings.TrimSuffix(out.buf.String(), "\n"), nil
}

// has reports whether a session of exactly this name exists. No server means no session.
func (t terminal) has(ctx context.Context, name string) bool {
	_, err := t.run(ctx, "has-session", "-t", "="+name)
	return err == nil
}

// attach is how a person gets to the session.
func (t terminal) attach(name string) []string {
	if t.inside {
		return t.argv("switch-client", "-t", "="+name)
	}
	return t.argv("attach-session", "-t", "="+name)
}

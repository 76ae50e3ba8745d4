// Package realagent brings up real coding agents, offline, for end-to-end tests and
// demonstrations: Codex and Claude Code in a tmux pane, with a home of their own, against
// a scripted model server on this machine.
//
// It writes only into the folder it is given and into the installation cache, and uses no
// account and no key. What it starts carries CASE_ID in its environment, and Down ends
// all of it, the agents' own background servers too. It knows the agents' configuration;
// the product it does not know.
package realagent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// Mode is how an agent runs.
type Mode string

// The modes. Claude Code has only the plain one.
const (
	CodexEmbedded Mode = "embedded" // everything in the pane's process
	CodexDaemon   Mode = "daemon"   // the pane is a client of the shared background server
	CodexRemote   Mode = "remote"   // the pane is a client of a server that Up starts
	ClaudePlain   Mode = "claude"
)

// Kind is the agent's name: codex or claude.
func (m Mode) Kind() string {
	if m == ClaudePlain {
		return "claude"
	}
	return "codex"
}

// Options say what to bring up.
type Options struct {
	Mode     Mode
	Bin      string   // folder of the executables, see Install
	Dir      string   // everything of this agent goes here; a short path
	Socket   string   // tmux server; it is started if it does not run
	Session  string   // tmux session to make
	ModelURL string   // root of the model server
	Env      []string // further NAME=value of the agent
	Config   string   // further lines for the end of config.toml (Codex)
	CaseID   string   // CASE_ID of everything that is started; a random one by default
	Args     []string // further arguments of the agent
	// Launcher is the executable whose `pane` command starts the agent, with LaunchFlags;
	// "" starts it directly, as a person does by hand.
	Launcher    string
	LaunchFlags []string
	// PlainTitle leaves Codex its own pane title, which does not name the thread.
	PlainTitle bool
	// Beside brings the agent up in the home and the working folder of another one that
	// is up, of the same mode; Config and PlainTitle are then that one's.
	Beside *Agent
}

// Agent is an agent that is up.
type Agent struct {
	Options
	Home      string // HOME
	AgentHome string // ~/.codex or ~/.claude
	Cwd       string
	PaneID    string
	PanePID   int      // of the pane's first process; with a Launcher that is its wrapper
	Launched  Launched // what the Launcher said
	ServerURL string   // Codex: unix:// address of the app-server; "" when embedded
}

const (
	readyLimit = 60 * time.Second // from nothing to a composer, on a loaded machine
	readyPoll  = 50 * time.Millisecond
	stopLimit  = 10 * time.Second
	// key is what the agents send as their API key; the model server looks at no key.
	key = "dummy-key-000000000000"
)

// Up brings an agent up and waits until it takes a prompt.
func Up(ctx context.Context, o Options) (*Agent, error) {
	a := newAgent(o)
	if err := a.up(ctx); err != nil {
		return nil, errors.Join(err, a.Down())
	}
	return a, nil
}

func newAgent(o Options) *Agent {
	if o.CaseID == "" {
		o.CaseID = rand.Text()
	}
	a := &Agent{Options: o, Home: filepath.Join(o.Dir, "home"), Cwd: filepath.Join(o.Dir, "proj")}
	a.AgentHome = filepath.Join(a.Home, "."+o.Mode.Kind())
	if b := o.Beside; b != nil {
		a.Dir, a.Home, a.AgentHome, a.Cwd, a.ServerURL, a.PlainTitle = b.Dir, b.Home, b.AgentHome, b.Cwd, b.ServerURL, b.PlainTitle
	}
	return a
}

func (a *Agent) folders() error {
	for _, dir := range []string{a.AgentHome, a.Cwd, filepath.Join(a.Dir, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("realagent: %w", err)
		}
	}
	return nil
}

func (a *Agent) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := a.folders(); err != nil {
		return err
	}
	if err := a.project(ctx); err != nil {
		return err
	}
	var command []string
	var err error
	if a.Mode == ClaudePlain {
		command, err = a.prepareClaude()
	} else {
		command, err = a.prepareCodex(ctx)
	}
	if err != nil {
		return err
	}
	if a.Launcher != "" {
		err = a.launch(ctx)
	} else {
		err = a.pane(ctx, append(command, a.Args...))
	}
	if err != nil {
		return err
	}
	ready := a.codexReady
	if a.Mode == ClaudePlain {
		ready = a.claudeReady
	}
	return a.waitReady(ctx, ready)
}

// project makes the working folder a git repository, where agents behave as at work.
func (a *Agent) project(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(a.Cwd, ".git")); err == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(a.Cwd, "README.md"), []byte("hello\n"), 0o644); err != nil {
		return fmt.Errorf("realagent: %w", err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "-m", "init"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = a.Cwd
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("realagent: git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// env is the environment of everything that belongs to the agent. TMPDIR must not be a
// parent of HOME: Codex refuses to put its helpers under a temporary folder.
func (a *Agent) env() []string {
	env := []string{"HOME=" + a.Home, "TMPDIR=" + filepath.Join(a.Dir, "tmp"), fakehost.EnvCase + "=" + a.CaseID,
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	if a.Mode == ClaudePlain {
		env = append(env, "ANTHROPIC_BASE_URL="+a.ModelURL, "ANTHROPIC_API_KEY="+key, "DISABLE_TELEMETRY=1",
			"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	}
	return append(env, a.Env...)
}

// pane starts the command in a new session. The pane's first process is the agent: it
// replaces the shell.
func (a *Agent) pane(ctx context.Context, command []string) error {
	words := []string{"exec", "env", "-u", "CODEX_HOME", "-u", "CLAUDE_CONFIG_DIR", "-u", "ANTHROPIC_AUTH_TOKEN",
		"-u", "CLAUDECODE", "-u", "CLAUDE_CODE_CHILD_SESSION", "-u", "CLAUDE_CODE_SESSION_ID"}
	for _, w := range append(a.env(), command...) {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	out, err := a.tmux(ctx, "-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_id} #{pane_pid}",
		"-s", a.Session, "-x", "120", "-y", "40", "-c", a.Cwd, strings.Join(words, " "))
	if err != nil {
		return err
	}
	id, pid, _ := strings.Cut(strings.TrimSpace(out), " ")
	a.PaneID = id
	if a.PanePID, err = strconv.Atoi(pid); err != nil {
		return fmt.Errorf("realagent: tmux said %q", out)
	}
	return nil
}

func (a *Agent) tmux(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", a.Socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("realagent: tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// waitReady polls until ready says so: agents have no better signal before they are up.
func (a *Agent) waitReady(ctx context.Context, ready func(context.Context) (bool, error)) error {
	for {
		ok, err := ready(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			screen, _ := a.tmux(context.WithoutCancel(ctx), "capture-pane", "-p", "-t", a.PaneID)
			return fmt.Errorf("realagent: %s is not ready: %w, %w; screen:\n%s", a.Mode, ctx.Err(), err, screen)
		case <-time.After(readyPoll):
		}
	}
}

// Down ends the pane's session and every process that carries the case id. It may be
// called again.
func (a *Agent) Down() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var failed error
	if a.Mode == CodexDaemon && a.Beside == nil {
		defer removeSocket(a.controlSocket())
		cmd := exec.CommandContext(ctx, filepath.Join(a.Bin, "codex"), "app-server", "daemon", "stop")
		cmd.Env, cmd.Dir = a.env(), a.Dir
		failed = cmd.Run() // what is left is killed below
	}
	if a.PaneID != "" {
		a.tmux(ctx, "kill-session", "-t", "="+a.Session) // an error: it has ended by itself
	}
	for {
		left, err := fakehost.Survivors(a.CaseID)
		if err != nil {
			return errors.Join(failed, err)
		}
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			syscall.Kill(p.PID, syscall.SIGKILL) // an error: it has ended
		}
		select {
		case <-ctx.Done():
			return errors.Join(failed, fmt.Errorf("realagent: still alive: %v", left))
		case <-time.After(readyPoll):
		}
	}
}

// String describes the agent for a person.
func (a *Agent) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent:   %s (%s)\n", a.Mode.Kind(), a.Mode)
	fmt.Fprintf(&b, "attach:  tmux -S %s attach -t %s\n", a.Socket, a.Session)
	fmt.Fprintf(&b, "pane:    %s, pid %d\n", a.PaneID, a.PanePID)
	fmt.Fprintf(&b, "home:    %s\n", a.Home)
	fmt.Fprintf(&b, "cwd:     %s\n", a.Cwd)
	if a.ServerURL != "" {
		fmt.Fprintf(&b, "server:  %s\n", a.ServerURL)
	}
	return b.String()
}

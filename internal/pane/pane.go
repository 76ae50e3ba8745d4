// Package pane lets a person start a coding agent in tmux in the mode that can be driven
// best, and says exactly what it ran.
//
// A small wrapper is the first process of the pane: it starts what the agent needs (for
// Codex an app server of its own), then the agent's terminal program in the foreground,
// and ends everything of ours when the pane or the agent ends. What the wrapper is to run
// is handed to it over a private socket, so no environment of the person is stored or
// shown anywhere.
//
// It knows how the agents are started. It must never know a Turn, the Store or a Host,
// and it types nothing into a pane.
package pane

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pattern"
)

// The agents and their modes.
const (
	Codex  = "codex"
	Claude = "claude"

	ModeRemote      = codex.ModeRemote   // Codex on a server of its own, which takes requests and answers
	ModeEmbedded    = codex.ModeEmbedded // Codex alone: driven by keys
	ModeInteractive = "interactive"      // Claude Code
)

// Agents are the agents that can be started, in the order in which help names them.
var Agents = []string{Codex, Claude}

// Request is what a person wants.
type Request struct {
	Agent  string
	Name   string   // tmux session; "" takes a free one
	Dir    string   // working directory; "" is the current one
	Hooks  bool     // Claude only: hooks that wake the monitors
	Args   []string // further arguments of the agent
	Socket string   // tmux server; "" is the one that tmux itself would take
	Env    []string // the person's environment, NAME=value
	Self   string   // our own executable, which the pane runs as the wrapper
}

// Report is what was started.
type Report struct {
	Agent     string   `json:"agent"`
	Version   string   `json:"agent_version,omitempty"`
	Mode      string   `json:"mode"`
	Session   string   `json:"tmux_session"`
	Socket    string   `json:"tmux_socket"`
	PaneID    string   `json:"pane_id"`
	Workspace string   `json:"workspace"`
	ThreadID  string   `json:"native_thread_id,omitempty"`
	Commands  []string `json:"commands"` // what was run, as shell lines
	Notes     []string `json:"notes"`    // what is less than it could be, and why
	Attach    string   `json:"attach"`   // a shell line
	AttachArg []string `json:"-"`        // the same as an argv
}

// The bounds of a start.
const (
	askLimit   = 30 * time.Second // one question to the agent's program, such as its version
	upLimit    = 60 * time.Second // from tmux to the agent's terminal program
	maxArgs    = 64
	maxArgSize = 8 << 10
	maxName    = 64
)

var sessionName = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// Start starts the agent and returns when its terminal program runs. After an error
// nothing of it is left.
func Start(ctx context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	t, err := findTmux(r)
	if err != nil {
		return Report{}, err
	}
	job, report, err := r.plan(ctx)
	if err != nil {
		return Report{}, err
	}
	return launch(ctx, t, r, job, report)
}

// check refuses a request before anything is run, and makes the directory absolute.
func (r *Request) check() error {
	const op = "pane.check"
	if !slices.Contains(Agents, r.Agent) {
		return fault.New(fault.Invalid, op, "there is no agent %q", r.Agent).WithHint("use %s", strings.Join(Agents, " or "))
	}
	if r.Name != "" && (len(r.Name) > maxName || !sessionName.MatchString(r.Name)) {
		return fault.New(fault.Invalid, op, "%q cannot be the name of a tmux session here", r.Name).
			WithHint("use letters, digits, _ and -, at most %d", maxName)
	}
	if r.Hooks && r.Agent != Claude {
		return fault.New(fault.Invalid, op, "--hooks is for claude").WithHint("leave it out: Codex on its own server needs none")
	}
	if len(r.Args) > maxArgs {
		return fault.New(fault.Invalid, op, "more than %d arguments for the agent", maxArgs).WithHint("put them into the agent's own configuration")
	}
	for _, a := range r.Args {
		if len(a) > maxArgSize || strings.ContainsRune(a, 0) {
			return fault.New(fault.Invalid, op, "an argument for the agent is too long").WithHint("type long prompts into the agent")
		}
	}
	return r.checkDir()
}

func (r *Request) checkDir() error {
	const op = "pane.dir"
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, op, "the working directory cannot be told").WithHint("pass --dir with an absolute path")
	}
	st, err := os.Stat(dir)
	switch {
	case strings.ContainsFunc(dir, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fault.New(fault.Invalid, op, "the working directory's name has control characters").WithHint("rename it")
	case os.IsNotExist(err):
		return fault.New(fault.NotFound, op, "there is no directory %s", dir).WithHint("create it, or pass another --dir")
	case err != nil:
		return fault.Wrap(err, fault.Invalid, op, "the directory %s cannot be read", dir).WithHint("pass another --dir")
	case !st.IsDir():
		return fault.New(fault.Invalid, op, "%s is not a directory", dir).WithHint("pass the project's directory as --dir")
	}
	r.Dir = dir
	return nil
}

// plan asks the agent's program what it can do, and says how it is started. Nothing is
// changed yet.
func (r Request) plan(ctx context.Context) (job, Report, error) {
	path, err := r.program()
	if err != nil {
		return job{}, Report{}, err
	}
	j := job{Agent: r.Agent, Path: path, Dir: r.Dir, Env: agentEnv(r.Env)}
	report := Report{Agent: r.Agent, Workspace: r.Dir, Notes: []string{}}
	p := program{path: path, env: j.Env, dir: r.Dir}
	version, err := p.version(ctx)
	if err != nil {
		return job{}, Report{}, err
	}
	report.Version = version
	help, err := p.ask(ctx, "--help")
	if err != nil {
		return job{}, Report{}, err
	}
	if r.Agent == Codex {
		err = planCodex(r, help, &j, &report)
	} else {
		err = planClaude(r, help, uuid.NewString, &j, &report)
	}
	return j, report, err
}

// program finds the agent's executable on the person's PATH.
func (r Request) program() (string, error) {
	for _, dir := range filepath.SplitList(lookup(r.Env, "PATH")) {
		path := filepath.Join(dir, r.Agent)
		if !filepath.IsAbs(path) {
			continue
		}
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	hint := "install it (npm install -g @openai/codex), or put it on PATH"
	if r.Agent == Claude {
		hint = "install it (npm install -g @anthropic-ai/claude-code), or put it on PATH"
	}
	return "", fault.New(fault.NotFound, "pane.program", "there is no %s on PATH", r.Agent).WithHint("%s", hint)
}

func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// notTheAgents are variables that belong to the terminal of the person, or would tell the
// agent that another agent runs it.
var notTheAgents = []string{"TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES", "PWD", "OLDPWD", "_",
	"CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT"}

// agentEnv is the person's environment for the agent. What belongs to the pane is added
// there.
func agentEnv(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if ok && name != "" && !slices.Contains(notTheAgents, name) {
			out = append(out, kv)
		}
	}
	return out
}

// Package codex is the adapter for OpenAI Codex CLI: which process is its terminal
// program, which thread a pane shows, what a screen means, and what the rollout file and
// the app server say of a turn.
//
// It owns everything that is particular to Codex; versions, markers and record names are
// data in data.go. It must never know a Turn's rules, the Store or a Host, and it types
// nothing: the one thing it submits is turn/start on the agent's own server.
package codex

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/agent/codex/screen"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Kind is the agent's name in ids and schemas.
const Kind = "codex"

// Options replaces the outside world in tests; the zero value is the real one.
type Options struct {
	Clock clock.Clock
	// Read returns one process with Args and Exe.
	Read func(pid int) (procinfo.Process, error)
	// Env returns one variable of a process's own environment.
	Env func(pid int, name string) (value string, ok bool, err error)
	// OpenFiles lists the regular files that a process holds open.
	OpenFiles func(ctx context.Context, pid int) ([]procinfo.File, error)
	// Processes lists the processes of this machine, with Args.
	Processes func(ctx context.Context) ([]procinfo.Process, error)
}

// Adapter implements [agent.Adapter] and [agent.Submitter]. It is safe for concurrent
// use; its state is a short cache of server answers and of versions.
type Adapter struct {
	clock     clock.Clock
	read      func(pid int) (procinfo.Process, error)
	env       func(pid int, name string) (string, bool, error)
	openFiles func(ctx context.Context, pid int) ([]procinfo.File, error)
	processes func(ctx context.Context) ([]procinfo.Process, error)

	servers  appserver.Cache
	mu       sync.Mutex
	versions map[string]string // executable → version
}

var (
	_ agent.Adapter   = (*Adapter)(nil)
	_ agent.Submitter = (*Adapter)(nil)
)

// New returns the adapter.
func New(o Options) *Adapter {
	a := &Adapter{clock: o.Clock, read: o.Read, env: o.Env, openFiles: o.OpenFiles, processes: o.Processes, versions: map[string]string{}}
	if a.clock == nil {
		a.clock = clock.System{}
	}
	if a.read == nil {
		a.read = procinfo.Read
	}
	if a.env == nil {
		a.env = procinfo.Env
	}
	if a.openFiles == nil {
		a.openFiles = procinfo.OpenFiles
	}
	if a.processes == nil {
		a.processes = allProcesses
	}
	return a
}

func allProcesses(ctx context.Context) ([]procinfo.Process, error) {
	table, err := procinfo.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return table.All(), nil
}

// Kind returns [Kind].
func (a *Adapter) Kind() string { return Kind }

// Match reports whether p is the native terminal program: not the node wrapper, not a
// server, daemon, batch subcommand or helper.
func (a *Adapter) Match(p procinfo.Process) bool {
	if len(p.Args) == 0 || filepath.Base(p.Args[0]) != known.ProgramName {
		return false
	}
	if exe := strings.TrimSuffix(filepath.Base(p.Exe), " (deleted)"); p.Exe != "" && !strings.HasPrefix(exe, known.ProgramName) {
		return false
	}
	for i := 1; i < len(p.Args); i++ {
		arg := p.Args[i]
		switch {
		case arg == "--":
			return true
		case known.BatchFlags[arg], strings.HasPrefix(arg, known.HelperFlagPrefix):
			return false
		case known.ValueFlags[arg]:
			i++
		case strings.HasPrefix(arg, "-"):
		default:
			return !known.BatchCommands[arg] // the first word is the subcommand or the prompt
		}
	}
	return true
}

// Screen classifies a capture, see [screen.Classify].
func (a *Adapter) Screen(c tmux.Capture) agent.Screen { return screen.Classify(c) }

// normalise is the form in which requests are compared: one kind of line end, and both
// ends trimmed, because Codex trims what is pasted (and keeps what comes by socket).
func normalise(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.TrimSpace(strings.ReplaceAll(text, "\r", "\n"))
}

// Limits above which a draft may not fit the composer's room in a small pane.
const tallLines, longChars = 8, 400

// Literal returns text so that a paste of it and one Enter are one plain prompt. Blanks
// that it adds at the ends are trimmed off again by Codex, as both ends always are.
//
//   - One blank in front makes "!…" and "/…" text. A paste of more than 1000 characters
//     that begins with a command-like "/word" is a command all the same: refused.
//   - One blank behind closes the completion list that a last word with "@" or "$" opens,
//     in which Enter would insert a file or a skill instead of sending.
//   - A text that a small pane could not show whole gets blanks behind it until Codex
//     shows it as a placeholder with its length, which [Adapter.DraftMatches] can prove.
//
// All of it was seen on 0.171. Words such as "exit" are plain text. Control characters
// are dropped by Codex, so a text with one cannot arrive unchanged: refused.
func (a *Adapter) Literal(text string) (string, error) {
	const op = "codex.literal"
	if !utf8.ValidString(text) {
		return "", fault.New(fault.Invalid, op, "the text is not valid UTF-8")
	}
	t := normalise(text)
	if t == "" {
		return "", fault.New(fault.Invalid, op, "the text is empty").WithHint("send a text with at least one visible character")
	}
	for _, r := range t {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return "", fault.New(fault.Invalid, op, "the text has the control character U+%04X, which Codex drops", r).
				WithHint("remove it and send again")
		}
	}
	n := utf8.RuneCountInString(t)
	if t[0] == '/' && n >= known.LongPaste && commandLike(t) {
		return "", fault.New(fault.Invalid, op, "the text begins with %q and is too long to be taken as plain text", firstWord(t)).
			WithHint("begin it with another word")
	}
	last := t[strings.LastIndexFunc(t, unicode.IsSpace)+1:]
	if strings.HasPrefix(last, "@") || strings.HasPrefix(last, "$") {
		t, n = t+" ", n+1
	}
	if t[0] == '!' || t[0] == '/' {
		t, n = " "+t, n+1
	}
	if n <= known.LongPaste && t[:min(2, len(t))] != " /" && (n > longChars || strings.Count(t, "\n") >= tallLines) {
		t += strings.Repeat(" ", known.LongPaste+1-n)
	}
	return t, nil
}

func firstWord(t string) string {
	if i := strings.IndexFunc(t, unicode.IsSpace); i >= 0 {
		t = t[:i]
	}
	return rollout.Clip(t, 40)
}

// commandLike reports whether the first word is "/word" and no path.
func commandLike(t string) bool { return !strings.Contains(firstWord(t)[1:], "/") }

// DraftMatches compares the composer with what was pasted, blind to white space because
// the composer wraps at the pane's width (case T19). A long paste is shown as a
// placeholder with its length in characters, which must be exact. A draft that shows
// only a part, as a composer higher than the pane does, is MatchUnknown.
func (a *Adapter) DraftMatches(s agent.Screen, pasted string) agent.Match {
	switch {
	case (s.State == agent.ScreenDialog || s.State == agent.ScreenApproval) && !s.OwnWords():
		return agent.MatchUnknown // Enter would go to the dialog
	case s.Composer == agent.ComposerEmpty:
		return agent.MatchNo
	case s.Composer != agent.ComposerDraft:
		return agent.MatchUnknown
	}
	shown, want := squeeze(s.Draft), squeeze(pasted)
	if shown == want {
		return agent.MatchYes
	}
	if m := known.PastedContent.FindStringSubmatch(shown); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n == utf8.RuneCountInString(lines(pasted)) {
			return agent.MatchYes
		}
		return agent.MatchNo
	}
	if shown != "" && strings.Contains(want, shown) {
		return agent.MatchUnknown
	}
	return agent.MatchNo
}

func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

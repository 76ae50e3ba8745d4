package discover

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// State is what all evidence together says of a terminal.
type State string

const (
	Idle     State = "idle" // proved by the screen AND by the agent's own records
	Working  State = "working"
	Awaiting State = "awaiting_approval" // or an answer, or another dialog
	Unknown  State = "unknown"
)

// Terminal is one coding agent in one tmux pane, seen now.
type Terminal struct {
	ID       ids.TerminalID
	Adapter  agent.Adapter
	Ref      agent.Ref
	Pane     tmux.Pane
	Native   agent.Native
	Screen   agent.Screen // zero when screens were not asked for
	Lines    []string     // the visible screen, when it was captured
	Conflict string       // why it cannot be told which agent the pane holds; "" when it can
	Remedy   string       // what a person can do about Conflict
}

// Key is the terminal's fence, see turn.TerminalKey.
func (t Terminal) Key() string { return turn.TerminalKey(t.Ref.Endpoint, t.Ref.Process) }

// Combine weighs the evidence. Whatever says "busy" wins over whatever says "idle", and
// idle needs both: a screen can look idle while an answer streams (Codex 0.171), a log
// can look idle while a dialog is open. Pure.
func Combine(n agent.Native, s agent.Screen) (State, string) {
	switch {
	case s.State == agent.ScreenApproval || s.State == agent.ScreenDialog:
		return Awaiting, orElse(s.Reason, "a dialog has the focus")
	case n.Activity == agent.ActivityWaiting:
		return Awaiting, orElse(n.Reason, "the agent waits for a decision")
	case n.Activity == agent.ActivityWorking:
		return Working, orElse(n.Reason, "the agent's records show a running task")
	case s.State == agent.ScreenWorking:
		return Working, orElse(s.Reason, "the screen shows a running task")
	case s.State != agent.ScreenIdle:
		return Unknown, orElse(s.Reason, "the screen is not recognised")
	case n.Activity != agent.ActivityIdle:
		return Unknown, orElse(n.Reason, "the agent's records do not say that it is idle")
	}
	return Idle, ""
}

// Ready returns nil when a task may be submitted to t now, or a coded error that says why
// not. For the keyboard the composer must be focused and empty; on a machine channel the
// human's draft does not matter.
func Ready(t Terminal) error {
	const op = "terminal.ready"
	refuse := func(hint, format string, args ...any) error {
		return fault.New(turn.CodeTerminal, op, format, args...).WithHint("%s", hint)
	}
	if t.Conflict != "" {
		return refuse(orElse(t.Remedy, "use a pane that holds one agent"), "%s is ambiguous: %s", t.ID, t.Conflict)
	}
	if t.Pane.Dead {
		return refuse("start the agent again", "the pane of %s is dead", t.ID)
	}
	state, reason := Combine(t.Native, t.Screen)
	if t.Native.Channel == turn.ChannelCodexSocket && state == Unknown && t.Native.Activity == agent.ActivityIdle {
		state = Idle // the server itself says that the thread is idle; the screen is only a view
	}
	switch state {
	case Working:
		return refuse("wait until it is idle, or watch it", "%s is working: %s", t.ID, reason)
	case Awaiting:
		return refuse("answer the dialog first", "%s waits for a decision: %s", t.ID, reason)
	case Unknown:
		return refuse("look at the pane; a task is only typed into a composer that is proved idle", "%s is not provably idle: %s", t.ID, reason)
	}
	if t.Native.Channel == turn.ChannelCodexSocket {
		return nil
	}
	if t.Pane.InMode {
		return refuse("leave the mode with q", "the pane of %s is scrolled back (copy mode)", t.ID)
	}
	switch t.Screen.Composer {
	case agent.ComposerEmpty:
		return nil
	case agent.ComposerDraft:
		return refuse("let the human send or clear it", "the composer of %s holds a draft", t.ID)
	}
	return refuse("look at the pane", "the composer of %s is not visible", t.ID)
}

func orElse(s, alt string) string {
	if strings.TrimSpace(s) == "" {
		return alt
	}
	return s
}

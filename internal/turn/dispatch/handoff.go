package dispatch

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// handoff is a human's switch of threads as list showed it: only that one may be acted on.
type handoff struct {
	terminal string // its key
	thread   string // shown now; "" for one that provably does not exist yet
}

// movedAway reports whether the terminal of a Turn provably shows another thread than the
// Turn's: a human went on to something else in the same pane. Pure.
func movedAway(t turn.Turn, term discover.Terminal) bool {
	if t.ThreadID == "" || term.Conflict != "" || term.Key() != t.TerminalKey() {
		return false
	}
	switch term.Native.Thread {
	case agent.ThreadResolved:
		return term.Native.ThreadID != t.ThreadID
	case agent.ThreadVerifiedAbsent: // one that works has a thread, whatever was cached of it
		return term.Native.Activity == agent.ActivityIdle
	}
	return false
}

// The states of a terminal whose human chose another thread (spec part 3.4).
const (
	handoffAdoptable = "external_handoff_adoptable"              // send follows to the thread that is shown
	handoffBlocked   = "external_handoff_blocked"                // a Turn of the other thread still waits
	handoffEmpty     = "verified_empty_native_session_adoptable" // the thread that is shown has no record yet
	decisionKind     = "active_turn_requires_decision"
)

// HandoffDecision is what only the Host's person can decide: which thread the terminal
// belongs to. The product picks neither.
type HandoffDecision struct {
	Kind          string            `json:"kind"`
	SourceSession ids.SessionID     `json:"source_session_id"`
	SourceTurn    ids.TurnID        `json:"source_turn_id"`
	Choices       map[string]Action `json:"choices"`
}

// decideHandoff offers the choices of a Turn whose terminal moved away.
func (s *Service) decideHandoff(t turn.Turn, term discover.Terminal) *HandoffDecision {
	s.handoffs.Put(string(t.ID), handoff{term.Key(), term.Native.ThreadID})
	return &HandoffDecision{Kind: decisionKind, SourceSession: t.SessionID, SourceTurn: t.ID, Choices: map[string]Action{
		"take_over_current": {Tool: toolClose, Arguments: map[string]any{"turn_id": t.ID, "reason": turn.ReasonHandoff}, NeedsPerson: true},
		"keep_source":       {Tool: toolStatus, Arguments: map[string]any{"turn_id": t.ID}},
	}}
}

// checkHandoff returns the disposition of a close for a human's switch. Without the reason
// for it, a Turn whose terminal moved away is not closed by the way: the person must see
// the choice. With it, list must have shown this very switch.
func (s *Service) checkHandoff(ctx context.Context, t turn.Turn, reason string) (string, error) {
	const op = "dispatch.close"
	if !t.Status.Blocking() {
		if reason == turn.ReasonHandoff && t.Status != turn.Closed {
			return "", fault.New(turn.CodeNotAllowed, op, "turn %s waits for nothing: it is %s", t.ID, t.Status).WithHint("close it without that reason, or leave it")
		}
		return "", nil
	}
	term, err := s.Scanner.Find(ctx, t.Terminal)
	moved := err == nil && movedAway(t, term)
	if reason != turn.ReasonHandoff {
		if moved {
			return "", fault.New(fault.Conflict, op, "a human switched %s to another thread while turn %s waits", t.Terminal, t.ID).
				WithHint("call agent_knock_knock_list and let a person take one of handoff_decision.choices")
		}
		return "", nil
	}
	shown, ok := s.handoffs.Take(string(t.ID))
	if !ok {
		return "", fault.New(fault.Conflict, op, "this choice for turn %s was not shown in the last %s", t.ID, offerLife).
			WithHint("call agent_knock_knock_list; it offers the choice when a human has switched threads")
	}
	if !moved || term.Key() != shown.terminal || term.Native.ThreadID != shown.thread {
		return "", fault.New(fault.Conflict, op, "%s does not show the thread any more that list showed", t.Terminal).WithHint("call agent_knock_knock_list again")
	}
	return turn.DispositionHandoff, nil
}

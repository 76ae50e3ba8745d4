package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// stopWait bounds the wait for the agent's own record that it stopped; that of real
	// agents comes within a second.
	stopWait = 4 * time.Second
	// keyLimit bounds the last proof and the key.
	keyLimit = 4 * time.Second
)

// The ways in which an agent is asked to stop.
const (
	meansEscape = "key:Escape"
	meansSocket = "socket"
)

// CancelInput names the Turn to stop.
type CancelInput struct {
	CallID string // the same call presses no second key
	TurnID ids.TurnID
}

// CancelOutcome says what is known when cancel answers.
type CancelOutcome string

const (
	CancelStopped  CancelOutcome = "stopped"              // the agent's own record shows it
	CancelIdle     CancelOutcome = "idle_without_record"  // the agent is idle, and wrote no end
	CancelEnded    CancelOutcome = "ended_first"          // the task was over before the stop could act
	CancelUnproved CancelOutcome = "requested_not_proved" // asked; the Turn goes on being watched
	CancelNotSent  CancelOutcome = "not_sent"             // nothing reached the agent
	CancelClosed   CancelOutcome = "closed"               // a person closed it meanwhile
)

// CancelResult says what is known of a request to stop. An agent that was asked and has
// not shown that it stopped still has the task.
type CancelResult struct {
	Turn     turn.Turn
	Outcome  CancelOutcome
	Replayed bool
}

func cancelResult(t turn.Turn, replayed bool) CancelResult {
	r := CancelResult{Turn: t, Replayed: replayed}
	switch {
	case t.Status == turn.Cancelled && t.StopProved:
		r.Outcome = CancelStopped
	case t.Status == turn.Cancelled:
		r.Outcome = CancelIdle
	case t.Status == turn.Closed:
		r.Outcome = CancelClosed
	case !t.Status.Blocking():
		r.Outcome = CancelEnded
	case t.CancelPending():
		r.Outcome = CancelUnproved
	default:
		r.Outcome = CancelNotSent
	}
	return r
}

// Cancel asks the agent of a Turn to stop: once, and only while it is proved that it works
// on this very thread or shows an approvable prompt. An error means that nothing reached
// the agent. The Turn is cancelled when the agent's own evidence shows that it stopped,
// not when the key was sent; an end of the task that comes first stays its end.
func (s *Service) Cancel(ctx context.Context, in CancelInput) (CancelResult, error) {
	started := s.Clock.Now()
	if err := s.DB.CheckWritable(); err != nil {
		return CancelResult{}, err
	}
	if err := s.release(ctx, in.TurnID); err != nil {
		return CancelResult{}, err
	}
	t, err := s.get(ctx, in.TurnID)
	if err != nil {
		return CancelResult{}, err
	}
	if t.Cancel != nil && t.Cancel.Call == in.CallID {
		return cancelResult(t, true), nil
	}
	if err := turn.CanCancel(t); err != nil {
		return CancelResult{}, err
	}
	term, err := s.terminalOf(ctx, t)
	if err != nil {
		return CancelResult{}, err
	}
	hold, err := s.desk().Take(ctx, term)
	if err != nil {
		return CancelResult{}, err
	}
	defer hold.Release()
	// The lock is kept until the end, so that a second cancel judges what the first one did.
	ctx = context.WithoutCancel(ctx)
	changed, unsubscribe := s.waiters.subscribe(t.ID)
	defer unsubscribe()
	if t, err = s.interrupt(ctx, in, t, hold); err != nil {
		return CancelResult{}, err
	}
	t = s.awaitStop(ctx, t, changed, min(stopWait, answerLimit-s.Clock.Now().Sub(started)))
	return cancelResult(t, false), nil
}

// terminalOf finds the terminal of a Turn and proves that it is the same process in the
// same pane.
func (s *Service) terminalOf(ctx context.Context, t turn.Turn) (discover.Terminal, error) {
	term, err := s.Scanner.Find(ctx, t.Terminal)
	if err != nil {
		return term, err
	}
	if term.Key() != t.TerminalKey() {
		return term, fault.New(turn.CodeTerminal, "dispatch.terminal", "%s runs another process than turn %s was sent to", t.Terminal, t.ID).
			WithHint("call agent_knock_knock_list again")
	}
	return term, nil
}

// interrupt records the request, proves the terminal once more, and stops the agent. An
// error means that nothing reached it, and that this is recorded.
func (s *Service) interrupt(ctx context.Context, in CancelInput, t turn.Turn, hold *keyboard.Hold) (turn.Turn, error) {
	term := hold.Terminal()
	denies, err := stoppable(t, term.Native, term.Screen, term.Pane.InMode)
	if err != nil {
		return t, err
	}
	c := turn.Cancel{Call: in.CallID, Means: meansEscape, Denies: denies}
	if overSocket(t, term.Native) {
		c.Means = meansSocket
	}
	if t, err = s.change(ctx, t.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.RequestCancel(t, c, now) }); err != nil {
		return t, otherBridge(err, in.TurnID)
	}
	keyCtx, cancel := context.WithTimeout(ctx, keyLimit)
	defer cancel()
	state, reason := turn.CancelSent, ""
	err = s.pressStop(keyCtx, t, hold)
	switch {
	case fault.Is(err, tmux.CodeInputNotSent), fault.Is(err, agent.NotSubmitted), fault.Is(err, turn.CodeTerminal):
		state = turn.CancelNotSent
	case err != nil:
		state = turn.CancelUncertain
	}
	if err != nil {
		_, reason, _ = fault.Public(err)
		s.Log.Warn("the agent was perhaps not asked to stop", "turn", t.ID, "state", state, "err", err)
	}
	after, recordErr := s.settleCancel(ctx, t.ID, state, reason)
	if recordErr != nil {
		s.Log.Error("the outcome of a cancel could not be recorded", "turn", t.ID, "err", recordErr)
		after = t
	}
	if state != turn.CancelNotSent {
		return after, nil
	}
	if over := turn.CanCancel(after); over != nil { // better than "idle": it is done
		return after, over
	}
	return after, err
}

func (s *Service) settleCancel(ctx context.Context, id ids.TurnID, state turn.CancelState, reason string) (turn.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	return s.change(ctx, id, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.SettleCancel(t, state, reason, now), nil
	})
}

// pressStop reads all evidence of the terminal anew and stops the agent. Errors with
// turn.CodeTerminal, tmux.CodeInputNotSent or agent.NotSubmitted prove that nothing was
// sent.
func (s *Service) pressStop(ctx context.Context, t turn.Turn, hold *keyboard.Hold) error {
	const op = "dispatch.cancel"
	term := hold.Terminal()
	native, err := term.Adapter.Identify(ctx, term.Ref)
	if err != nil {
		return fault.Wrap(err, turn.CodeTerminal, op, "the agent's evidence cannot be read").WithHint("no key was sent; look at the pane")
	}
	shot, err := hold.Look(ctx)
	if err != nil {
		return fault.Wrap(err, turn.CodeTerminal, op, "the terminal cannot be read").WithHint("no key was sent; call agent_knock_knock_list again")
	}
	if _, err := stoppable(t, native, shot.Screen, shot.Capture.Pane.InMode); err != nil {
		return err
	}
	if !overSocket(t, native) {
		return hold.Press(ctx, tmux.Escape)
	}
	anchor := t.Anchor
	if anchor.ThreadID == "" {
		anchor.ThreadID = t.ThreadID
	}
	i, ok := term.Adapter.(agent.Interrupter)
	if !ok {
		return fault.New(agent.NotSubmitted, op, "%s cannot be stopped over its machine channel", t.Agent).WithHint("interrupt it in its pane")
	}
	return i.Interrupt(ctx, term.Ref, anchor, t.NativeTurnID)
}

func overSocket(t turn.Turn, n agent.Native) bool {
	return t.Channel == turn.ChannelCodexSocket && n.Channel == turn.ChannelCodexSocket
}

// stoppable returns nil when the evidence proves that the agent works on the Turn's thread,
// or that it shows an approvable prompt, which the stop then denies. Anything else gets no
// key: one Escape in another dialog may choose something, in an idle agent it may discard a
// draft, and in copy mode it does not reach the agent. Pure.
func stoppable(t turn.Turn, n agent.Native, sc agent.Screen, inMode bool) (denies bool, err error) {
	refuse := func(hint, format string, args ...any) error {
		return fault.New(turn.CodeTerminal, "dispatch.cancel", format, args...).WithHint("no key was sent; %s", hint)
	}
	socket := overSocket(t, n)
	switch {
	case t.ThreadID != "" && n.Thread != agent.ThreadResolved:
		return false, refuse("look at the pane", "%s does not provably show the thread of turn %s", t.Terminal, t.ID)
	case t.ThreadID != "" && n.ThreadID != t.ThreadID:
		return false, refuse("call agent_knock_knock_list for the choices", "%s shows another thread than that of turn %s", t.Terminal, t.ID)
	case inMode && !socket:
		return false, refuse("leave the mode with q", "the pane of %s is scrolled back (copy mode)", t.Terminal)
	}
	switch state, reason := discover.Combine(n, sc); state {
	case discover.Idle:
		return false, refuse("wait for the callback", "%s is idle: nothing is left to stop", t.Terminal)
	case discover.Awaiting:
		if approvable(sc.Prompt) || socket && sc.Prompt == nil && approvable(t.Prompt) {
			return true, nil
		}
		return false, refuse("answer or close the dialog in the pane", "%s shows a dialog that a stop may not answer: %s", t.Terminal, reason)
	case discover.Working:
		switch {
		case !socket && sc.State == agent.ScreenUnknown:
			return false, refuse("look at the pane", "the screen of %s is not recognised", t.Terminal)
		case n.Activity == agent.ActivityIdle:
			return false, refuse("try again in a moment", "the screen of %s shows a running task, its records show none", t.Terminal)
		}
		return false, nil
	default:
		return false, refuse("look at the pane", "%s is not provably working: %s", t.Terminal, reason)
	}
}

func approvable(p *turn.Prompt) bool {
	return p != nil && p.Kind == turn.PromptApproval && p.Approvable
}

// awaitStop waits a little for the end of the Turn. Giving up is not an outcome: the
// monitor goes on.
func (s *Service) awaitStop(ctx context.Context, t turn.Turn, changed <-chan struct{}, wait time.Duration) turn.Turn {
	timer, stop := s.Clock.NewTimer(wait)
	defer stop()
	for t.Status.Blocking() {
		latest, err := s.get(ctx, t.ID)
		if err != nil {
			s.Log.Error("the progress of a cancel could not be read", "turn", t.ID, "err", err)
			return t
		}
		if t = latest; !t.Status.Blocking() {
			return t
		}
		select {
		case <-changed:
		case <-timer:
			return t
		}
	}
	return t
}

// otherBridge names the refusal of a Turn that another living Bridge owns.
func otherBridge(err error, id ids.TurnID) error {
	if !fault.Is(err, turn.CodeStaleOwner) {
		return err
	}
	return fault.Wrap(err, fault.Conflict, "dispatch.change", "turn %s belongs to another Bridge that runs", id).WithHint("do it there, or end that Bridge first")
}

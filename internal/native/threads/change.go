package threads

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// ChangeInput asks for one change of thread.
type ChangeInput struct {
	CallID     string // names the tool call: the same call is never typed twice
	TerminalID ids.TerminalID
	ThreadID   string // to resume; "" for a new thread
	// Reserved, when set, is called once the Transition is durable: later reads show it.
	Reserved func()
}

// ChangeResult says what is known of the change when the tool answers. Everything after a
// possible key is a result; an error means that nothing reached the agent.
type ChangeResult struct {
	Transition native.Transition
	Replayed   bool
	// AlreadyActive: the terminal shows that thread; nothing was recorded or typed.
	AlreadyActive bool
	SessionID     ids.SessionID // of an AlreadyActive result, "" when nobody manages the thread
}

// NewThread makes the terminal's agent begin a new thread, by its own command.
func (s *Service) NewThread(ctx context.Context, in ChangeInput) (ChangeResult, error) {
	in.ThreadID = ""
	return s.start(ctx, in, native.NewThread)
}

// ResumeThread makes the terminal's agent show a thread that a fresh listing offered.
func (s *Service) ResumeThread(ctx context.Context, in ChangeInput) (ChangeResult, error) {
	return s.start(ctx, in, native.ResumeThread)
}

// start checks what needs no lock, cheapest first, and goes on under the terminal's lock.
func (s *Service) start(ctx context.Context, in ChangeInput, op native.Operation) (ChangeResult, error) {
	began := s.Clock.Now()
	if r, ok, err := s.replay(ctx, in, op); err != nil || ok {
		return r, err
	}
	if err := s.CheckProfile(); err != nil {
		return ChangeResult{}, err
	}
	if err := s.DB.CheckWritable(); err != nil {
		return ChangeResult{}, err
	}
	term, scan, err := s.find(ctx, in.TerminalID)
	if err != nil {
		return ChangeResult{}, err
	}
	if op == native.ResumeThread && term.Native.Thread == agent.ThreadResolved && term.Native.ThreadID == in.ThreadID {
		return s.alreadyActive(ctx, term, in.ThreadID)
	}
	k, err := keeper(term)
	if err == nil {
		err = typable(term)
	}
	if err != nil {
		return ChangeResult{}, s.nameHolder(ctx, term, err)
	}
	a := attempt{Service: s, keeper: k, op: op, in: in, until: began.Add(answerLimit)}
	if op == native.ResumeThread {
		if a.offered, err = s.offered(term, in.ThreadID); err != nil {
			return ChangeResult{}, err
		}
	}
	if a.hold, err = s.Desk.Take(ctx, term); err != nil {
		return ChangeResult{}, err
	}
	defer a.hold.Release()
	if a.term = a.hold.Terminal(); a.term.Native.ThreadID != term.Native.ThreadID || a.term.Native.Thread != term.Native.Thread {
		return ChangeResult{}, fault.New(turn.CodeTerminal, "threads.start", "%s shows another thread than a moment ago", term.ID).WithHint("call agent_knock_knock_list again")
	}
	return a.run(ctx, scan)
}

// replay answers a repeated call from the record of the first one.
func (s *Service) replay(ctx context.Context, in ChangeInput, op native.Operation) (ChangeResult, bool, error) {
	var row nativesql.Row
	var ok bool
	err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, ok, err = nativesql.ByCallKey(tx, in.CallID)
		return err
	})
	if err != nil || !ok {
		return ChangeResult{}, false, err
	}
	t := row.Transition
	if t.Operation != op || t.Terminal != in.TerminalID || t.WantThread != in.ThreadID {
		return ChangeResult{}, false, fault.New(native.CodeReplay, "threads.start", "this call id was used for another change").WithHint("use a new call for another change")
	}
	return ChangeResult{Transition: t, Replayed: true}, true, nil
}

// nameHolder says which Turn or Transition keeps a terminal that is not ready: more useful
// than "busy".
func (s *Service) nameHolder(ctx context.Context, term discover.Terminal, cause error) error {
	var held error
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		if held = nativesql.CheckNoTurn(tx, term.Key()); held == nil {
			held = nativesql.CheckFree(tx, term.Key())
		}
		return nil
	})
	if err == nil && (fault.Is(held, turn.CodeBlocked) || fault.Is(held, native.CodeOpen)) {
		return held
	}
	return cause
}

func (s *Service) alreadyActive(ctx context.Context, term discover.Terminal, thread string) (ChangeResult, error) {
	out := ChangeResult{AlreadyActive: true, Transition: native.Transition{Operation: native.ResumeThread, Agent: term.Adapter.Kind(), Terminal: term.ID, ThreadID: thread}}
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		session, ok, err := turnsql.ThreadSession(tx, term.Adapter.Kind(), thread)
		if ok {
			out.SessionID = session.ID
		}
		return err
	})
	return out, err
}

// attempt is one change under the terminal's lock.
type attempt struct {
	*Service
	keeper  agent.ThreadKeeper
	hold    *keyboard.Hold
	term    discover.Terminal
	op      native.Operation
	in      ChangeInput
	offered agent.Thread // of a resume
	until   time.Time    // when the tool must answer
}

// run proves everything once more, records the Transition and carries it out. It is not
// given up half-way: once recorded it ends by its own bounds, not by the caller's ctx.
func (a attempt) run(ctx context.Context, scan discover.Scan) (ChangeResult, error) {
	if err := a.keeper.ThreadSupport(a.term.Native); err != nil {
		return ChangeResult{}, err
	}
	if err := typable(a.term); err != nil {
		return ChangeResult{}, err
	}
	if a.op == native.ResumeThread {
		if err := a.stillOffered(ctx, scan); err != nil {
			return ChangeResult{}, err
		}
	}
	t, end, err := a.prepare(ctx)
	defer end()
	if err != nil {
		return ChangeResult{}, err
	}
	if a.in.Reserved != nil {
		a.in.Reserved()
	}
	a.shown.Void(string(a.term.ID)) // what it listed as current is going to change
	ctx = context.WithoutCancel(ctx)
	t, refusals, err := a.typeCommand(ctx, t)
	if err != nil || t.Status == native.Uncertain {
		return ChangeResult{Transition: t}, err
	}
	t, err = a.prove(ctx, t, refusals)
	return ChangeResult{Transition: t}, err
}

// prepare makes the Transition durable. In the same transaction it is proved that neither
// a Turn nor another Transition keeps the terminal.
func (a attempt) prepare(ctx context.Context) (t native.Transition, end func(), err error) {
	end = func() {}
	err = a.DB.Update(ctx, func(tx *store.Tx) error {
		t = native.Transition{ID: ids.NewTransition(), CallKey: a.in.CallID, Operation: a.op,
			Agent: a.term.Adapter.Kind(), AgentVersion: a.term.Native.Version, Terminal: a.term.ID, Endpoint: a.term.Ref.Endpoint,
			Process: a.term.Ref.Process, Workspace: a.term.Ref.Cwd, FromThread: a.term.Native.ThreadID, WantThread: a.in.ThreadID}
		bound, ok, err := turnsql.BoundSession(tx, a.term.Key())
		if err != nil {
			return err
		}
		if ok {
			t.FromSession = bound.ID
		}
		p := native.Prepare(t, tx.Now)
		end() // of an earlier try of this transaction
		t, end = p.Transition, a.carry(t.ID)
		_, err = nativesql.Insert(tx, p, a.Bridge)
		return err
	})
	return t, end, err
}

// typeCommand records that the command may be typed, types it and presses Enter. It
// returns how often the screen showed a refusal before. An error proves that nothing was
// typed; a Transition that is not uncertain was entered.
func (a attempt) typeCommand(ctx context.Context, t native.Transition) (native.Transition, int, error) {
	ctx, cancel := context.WithTimeout(ctx, typeLimit)
	defer cancel()
	before, err := a.hold.Look(ctx)
	if err == nil {
		t, err = a.recorded(ctx, t, native.Dispatch)
	}
	if err != nil {
		return t, 0, a.abort(ctx, t, err)
	}
	refusals := a.keeper.ThreadRefusals(before.Capture.Lines, t.WantThread)
	if err := a.hold.Type(ctx, a.keeper.ThreadCommand(t.WantThread)); err != nil {
		if !a.hold.Touched() || fault.Is(err, tmux.CodeInputNotSent) {
			return t, 0, a.abort(ctx, t, err)
		}
		return a.uncertain(ctx, t, "the command was pasted and Enter was not pressed", err), 0, nil
	}
	if err := a.hold.Press(ctx, tmux.Enter); err != nil {
		return a.uncertain(ctx, t, "the command was pasted and Enter was not confirmed", err), 0, nil
	}
	sent, err := a.recorded(ctx, t, native.Submit)
	if err != nil { // what the terminal shows proves it all the same
		a.Log.Error("Enter was pressed and could not be recorded", "transition", t.ID, "err", err)
	}
	return sent, refusals, nil
}

// recorded commits a step; on failure the Transition is as it was.
func (a attempt) recorded(ctx context.Context, t native.Transition, rule func(native.Transition, time.Time) (native.Plan, error)) (native.Transition, error) {
	next, err := a.change(ctx, t.ID, plain(rule))
	if err != nil {
		return t, err
	}
	return next, nil
}

// abort records that nothing was typed and returns why.
func (a attempt) abort(ctx context.Context, t native.Transition, cause error) error {
	_, msg, _ := fault.Public(cause)
	if _, err := a.change(ctx, t.ID, plain(func(t native.Transition, now time.Time) (native.Plan, error) { return native.Abort(t, msg, now) })); err != nil {
		a.Log.Error("an aborted transition could not be recorded", "transition", t.ID, "err", err)
	}
	return cause
}

// uncertain records that input was possible. It is a result, not an error, even when it
// cannot be recorded: the next sweep or the next Bridge decides it then.
func (a attempt) uncertain(ctx context.Context, t native.Transition, reason string, cause error) native.Transition {
	_, msg, _ := fault.Public(cause)
	reason += ": " + msg
	a.Log.Warn("transition uncertain", "transition", t.ID, "reason", reason, "err", cause)
	next, err := a.change(ctx, t.ID, plain(func(t native.Transition, now time.Time) (native.Plan, error) {
		return native.MarkUncertain(t, reason, now), nil
	}))
	if err != nil {
		a.Log.Error("an uncertain transition could not be recorded", "transition", t.ID, "err", err)
		t.Status, t.Reason = native.Uncertain, reason
		return t
	}
	return next
}

// prove waits until the terminal provably shows the new thread, and commits it. Without a
// proof in time the Transition stays submitted: a sweep goes on looking.
func (a attempt) prove(ctx context.Context, t native.Transition, refusals int) (native.Transition, error) {
	until := a.Clock.Now().Add(proveLimit)
	if a.until.Before(until) {
		until = a.until
	}
	detail := ""
	for {
		seen, err := a.look(ctx)
		switch {
		case err != nil:
			_, detail, _ = fault.Public(err)
		case t.Proves(seen.thread):
			return a.verified(ctx, t, seen.thread)
		case t.WantThread != "" && seen.thread == t.FromThread && a.keeper.ThreadRefusals(seen.lines, t.WantThread) > refusals:
			reason := "the agent said that it cannot resume this thread"
			return a.recorded(ctx, t, func(t native.Transition, now time.Time) (native.Plan, error) { return native.Abort(t, reason, now) })
		default:
			detail = seen.detail
		}
		if !a.Clock.Now().Before(until) {
			t.Reason = fmt.Sprintf("the command was sent and the terminal does not show the thread yet (%s); it goes on being looked at", orElse(detail, "it still shows the one before"))
			return t, nil
		}
		if err := a.pause(ctx, lookPause); err != nil {
			return t, nil
		}
	}
}

// verified records the proof, and in a fact of its own what the Sessions make of it: a
// Bridge that dies in between is finished by the next one, without a key.
func (a attempt) verified(ctx context.Context, t native.Transition, thread string) (native.Transition, error) {
	next, err := a.recorded(ctx, t, func(t native.Transition, now time.Time) (native.Plan, error) { return native.Verify(t, thread, now) })
	if err == nil {
		next, err = a.commit(ctx, next.ID)
	}
	if err != nil {
		a.Log.Error("a proved transition could not be recorded", "transition", t.ID, "err", err)
		t.Reason = "the terminal shows the thread, which could not be recorded yet"
		return t, nil
	}
	return next, nil
}

// sight is what one look at the terminal gave.
type sight struct {
	thread string // provably shown, with an idle and empty composer
	detail string
	lines  []string
}

// look reads screen and evidence anew, through the Hold.
func (a attempt) look(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, typeLimit)
	defer cancel()
	shot, err := a.hold.Look(ctx)
	if err != nil {
		return sight{}, err
	}
	term := a.term
	term.Pane, term.Screen, term.Ref.Title = shot.Capture.Pane, shot.Screen, shot.Capture.Pane.Title
	term.Native, err = term.Adapter.Identify(ctx, term.Ref)
	if err != nil {
		return sight{}, err
	}
	s := shows(term)
	s.lines = shot.Capture.Lines
	return s, nil
}

// shows says which thread a terminal provably shows: resolved, idle by records and screen,
// and with the composer in focus. A title alone is no proof; a locked thread has one too.
func shows(t discover.Terminal) sight {
	state, reason := discover.Combine(t.Native, t.Screen)
	switch {
	case t.Conflict != "":
		return sight{detail: t.Conflict}
	case t.Native.Thread != agent.ThreadResolved:
		return sight{detail: orElse(t.Native.Reason, "its thread is not known")}
	case state != discover.Idle:
		return sight{detail: orElse(reason, string(state))}
	case t.Screen.Composer != agent.ComposerEmpty:
		return sight{detail: fmt.Sprintf("the composer is %s", t.Screen.Composer)}
	}
	return sight{thread: t.Native.ThreadID}
}

func orElse(s, alt string) string {
	if s == "" {
		return alt
	}
	return s
}

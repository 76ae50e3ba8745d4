package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Bounds of a send. A tool answers within 10 s whatever the agent does (case M20); the
// Turn goes on in the background.
const (
	armLimit      = 4 * time.Second  // the monitor must follow the agent's records by then
	inputLimit    = 6 * time.Second  // paste, proof of the draft, Enter
	acceptWait    = 7 * time.Second  // the monitor proves an unsent draft 5 s after Enter
	answerLimit   = 9 * time.Second  // of the whole send; a slow start shortens acceptWait
	summaryLength = 200              // runes of the request that are kept and shown
	recordLimit   = 10 * time.Second // for a transaction that must not be given up
)

// SendInput is one task for one terminal.
type SendInput struct {
	CallID     string // names the tool call: the same call is never typed twice
	Request    string
	SessionID  ids.SessionID
	TerminalID ids.TerminalID
	Inactivity time.Duration // < 0: none; 0: the default
	Hard       time.Duration // 0: the default
	// Reserved, when set, is called once the Turn is durable: later reads show it.
	Reserved func()
	// Thread, when set, is the native thread that the caller has proved to be in the
	// foreground: a terminal whose evidence names another one is refused.
	Thread string
	// Locked: the caller holds the input lock of the pane until Send returns.
	Locked bool
}

// SendResult says what is known of the submission when the tool answers.
type SendResult struct {
	Turn     turn.Turn
	Replayed bool
}

// Send delegates a task. An error means that nothing reached the agent; every outcome
// after a possible input is a result whose Turn says how far the proof goes.
func (s *Service) Send(ctx context.Context, in SendInput) (SendResult, error) {
	started := s.Clock.Now()
	in.Request = strings.ReplaceAll(in.Request, "\r\n", "\n") // tmux would make two newlines of it
	if err := turn.CheckText(in.Request); err != nil {
		return SendResult{}, err
	}
	if err := tmux.ValidateText([]byte(in.Request), turn.MaxRequest); err != nil {
		return SendResult{}, err
	}
	if r, ok, err := s.replay(ctx, in); err != nil || ok {
		return r, err
	}
	if err := s.CheckProfile(); err != nil {
		return SendResult{}, err
	}
	if err := s.DB.CheckWritable(); err != nil {
		return SendResult{}, err
	}
	term, err := s.target(ctx, in)
	if err != nil {
		return SendResult{}, err
	}
	if in.Thread != "" && term.Native.ThreadID != "" && term.Native.ThreadID != in.Thread {
		return SendResult{}, fault.New(turn.CodeTerminal, "dispatch.send", "%s shows another thread than the one that was identified", term.ID).WithHint("identify it again")
	}
	if err := discover.Ready(term); err != nil {
		return SendResult{}, s.nameHolder(ctx, term, err)
	}
	crashpoint.At(crashpoint.SendReserve)
	sub, err := s.reserve(ctx, in, term)
	defer sub.end()
	if err != nil {
		return SendResult{}, err
	}
	crashpoint.At(crashpoint.SendReserved)
	if in.Reserved != nil {
		in.Reserved()
	}
	t, err := s.submit(ctx, sub)
	if err != nil {
		return SendResult{}, err
	}
	wait := min(acceptWait, answerLimit-s.Clock.Now().Sub(started))
	return SendResult{Turn: s.awaitAcceptance(ctx, t, wait)}, nil
}

// Replay answers a call that was carried out before, as Send would; ok is false for a new
// one.
func (s *Service) Replay(ctx context.Context, callID, request string) (_ SendResult, ok bool, err error) {
	return s.replay(ctx, SendInput{CallID: callID, Request: strings.ReplaceAll(request, "\r\n", "\n")})
}

// replay answers a repeated call from the record of the first one. A Turn of an older
// release has no call of its own; its key is in its row.
func (s *Service) replay(ctx context.Context, in SendInput) (SendResult, bool, error) {
	hash := ids.TextHash(in.Request)
	if r, ok, err := s.replayCall(ctx, turnsql.Call{Key: in.CallID, Tool: "send", RequestHash: hash}); err != nil || ok {
		return r, ok, err
	}
	var row turnsql.Row
	var ok bool
	err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, ok, err = turnsql.ByCallKey(tx, in.CallID)
		return err
	})
	if err != nil || !ok {
		return SendResult{}, false, err
	}
	if row.Turn.RequestHash != hash {
		return SendResult{}, false, fault.New(turn.CodeReplay, "dispatch.send", "this call id was used for another request").WithHint("use a new call for a new task")
	}
	return SendResult{Turn: row.Turn, Replayed: true}, true, nil
}

// nameHolder says which Turn keeps a terminal that is not ready: more useful than "busy".
func (s *Service) nameHolder(ctx context.Context, term discover.Terminal, cause error) error {
	held, err := s.blocking(ctx)
	if err != nil {
		return cause
	}
	row, ok := held[term.Key()]
	if !ok {
		return cause
	}
	return fault.New(turn.CodeBlocked, "dispatch.send", "%s is kept by turn %s (%s, %s)", term.ID, row.Turn.ID, row.Turn.Status, row.Turn.Stage).
		WithHint("%s", row.Turn.NextStep())
}

// submission is a reserved Turn and what is needed to type it.
type submission struct {
	turn   turn.Turn
	term   discover.Terminal
	pasted string // as typed or sent: the request, made literal where that is proved
	end    func() // the submission is over
	locked bool   // the caller of Send holds the lock of the pane
}

// reserve makes Session and Turn durable. The unique index on the terminal is the fence:
// of two sends at one moment, one wins and the other is told who holds it.
func (s *Service) reserve(ctx context.Context, in SendInput, term discover.Terminal) (submission, error) {
	sub := submission{term: term, pasted: in.Request, end: func() {}, locked: in.Locked}
	if term.Native.Channel == turn.ChannelKeyboard {
		var err error
		if sub.pasted, err = term.Adapter.Literal(in.Request); err != nil {
			return sub, err
		}
	}
	message := ids.DeriveMessage("send", in.CallID)
	anchor, err := term.Adapter.Anchor(ctx, term.Ref, term.Native, sub.pasted, string(message))
	if err != nil {
		return sub, fault.Wrap(err, turn.CodeTerminal, "dispatch.send", "the agent's records cannot be anchored").WithHint("look at the agent's data directory")
	}
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if err := nativesql.CheckFree(tx, term.Key()); err != nil {
			return err // its thread is being changed
		}
		session, err := s.sessionFor(tx, term)
		if err != nil {
			return err
		}
		routeID, err := outboxsql.PutRoute(tx, s.Route)
		if err != nil {
			return err
		}
		plan := turn.Reserve(turn.Turn{
			ID: ids.NewTurn(tx.Now), Origin: s.Bridge, SessionID: session.ID, MessageID: message, CallKey: in.CallID, Route: routeID,
			Agent: term.Adapter.Kind(), AgentVersion: term.Native.Version, Mode: term.Native.Mode, Channel: term.Native.Channel,
			Terminal: term.ID, Endpoint: term.Ref.Endpoint, Process: term.Ref.Process, Workspace: term.Ref.Cwd,
			RequestHash: ids.TextHash(in.Request), RequestSummary: redact.Line(redact.String(in.Request), summaryLength), RequestBytes: len(in.Request),
			Anchor: anchor, ThreadID: term.Native.ThreadID,
			Inactivity: orDefault(in.Inactivity, turn.DefaultInactivity), Hard: orDefault(in.Hard, turn.DefaultHard),
		}, tx.Now)
		sub.turn, sub.end = plan.Turn, s.begin(plan.Turn.ID) // before the commit: a sweep must not take it for cut off
		if _, err = turnsql.Insert(tx, plan, s.Bridge); err != nil {
			return err
		}
		return turnsql.PutCall(tx, turnsql.Call{Key: in.CallID, TurnID: plan.Turn.ID, Tool: "send", RequestHash: plan.Turn.RequestHash})
	})
	return sub, err
}

// orDefault reads a duration in which 0 is "the default" and negative is "none".
func orDefault(d, def time.Duration) time.Duration {
	switch {
	case d < 0:
		return 0
	case d == 0:
		return def
	}
	return d
}

// sessionFor returns the Session of the terminal's native thread, making or rebinding one
// as needed. A human may have switched threads in the pane: then the Session that was
// bound before is detached, never carried over.
func (s *Service) sessionFor(tx *store.Tx, term discover.Terminal) (turn.Session, error) {
	thread := term.Native.ThreadID
	b := turn.Binding{TerminalID: term.ID, Endpoint: term.Ref.Endpoint, Process: term.Ref.Process}
	bound, ok, err := turnsql.BoundSession(tx, term.Key())
	if err != nil {
		return turn.Session{}, err
	}
	// A thread that provably does not exist yet is not the one that the Session names; one
	// that merely cannot be told may be.
	unknown := thread == "" && term.Native.Thread != agent.ThreadVerifiedAbsent
	if ok && (unknown || bound.ThreadID == "" || bound.ThreadID == thread) {
		if bound.ThreadID == "" && thread != "" {
			if _, taken, err := turnsql.ThreadSession(tx, bound.Agent, thread); err != nil || taken {
				return bound, err
			}
			bound = bound.LearnThread(thread, tx.Now)
			return bound, turnsql.PutSession(tx, bound)
		}
		return bound, nil
	}
	if ok {
		if err := turnsql.PutSession(tx, bound.Detach(tx.Now)); err != nil {
			return turn.Session{}, err
		}
	}
	session, known, err := turnsql.ThreadSession(tx, term.Adapter.Kind(), thread)
	if err != nil {
		return turn.Session{}, err
	}
	if known {
		session = session.Rebind(b, tx.Now)
	} else {
		session = turn.NewSession(term.Adapter.Kind(), thread, term.Ref.Cwd, b, tx.Now)
	}
	return session, turnsql.PutSession(tx, session)
}

// awaitAcceptance waits a little for the agent's own record of the request. Giving up is
// not an outcome, and neither is a Store that cannot be read: the request was sent, the
// monitor goes on, and may prove later that it was accepted or still is a draft.
func (s *Service) awaitAcceptance(ctx context.Context, t turn.Turn, wait time.Duration) turn.Turn {
	changed, release := s.waiters.subscribe(t.ID)
	defer release()
	timer, stop := s.Clock.NewTimer(wait)
	defer stop()
	for {
		if t.Stage != turn.EnterDispatched || !t.Status.Blocking() {
			return t
		}
		latest, err := s.get(context.WithoutCancel(ctx), t.ID)
		if err != nil {
			s.Log.Error("the progress of a submission could not be read", "turn", t.ID, "err", err)
			return t
		}
		if t = latest; t.Stage != turn.EnterDispatched || !t.Status.Blocking() {
			return t
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return t
		case <-timer:
			return t
		}
	}
}

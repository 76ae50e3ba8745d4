package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

const (
	// reasonLength bounds a close's reason, in bytes.
	reasonLength = 500
	offerLife    = offer.Life
)

// Transitions gives up a change of a native thread that nobody can carry on.
type Transitions interface {
	// Abandon resolves the transition without a key. One that is still being carried out,
	// or that the caller did not mean, is refused.
	Abandon(ctx context.Context, terminal ids.TerminalID, id ids.TransitionID) error
}

// CloseInput names what is given up: a Turn, or with Transition the change of a thread that
// keeps a terminal.
type CloseInput struct {
	TurnID     ids.TurnID
	TerminalID ids.TerminalID
	Reason     string
	// Message, when set, must be the Turn's: it names the submission that nobody carries on.
	Message ids.MessageID
	// Transition names the change of a thread to give up; only with TerminalID.
	Transition ids.TransitionID
}

// CloseResult says what a close changed. It never stops an agent.
type CloseResult struct {
	Turn   turn.Turn
	Before turn.Status
}

// Close gives a Turn up by a person's decision: the Store only, no key is sent. The Turn
// of another Bridge that lives is that Bridge's to close; one that a dead Bridge left,
// whatever its Host, is taken over first. A callback that is on its way stays so.
func (s *Service) Close(ctx context.Context, in CloseInput) (CloseResult, error) {
	const op = "dispatch.close"
	if err := s.DB.CheckWritable(); err != nil {
		return CloseResult{}, err
	}
	switch {
	case (in.TurnID == "") == (in.TerminalID == ""):
		return CloseResult{}, fault.New(fault.Invalid, op, "give exactly one of turn_id and terminal_id").WithHint("available_actions has the complete arguments")
	case in.TerminalID != "":
		return CloseResult{}, s.abandon(ctx, in)
	case in.Transition != "":
		return CloseResult{}, fault.New(fault.Invalid, op, "expected_transition_id goes with terminal_id").WithHint("available_actions has the complete arguments")
	}
	if got, damaged, err := s.closeDamaged(ctx, in.TurnID); damaged || err != nil {
		return got, otherBridge(err, in.TurnID)
	}
	if err := s.release(ctx, in.TurnID); err != nil {
		return CloseResult{}, err
	}
	t, err := s.get(ctx, in.TurnID)
	if err != nil {
		return CloseResult{}, err
	}
	c, err := s.closing(ctx, in, t)
	if err != nil {
		return CloseResult{}, err
	}
	var before turn.Status
	t, err = s.change(ctx, in.TurnID, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		before = t.Status
		return closePlan(t, c, now)
	})
	return CloseResult{Turn: t, Before: before}, otherBridge(err, in.TurnID)
}

// closeDamaged frees the terminal of a Turn whose record cannot be read: only its columns
// can say that it is closed, and its record stays as it is for whoever looks into it.
func (s *Service) closeDamaged(ctx context.Context, id ids.TurnID) (got CloseResult, damaged bool, err error) {
	var row turnsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) { row, err = turnsql.Get(tx, id); return err }); row.Damaged == nil {
		return got, false, err
	}
	if alive, err := s.DB.Alive(row.Owner); row.Owner != s.Bridge && (err != nil || alive) {
		return got, true, fault.New(fault.Conflict, "dispatch.close", "turn %s belongs to another Bridge that runs", id).WithHint("close it there, or end that Bridge first")
	}
	got.Turn, got.Before = row.Turn, row.Turn.Status
	got.Turn.Status = turn.Closed
	s.Log.Warn("a turn whose record is damaged was closed", "turn", id, "err", row.Damaged)
	return got, true, s.DB.Update(ctx, func(tx *store.Tx) error { return turnsql.CloseDamaged(tx, row) })
}

// abandon gives up a change of a thread.
func (s *Service) abandon(ctx context.Context, in CloseInput) error {
	const op = "dispatch.close"
	if in.Transition == "" || in.Message != "" {
		return fault.New(fault.Invalid, op, "a terminal is closed only with expected_transition_id").WithHint("close a task by its turn_id; available_actions has the complete arguments")
	}
	if s.Transitions == nil {
		return fault.New(fault.NotFound, op, "there is no transition %q", in.Transition).WithHint("call agent_knock_knock_list again")
	}
	return s.Transitions.Abandon(ctx, in.TerminalID, in.Transition)
}

// closing finds out what is known beyond the wish to close.
func (s *Service) closing(ctx context.Context, in CloseInput, t turn.Turn) (turn.Closing, error) {
	const op = "dispatch.close"
	c := turn.Closing{Reason: redact.Line(redact.String(in.Reason), reasonLength)}
	if in.Message != "" && in.Message != t.MessageID {
		return c, fault.New(fault.Conflict, op, "the submission of turn %s is another one", t.ID).WithHint("call agent_knock_knock_list again")
	}
	var err error
	if c.Disposition, err = s.checkHandoff(ctx, t, in.Reason); err != nil || c.Disposition != "" || !t.Status.Blocking() {
		return c, err
	}
	if t.Status == turn.Created && s.cutOff(t) {
		if in.Message == "" {
			return c, fault.New(turn.CodeNotAllowed, op, "nobody carries the submission of turn %s on", t.ID).
				WithHint("close it with its expected_message_id from available_actions, or wait a few seconds until it is decided")
		}
		c.Disposition = turn.DispositionOrphan
		return c, nil
	}
	if alive, err := procinfo.Alive(t.Process); err == nil && !alive {
		c.Disposition = turn.DispositionDead
	}
	return c, nil
}

// closePlan closes a Turn; an orphaned submission is decided first, so that its stage says
// what is known of the input.
func closePlan(t turn.Turn, c turn.Closing, now time.Time) (turn.Plan, error) {
	if c.Disposition != turn.DispositionOrphan {
		return turn.Close(t, c, now)
	}
	first := turn.Recover(t, now)
	plan, err := turn.Close(first.Turn, c, now)
	plan.Events = append(first.Events, plan.Events...)
	return plan, err // what a recovery tells the Host is pointless: a person decided
}

// release takes a Turn over from a Bridge that died.
func (s *Service) release(ctx context.Context, id ids.TurnID) error {
	var row turnsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, err = turnsql.Get(tx, id)
		return err
	}); err != nil || row.Owner == s.Bridge {
		return err
	}
	if alive, err := s.DB.Alive(row.Owner); err != nil || alive {
		return nil // the change that follows refuses it as another's
	}
	return s.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := turnsql.TakeOver(tx, row, s.Bridge)
		return err
	})
}

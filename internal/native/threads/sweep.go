package threads

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Sweep is one pass over the open Transitions that this Bridge must care for: those that
// it left unproved, and those of dead Bridges of the same Profile, which it takes over.
// Each has its own error boundary; the error joins theirs. No key is pressed.
func (s *Service) Sweep(ctx context.Context) error {
	if !s.DB.Writable() {
		return nil // a Store of a newer release is only read
	}
	var open []nativesql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) { open, err = nativesql.Open(tx); return err }); err != nil {
		return err
	}
	var errs []error
	for _, row := range open {
		if err := s.tend(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("transition %s: %w", row.Transition.ID, err))
		}
	}
	return errors.Join(errs...)
}

// tend takes one Transition over if its Bridge died, and settles it if it can be settled.
func (s *Service) tend(ctx context.Context, row nativesql.Row) error {
	if s.carried(row.Transition.ID) {
		return nil
	}
	if row.Owner != s.Bridge {
		adopted, err := s.adopt(ctx, row, true)
		if err != nil || !adopted {
			return err
		}
	}
	if row.Damaged != nil {
		return row.Damaged
	}
	id := row.Transition.ID
	e := s.evidence(ctx, row.Transition)
	t, err := s.change(ctx, id, func(tx *store.Tx, t native.Transition) (native.Plan, error) {
		if s.carried(id) {
			return native.Plan{Transition: t}, nil
		}
		return native.Recover(t, e, tx.Now), nil
	})
	if err != nil {
		return err
	}
	if t.Status == native.Verified && t.Open() {
		t, err = s.commit(ctx, id)
	}
	if err == nil && t.Seq != row.Transition.Seq {
		s.Log.Info("settled a transition without a key", "transition", id, "status", t.Status, "open", t.Open())
	}
	return err
}

// adopt takes a Transition over from a Bridge that is dead, of the same Profile only when
// asked so. It is false when there is nothing to take.
func (s *Service) adopt(ctx context.Context, row nativesql.Row, sameProfile bool) (bool, error) {
	if alive, err := s.DB.Alive(row.Owner); err != nil || alive {
		return false, err
	}
	done := false
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		done = false
		if sameProfile {
			if same, err := nativesql.SameProfile(tx, row.Owner, s.Bridge); err != nil || !same {
				return err
			}
		}
		next, err := nativesql.TakeOver(tx, row, s.Bridge)
		if err != nil {
			return err
		}
		done = true
		if row.Damaged != nil {
			return nil
		}
		_, err = nativesql.Save(tx, next, native.Adopt(next.Transition, row.Owner, s.Bridge, tx.Now))
		return err
	})
	return done, err
}

// evidence looks at the terminal of a Transition that nobody carries out.
func (s *Service) evidence(ctx context.Context, t native.Transition) native.Evidence {
	e := native.Evidence{Finished: true}
	if t.Status == native.Prepared || t.Status == native.Verified {
		return e
	}
	if alive, err := procinfo.Alive(t.Process); err == nil && !alive {
		e.Gone = true
		return e
	}
	if t.Status == native.Uncertain && t.Operation == native.NewThread {
		return e // what is shown may be a person's doing
	}
	term, err := s.Scanner.Find(ctx, t.Terminal)
	switch {
	case err != nil:
		_, e.Detail, _ = fault.Public(err)
	case term.Key() != t.TerminalKey():
		e.Detail = "the terminal runs another process now"
	default:
		seen := shows(term)
		e.Thread, e.Detail = seen.thread, seen.detail
	}
	return e
}

// Abandon gives a Transition up by a person's decision; terminal must be the one that it
// keeps. No key is pressed, and what the terminal shows stays unknown.
func (s *Service) Abandon(ctx context.Context, terminal ids.TerminalID, id ids.TransitionID) error {
	const op = "threads.abandon"
	if err := s.DB.CheckWritable(); err != nil {
		return err
	}
	var row nativesql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) { row, err = nativesql.Get(tx, id); return err }); err != nil {
		return err
	}
	switch {
	case row.Transition.Terminal != terminal:
		return fault.New(fault.Conflict, op, "transition %s is not of terminal %q", id, terminal).WithHint("call agent_knock_knock_list again")
	case !row.Transition.Open():
		return nil
	case s.carried(id):
		return fault.New(native.CodeNotAllowed, op, "transition %s is being carried out right now", id).WithHint("wait for its result")
	}
	if row.Owner != s.Bridge {
		adopted, err := s.adopt(ctx, row, false)
		if err != nil {
			return err
		}
		if !adopted {
			return fault.New(fault.Conflict, op, "transition %s belongs to another Bridge that runs", id).WithHint("give it up there, or end that Bridge first")
		}
	}
	_, err := s.change(ctx, id, func(tx *store.Tx, t native.Transition) (native.Plan, error) {
		return native.Abandon(t, "given up by request", tx.Now), nil
	})
	if fault.Is(err, turn.CodeStaleOwner) {
		return fault.Wrap(err, fault.Conflict, op, "transition %s has another owner by now", id).WithHint("call agent_knock_knock_list again")
	}
	return err
}

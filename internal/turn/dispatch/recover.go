package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Sweep is one pass over the Turns that this Bridge must care for: it takes over what a
// dead Bridge of the same Profile left, stalls what is out of time, and makes sure that
// each Turn has its monitor. Each Turn has its own error boundary; the error joins theirs.
// What is adopted is first recovered: a dead dispatcher's half submission is decided, and
// nothing is typed again.
func (s *Service) Sweep(ctx context.Context) error {
	if !s.DB.Writable() {
		return nil // a Store of a newer release is only read
	}
	var errs []error
	if err := s.adopt(ctx); err != nil {
		errs = append(errs, err)
	}
	held, err := s.blocking(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	var (
		mu    sync.Mutex // guards errs
		wg    sync.WaitGroup
		slots = make(chan struct{}, tendAtOnce)
	)
	for _, row := range held {
		if row.Owner != s.Bridge {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := row.Damaged
			if err == nil {
				err = s.tend(ctx, row.Turn)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("turn %s: %w", row.Turn.ID, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tendAtOnce bounds how many Turns are looked after at a time: one whose monitor does not
// come up delays few others.
const tendAtOnce = 8

// tend checks one Turn's clocks and monitor, and decides a submission that was cut off.
func (s *Service) tend(ctx context.Context, t turn.Turn) error {
	if s.cutOff(t) {
		after, err := s.change(ctx, t.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.Recover(t, now), nil })
		if err != nil {
			return err
		}
		t = after
	}
	if d := t.NextDeadline(); !d.IsZero() && !s.Clock.Now().Before(d) {
		after, err := s.change(ctx, t.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.CheckDeadlines(t, now), nil })
		if err != nil {
			return err
		}
		t = after
	}
	if !t.Monitored() || t.Stage == turn.Reserved {
		return nil // a reservation of this Bridge is in the hands of its own send
	}
	w := Watch{Turn: t, Ref: agent.Ref{Endpoint: t.Endpoint, Process: t.Process, Cwd: t.Workspace}}
	ctx, cancel := context.WithTimeout(ctx, armLimit)
	defer cancel()
	return s.Monitors.Watch(ctx, w)
}

// adopt takes over the Turns of dead Bridges of this Profile.
func (s *Service) adopt(ctx context.Context) error {
	var owners []ids.BridgeID
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		owners, err = turnsql.OwnersOfBlocking(tx, s.Bridge, s.Route.ProfileID)
		return err
	}); err != nil {
		return err
	}
	var errs []error
	for _, owner := range owners {
		alive, err := s.DB.Alive(owner)
		if err != nil || alive {
			errs = append(errs, err) // nil for a living owner
			continue
		}
		errs = append(errs, s.adoptFrom(ctx, owner))
	}
	return errors.Join(errs...)
}

func (s *Service) adoptFrom(ctx context.Context, owner ids.BridgeID) error {
	var plans []turn.Plan
	enqueued := false
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		rows, err := turnsql.List(tx, "WHERE blocking = 1 AND owner = ?", 10_000, owner)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Damaged != nil {
				s.Log.Error("a Turn of a Bridge that ended cannot be taken over", "turn", row.Turn.ID, "from", owner, "err", row.Damaged)
				continue
			}
			if row, err = turnsql.TakeOver(tx, row, s.Bridge); err != nil {
				return err
			}
			plan := turn.Adopt(row.Turn, owner, s.Bridge, tx.Now)
			more := turn.Recover(plan.Turn, tx.Now)
			plan.Turn = more.Turn
			plan.Events = append(plan.Events, more.Events...)
			plan.Notices = more.Notices
			plan, queued, err := s.commit(tx, row, plan)
			if err != nil {
				return err
			}
			enqueued = enqueued || queued
			plans = append(plans, plan)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range plans {
		s.Log.Info("took over a Turn of a Bridge that ended", "turn", p.Turn.ID, "from", owner, "status", p.Turn.Status, "submission", p.Turn.Stage)
		s.after(p, enqueued)
	}
	return nil
}

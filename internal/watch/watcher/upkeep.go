package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

// tendAtOnce bounds how many Watches are looked after at a time.
const tendAtOnce = 8

// Sweep is one pass over the Watches that this Bridge must care for: it takes over what a
// dead Bridge of the same Profile left, ends what is out of time, and makes sure that each
// active Watch has its monitor. Each has its own error boundary; the error joins theirs.
func (s *Service) Sweep(ctx context.Context) error {
	if !s.DB.Writable() {
		return nil // a Store of a newer release is only read
	}
	var errs []error
	if err := s.adopt(ctx); err != nil {
		errs = append(errs, err)
	}
	var rows []watchsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = watchsql.ActiveOf(tx, s.Bridge)
		return err
	}); err != nil {
		return errors.Join(append(errs, err)...)
	}
	var (
		mu    sync.Mutex // guards errs
		wg    sync.WaitGroup
		slots = make(chan struct{}, tendAtOnce)
	)
	for _, row := range rows {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := s.tend(ctx, row); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("watch %s: %w", row.Watch.ID, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tend checks one Watch's deadline and monitor.
func (s *Service) tend(ctx context.Context, row watchsql.Row) error {
	if row.Damaged != nil {
		return row.Damaged
	}
	w := row.Watch
	if !s.Clock.Now().Before(w.DeadlineAt) {
		_, err := s.change(ctx, w.ID, watch.CheckDeadline)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, armLimit)
	defer cancel()
	return s.Monitors.Watch(ctx, w)
}

// adopt takes over the Watches of dead Bridges of this Profile, whatever its revision: a
// Watch goes on, and what it has to say goes to its own route only.
func (s *Service) adopt(ctx context.Context) error {
	var owners []ids.BridgeID
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		owners, err = watchsql.OwnersOfActive(tx, s.Bridge, s.Route.ProfileID)
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
	var taken []ids.WatchID
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		taken = nil
		rows, err := watchsql.ActiveOf(tx, owner)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Damaged != nil {
				s.Log.Error("a Watch of a Bridge that ended cannot be taken over", "watch", row.Watch.ID, "from", owner, "err", row.Damaged)
				continue
			}
			if row, err = watchsql.TakeOver(tx, row, s.Bridge); err != nil {
				return err
			}
			if err := s.commit(tx, row, watch.Adopt(row.Watch, owner, s.Bridge, tx.Now)); err != nil {
				return err
			}
			taken = append(taken, row.Watch.ID)
		}
		return nil
	})
	for _, id := range taken {
		if err == nil {
			s.Log.Info("took over a Watch of a Bridge that ended", "watch", id, "from", owner)
		}
	}
	return err
}

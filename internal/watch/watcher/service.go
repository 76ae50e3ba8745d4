// Package watcher holds the use cases of Terminal Watches: create, end, list, what becomes
// of the things that monitors see, and the upkeep. It loads, asks package watch, and writes
// state, event and callback in one transaction.
//
// It types nothing and holds no way to type: no keyboard, no lock of a pane, no channel to
// an agent. It knows no MCP, no gRPC and no agent's screen.
package watcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

// Monitors runs one monitor per Watch, outside this process.
type Monitors interface {
	// Watch starts or keeps the Watch's monitor and returns when it is armed.
	Watch(ctx context.Context, w watch.Watch) error
	// Forget ends it. It does not wait.
	Forget(id ids.WatchID)
}

// Config is what a Service needs. All fields but Log are required, but a Service that only
// lists needs DB alone.
type Config struct {
	DB       *store.DB
	Bridge   ids.BridgeID
	Scanner  *discover.Scanner
	Monitors Monitors
	// Route is captured into each new Watch.
	Route outbox.Route
	// CheckProfile fails when the Profile file no longer is the one we started with.
	CheckProfile func() error
	// Enqueued is called after a commit that added a delivery.
	Enqueued func()
	Clock    clock.Clock
	Log      *slog.Logger
}

// Service is the use cases. Its methods are safe for concurrent use.
type Service struct{ Config }

// New returns a Service.
func New(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{c}
}

// change loads a Watch of this Bridge, decides, and commits the events, the row and the
// callbacks together. Effects follow the commit.
func (s *Service) change(ctx context.Context, id ids.WatchID, decide func(watch.Watch, time.Time) watch.Plan) (watch.Watch, error) {
	var plan watch.Plan
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		row, err := watchsql.Get(tx, id)
		if err != nil {
			return err
		}
		if plan = decide(row.Watch, tx.Now); len(plan.Events) > 0 && row.Owner != s.Bridge {
			return fault.New(watch.CodeStale, "watcher.change", "watch %s belongs to another Bridge that runs", id).WithHint("end it there, or end that Bridge first")
		}
		return s.commit(tx, row, plan)
	})
	if err != nil {
		return watch.Watch{}, err
	}
	s.after(plan)
	return plan.Watch, nil
}

// commit writes a plan: one transaction per fact.
func (s *Service) commit(tx *store.Tx, row watchsql.Row, plan watch.Plan) error {
	if plan.Supersedes {
		for _, kind := range watch.QuestionKinds {
			if _, err := outboxsql.Supersede(tx, sourceOf(plan.Watch.ID), kind); err != nil {
				return err
			}
		}
	}
	if err := watchsql.Save(tx, row, plan); err != nil {
		return err
	}
	return s.enqueue(tx, row, plan)
}

func sourceOf(id ids.WatchID) outbox.Source {
	return outbox.Source{Kind: outbox.SourceWatch, ID: string(id)}
}

// enqueue stores what the Host must hear, on the route that was captured with the Watch.
func (s *Service) enqueue(tx *store.Tx, row watchsql.Row, plan watch.Plan) error {
	if len(plan.Notices) == 0 {
		return nil
	}
	route, err := outboxsql.GetRoute(tx, plan.Watch.Route)
	if err != nil {
		return err
	}
	owner := row.Owner
	if (route.SessionDigest != s.Route.SessionDigest || route.ProfileID != s.Route.ProfileID) && plan.Watch.Origin != "" {
		// A Watch of another controller session that was taken over: this Bridge can only
		// fail to deliver for it. Under the name of the Bridge that ended, the callback
		// waits for the next Bridge of its own session.
		owner = plan.Watch.Origin
	}
	for _, n := range plan.Notices {
		d := outbox.New(route, sourceOf(plan.Watch.ID), outbox.Event{ID: n.MessageID, Type: n.Type, Kind: n.Kind, Body: []byte(n.Body), Metadata: n.Metadata}, tx.Now)
		if _, err := outboxsql.Enqueue(tx, d, owner); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) after(plan watch.Plan) {
	if len(plan.Notices) > 0 {
		s.Enqueued()
	}
	if plan.Watch.Status != watch.Active || plan.Rearm { // what must start anew does with the next sweep
		s.Monitors.Forget(plan.Watch.ID)
	}
}

// Observe applies what a monitor saw. An error means that it was not stored and must be
// told again, but fault.NotFound: the Watch is not ours to observe, or cannot be read.
func (s *Service) Observe(ctx context.Context, id ids.WatchID, o turn.Observation) error {
	const op = "watcher.observe"
	w, err := s.change(ctx, id, func(w watch.Watch, now time.Time) watch.Plan { return watch.Observe(w, o, now) })
	switch fault.CodeOf(err) {
	case watch.CodeStale:
		return fault.Wrap(err, fault.NotFound, op, "watch %s is observed by another Bridge", id)
	case store.CodeStorage:
		if s.damaged(ctx, id) {
			return fault.Wrap(err, fault.NotFound, op, "the record of watch %s is damaged", id)
		}
	}
	if err != nil {
		return err
	}
	if o.Kind != turn.ObsActivity {
		s.Log.Info("observed", "watch", id, "kind", o.Kind, "source", o.Source, "code", o.Code, "status", w.Status)
	}
	return nil
}

// damaged tells a record that cannot be read from a disk that cannot be read.
func (s *Service) damaged(ctx context.Context, id ids.WatchID) bool {
	damaged := false
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		rows, err := watchsql.List(tx, "WHERE watch_id = ?", 1, id)
		damaged = len(rows) == 1 && rows[0].Damaged != nil
		return err
	})
	return err == nil && damaged
}

// Unwatch ends a Watch. It touches no terminal. A Watch that has ended is returned as it
// is; one that a dead Bridge left is taken over first.
func (s *Service) Unwatch(ctx context.Context, id ids.WatchID) (watch.View, error) {
	if err := s.DB.CheckWritable(); err != nil {
		return watch.View{}, err
	}
	if err := s.release(ctx, id); err != nil {
		return watch.View{}, err
	}
	if _, err := s.change(ctx, id, watch.Unwatch); err != nil {
		return watch.View{}, err
	}
	return s.One(ctx, id)
}

// release takes an active Watch over from a Bridge that died, whatever its Profile: a
// person decides here.
func (s *Service) release(ctx context.Context, id ids.WatchID) error {
	var row watchsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, err = watchsql.Get(tx, id)
		return err
	}); err != nil || row.Owner == s.Bridge || row.Watch.Status != watch.Active {
		return err
	}
	if alive, err := s.DB.Alive(row.Owner); err != nil || alive {
		return nil // the change that follows refuses it as another's
	}
	return s.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := watchsql.TakeOver(tx, row, s.Bridge)
		return err
	})
}

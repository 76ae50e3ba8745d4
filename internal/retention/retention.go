// Package retention forgets what ended long ago: settled Turns, ended Watches and changes
// of threads with their journals and callbacks, and the records of Bridges and Sessions
// that nothing names any more; then it lets the file shrink.
//
// It never touches what keeps a terminal, what is on its way, and a callback that nobody
// heard and no operator decided. It knows no process and no tool.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

const (
	// Keep is how long a Bridge keeps what has ended.
	Keep = 7 * 24 * time.Hour
	// every is the pace of a Bridge's own passes: several Bridges share a Store.
	every = time.Hour
	// early is when the first pass begins: not while a Host waits for its first task.
	early = time.Minute
	// batch is how many records one transaction removes, so that a task that is sent
	// meanwhile waits a few milliseconds.
	batch = 100
	// passBatches bounds one pass of a Bridge; the rest waits for the next look.
	passBatches = 20
	// shrinkPages is how many pages of 4 KiB one pass of a Bridge gives back.
	shrinkPages = 5000
)

// Removed counts what was, or would be, forgotten.
type Removed struct {
	Turns       int64 `json:"turns"`
	Watches     int64 `json:"watches"`
	Transitions int64 `json:"transitions"`
	Sessions    int64 `json:"sessions"`
	Bridges     int64 `json:"bridges"`
	// Kept ended long ago too, but a callback of theirs was not heard.
	Kept int64 `json:"kept_with_unheard_callbacks"`
}

// Any reports whether something was forgotten.
func (r Removed) Any() bool {
	return r.Turns+r.Watches+r.Transitions+r.Sessions+r.Bridges > 0
}

// Pruner forgets what was last changed before a moment.
type Pruner struct {
	DB     *store.DB
	DryRun bool // count, change nothing
	turns  turnsql.Mark
	watch  ids.WatchID
	bridge ids.BridgeID // the last one that was looked at
}

// Prune runs until nothing old is left or limit batches were made; 0 means no limit. done
// reports that nothing is left.
func (p *Pruner) Prune(ctx context.Context, before time.Time, limit int) (sum Removed, done bool, err error) {
	for n := 0; limit == 0 || n < limit; n++ {
		var more bool
		step := func(tx *store.Tx) (err error) {
			more, err = p.step(tx, before, &sum)
			return err
		}
		was, turns, watch, bridge := sum, p.turns, p.watch, p.bridge
		if p.DryRun {
			err = p.DB.View(ctx, step)
		} else {
			err = p.DB.Update(ctx, step)
		}
		if err != nil {
			p.turns, p.watch, p.bridge = turns, watch, bridge
			return was, false, err
		}
		if !more {
			return sum, true, nil
		}
	}
	return sum, false, nil
}

// step is one transaction. more reports that there may be another one.
func (p *Pruner) step(tx *store.Tx, before time.Time, sum *Removed) (more bool, err error) {
	turns, mark, err := turnsql.Old(tx, before, p.turns, batch)
	if err != nil {
		return false, err
	}
	for _, id := range turns {
		if err := p.drop(tx, outbox.SourceTurn, string(id), &sum.Turns, &sum.Kept, func() error { return turnsql.Drop(tx, id) }); err != nil {
			return false, err
		}
	}
	p.turns = mark
	watches, err := watchsql.Old(tx, before, p.watch, batch)
	if err != nil {
		return false, err
	}
	for _, id := range watches {
		if err := p.drop(tx, outbox.SourceWatch, string(id), &sum.Watches, &sum.Kept, func() error { return watchsql.Drop(tx, id) }); err != nil {
			return false, err
		}
		p.watch = id
	}
	var transitions int64
	if p.DryRun {
		if sum.Transitions == 0 {
			sum.Transitions, err = nativesql.CountOld(tx, before)
		}
	} else {
		transitions, err = nativesql.DropOld(tx, before, batch)
		sum.Transitions += transitions
	}
	if err != nil || len(turns) == batch || len(watches) == batch || transitions == batch {
		return err == nil, err
	}
	return p.owners(tx, before, sum)
}

// drop forgets one source with its callbacks, unless one was not heard.
func (p *Pruner) drop(tx *store.Tx, kind, id string, removed, kept *int64, drop func() error) error {
	n, err := outboxsql.Unsettled(tx, kind, id)
	if err != nil {
		return err
	}
	if n > 0 {
		*kept++
		return nil
	}
	*removed++
	if p.DryRun {
		return nil
	}
	if err := outboxsql.Drop(tx, kind, id); err != nil {
		return err
	}
	return drop()
}

// Keeper is the upkeep of a running Bridge.
type Keeper struct {
	DB    *store.DB
	Clock clock.Clock
	Log   *slog.Logger
	next  time.Time
	work  *Pruner // a pass that goes on
}

// Sweep forgets a little of what ended longer than [Keep] ago, when it is time: a pass
// begins every hour, the first one a minute after the start.
func (k *Keeper) Sweep(ctx context.Context) error {
	now := k.Clock.Now()
	if k.next.IsZero() {
		k.next = now.Add(early)
	}
	if !k.DB.Writable() || now.Before(k.next) {
		return nil
	}
	if k.work == nil {
		k.work = &Pruner{DB: k.DB}
	}
	sum, done, err := k.work.Prune(ctx, now.Add(-Keep), passBatches)
	if err == nil && sum.Any() {
		k.Log.Info("forgot what ended long ago", "turns", sum.Turns, "watches", sum.Watches, "transitions", sum.Transitions, "sessions", sum.Sessions, "bridges", sum.Bridges)
		err = k.DB.Shrink(ctx, shrinkPages)
	}
	if done || err != nil {
		k.work, k.next = nil, now.Add(every)
	}
	return err
}

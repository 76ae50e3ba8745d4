package watcher

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

// shownLimit bounds how many Watches a list shows, the newest.
const shownLimit = 100

// The tools that rows point to.
const (
	toolWatch   = "agent_knock_knock_watch"
	toolUnwatch = "agent_knock_knock_unwatch"
)

// List shows the active Watches, with all also those that ended, newest change first. It
// writes nothing and works on a Store of a newer release, and on none. A damaged record is
// shown with what its columns say.
func (s *Service) List(ctx context.Context, all bool) ([]watch.View, error) {
	if s.DB == nil {
		return nil, nil
	}
	where := "WHERE active = 1"
	if all {
		where = ""
	}
	var out []watch.View
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		rows, err := watchsql.List(tx, where, shownLimit)
		if err != nil {
			return err
		}
		sources := make([]string, len(rows))
		for i, r := range rows {
			sources[i] = string(r.Watch.ID)
		}
		counts, err := outboxsql.CountsBySource(tx, outbox.SourceWatch, sources)
		if err != nil {
			return err
		}
		for _, r := range rows {
			out = append(out, s.view(r, counts[string(r.Watch.ID)]))
		}
		return nil
	})
	return out, err
}

// One shows a Watch; a missing one is fault.NotFound.
func (s *Service) One(ctx context.Context, id ids.WatchID) (watch.View, error) {
	var v watch.View
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		row, err := watchsql.Get(tx, id)
		if err != nil {
			return err
		}
		counts, err := outboxsql.CountsBySource(tx, outbox.SourceWatch, []string{string(id)})
		v = s.view(row, counts[string(id)])
		return err
	})
	return v, err
}

func (s *Service) view(r watchsql.Row, n map[outbox.Status]int) watch.View {
	v := r.Watch.View(watch.Counts{Pending: n[outbox.Pending] + n[outbox.Delivering], Delivered: n[outbox.Delivered],
		Failed: n[outbox.Failed] + n[outbox.Unproved] + n[outbox.Exhausted], Superseded: n[outbox.Superseded]},
		s.DB.Writable() && r.Damaged == nil)
	if r.Damaged != nil {
		v.Warnings = append(v.Warnings, "The record of this watch in the Store is damaged; it is not observed.")
	}
	return v
}

var _ dispatch.RowSource = (*Service)(nil)

// Actions offers a Watch for each terminal that works or waits for a person's decision in
// exactly one thread and carries no Turn of ours, and the end of the Watch where there is
// one.
func (s *Service) Actions(ctx context.Context, seen []dispatch.SeenTerminal) (map[string]map[string]dispatch.Action, error) {
	out := map[string]map[string]dispatch.Action{}
	if !s.DB.Writable() {
		return out, nil
	}
	keys := make([]string, len(seen))
	for i, t := range seen {
		keys[i] = t.Terminal.Key()
	}
	var watched map[string]watchsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		watched, err = watchsql.ActiveOn(tx, keys)
		return err
	}); err != nil {
		return nil, err
	}
	for i, t := range seen {
		if r, ok := watched[keys[i]]; ok {
			if r.Damaged == nil {
				out[keys[i]] = map[string]dispatch.Action{"unwatch": {Tool: toolUnwatch, Arguments: map[string]any{"watch_id": r.Watch.ID}}}
			}
			continue
		}
		busy := t.State == discover.Working || t.State == discover.Awaiting
		if busy && t.Held == nil && t.Terminal.Conflict == "" && t.Terminal.Native.Thread == agent.ThreadResolved {
			out[keys[i]] = map[string]dispatch.Action{"watch": {Tool: toolWatch, Arguments: map[string]any{"terminal_id": t.Terminal.ID}, NeedsIntent: true}}
		}
	}
	return out, nil
}

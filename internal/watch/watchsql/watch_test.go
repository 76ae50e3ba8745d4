package watchsql_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type rig struct {
	t     *testing.T
	db    *store.DB
	route ids.RouteID
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &rig{t: t, db: db}
	r.update(func(tx *store.Tx) (err error) {
		for _, b := range []ids.BridgeID{"bridge-a", "bridge-b", "bridge-c"} {
			profile := "p"
			if b == "bridge-c" {
				profile = "other"
			}
			if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: b, ProfileID: profile}); err != nil {
				return err
			}
		}
		r.route, err = outboxsql.PutRoute(tx, outbox.Route{Transport: "t", ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "s"})
		return err
	})
	return r
}

func (r *rig) update(f func(*store.Tx) error) {
	r.t.Helper()
	if err := r.db.Update(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// plan creates a Watch of a task in pane n.
func (r *rig) plan(n int, task string) watch.Plan {
	id := ids.NewWatch()
	return watch.Create(watch.Watch{ID: id, CallKey: string(id), Route: r.route, Mode: watch.ModeTask, TaskKey: task, Agent: "codex",
		Endpoint: turn.Endpoint{Socket: "/s", PaneID: fmt.Sprintf("%%%d", n), PanePID: 1}, Process: turn.Incarnation{PID: n + 10, Birth: "1@b"}}, t0)
}

func (r *rig) insert(n int, task string) (row watchsql.Row) {
	r.t.Helper()
	r.update(func(tx *store.Tx) (err error) {
		row, err = watchsql.Insert(tx, r.plan(n, task), "bridge-a")
		return err
	})
	return row
}

func TestASecondWatchOfATaskIsRefusedByName(t *testing.T) {
	r := newRig(t)
	first := r.insert(1, "task-1")
	err := r.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := watchsql.Insert(tx, r.plan(1, "task-1"), "bridge-a")
		return err
	})
	if !fault.Is(err, watch.CodeActive) || !strings.Contains(err.Error(), string(first.Watch.ID)) {
		t.Errorf("%v", err)
	}
	r.insert(1, "task-2")
	r.update(func(tx *store.Tx) error {
		return watchsql.Save(tx, first, watch.Unwatch(first.Watch, t0))
	})
	r.insert(1, "task-1") // the first one has ended
}

func TestAWatchComesBackAsItWasAndItsJournalFoldsToIt(t *testing.T) {
	r := newRig(t)
	row := r.insert(1, "task-1")
	p := watch.Observe(row.Watch, turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "a"}}, t0)
	r.update(func(tx *store.Tx) error { return watchsql.Save(tx, row, p) })
	r.update(func(tx *store.Tx) error {
		got, err := watchsql.Get(tx, row.Watch.ID)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got.Watch, p.Watch) || got.Owner != "bridge-a" || got.Terminal != p.Watch.TerminalKey() {
			t.Errorf("got %+v\nwant %+v", got.Watch, p.Watch)
		}
		events, err := watchsql.Events(tx, row.Watch.ID, 10)
		var folded watch.Watch
		for _, e := range events {
			if folded, err = watch.Apply(folded, e); err != nil {
				return err
			}
		}
		if !reflect.DeepEqual(folded, got.Watch) {
			t.Errorf("folded %+v", folded)
		}
		byCall, ok, err2 := watchsql.ByCallKey(tx, row.Watch.CallKey)
		if !ok || err2 != nil || byCall.Watch.ID != row.Watch.ID {
			t.Errorf("by call: %v %v", ok, err2)
		}
		if _, missing := watchsql.Get(tx, "terminal-watch-none"); !fault.Is(missing, fault.NotFound) {
			t.Errorf("%v", missing)
		}
		return err
	})
}

func TestAStaleOwnerIsRefusedAndOnlyBridgesOfTheProfileAreHeirs(t *testing.T) {
	r := newRig(t)
	row := r.insert(1, "task-1")
	r.update(func(tx *store.Tx) error {
		owners, err := watchsql.OwnersOfActive(tx, "bridge-b", "p")
		if len(owners) != 1 || owners[0] != "bridge-a" {
			t.Errorf("%v", owners)
		}
		if other, _ := watchsql.OwnersOfActive(tx, "bridge-c", "other"); len(other) != 0 {
			t.Errorf("a foreign Profile inherits from %v", other)
		}
		if err != nil {
			return err
		}
		_, err = watchsql.TakeOver(tx, row, "bridge-b")
		return err
	})
	err := r.db.Update(t.Context(), func(tx *store.Tx) error { return watchsql.Save(tx, row, watch.Unwatch(row.Watch, t0)) })
	if !fault.Is(err, watch.CodeStale) {
		t.Errorf("the old owner wrote: %v", err)
	}
}

func TestADamagedRecordHidesNoOther(t *testing.T) { // spec case 56
	r := newRig(t)
	bad, good := r.insert(1, "task-1"), r.insert(2, "task-2")
	r.update(func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE watch SET state = '{' WHERE watch_id = ?", bad.Watch.ID)
		return err
	})
	r.update(func(tx *store.Tx) error {
		rows, err := watchsql.ActiveOf(tx, "bridge-a")
		if len(rows) != 2 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, row := range rows {
			if (row.Damaged != nil) != (row.Watch.ID == bad.Watch.ID) {
				t.Errorf("%+v", row)
			}
		}
		on, err2 := watchsql.ActiveOn(tx, []string{bad.Terminal, good.Terminal, "none"})
		if len(on) != 2 || err2 != nil || on[bad.Terminal].Watch.Status != watch.Active {
			t.Errorf("%+v %v", on, err2)
		}
		if _, damaged := watchsql.Get(tx, bad.Watch.ID); !fault.Is(damaged, store.CodeStorage) {
			t.Errorf("%v", damaged)
		}
		return err
	})
}

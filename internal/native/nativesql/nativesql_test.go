package nativesql_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

var (
	t0  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end = turn.Endpoint{Socket: "/s", PaneID: "%1", PanePID: 1}
	inc = turn.Incarnation{PID: 11, Birth: "1@b"}
)

func newStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	update(t, db, func(tx *store.Tx) error {
		for id, profile := range map[ids.BridgeID]string{"bridge-a": "p", "bridge-b": "p", "bridge-c": "q"} {
			if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: id, ProfileID: profile}); err != nil {
				return err
			}
		}
		return nil
	})
	return db
}

func update(t *testing.T, db *store.DB, f func(*store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func plan() native.Plan {
	id := ids.NewTransition()
	return native.Prepare(native.Transition{ID: id, CallKey: string(id), Operation: native.NewThread, Endpoint: end, Process: inc, FromThread: "old"}, t0)
}

func insert(t *testing.T, db *store.DB) (row nativesql.Row) {
	t.Helper()
	update(t, db, func(tx *store.Tx) (err error) { row, err = nativesql.Insert(tx, plan(), "bridge-a"); return err })
	return row
}

func TestOneTransitionKeepsATerminalUntilItEnds(t *testing.T) {
	db := newStore(t)
	row := insert(t, db)
	err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := nativesql.Insert(tx, plan(), "bridge-b"); return err })
	if !fault.Is(err, native.CodeOpen) || !strings.Contains(err.Error(), string(row.Transition.ID)) {
		t.Fatalf("%v does not name the holder", err)
	}
	update(t, db, func(tx *store.Tx) error {
		p, err := native.Abort(row.Transition, "x", t0)
		if err != nil {
			return err
		}
		if _, err = nativesql.Save(tx, row, p); err != nil {
			return err
		}
		return nativesql.CheckFree(tx, row.Terminal)
	})
	insert(t, db)
}

func TestATurnAndATransitionNeverShareATerminal(t *testing.T) {
	db := newStore(t)
	var held ids.TurnID
	update(t, db, func(tx *store.Tx) error {
		s := turn.NewSession("codex", "old", "/w", turn.Binding{Endpoint: end, Process: inc}, t0)
		if err := turnsql.PutSession(tx, s); err != nil {
			return err
		}
		held = ids.NewTurn(t0)
		_, err := turnsql.Insert(tx, turn.Reserve(turn.Turn{ID: held, SessionID: s.ID, CallKey: "c", Endpoint: end, Process: inc, Hard: time.Hour}, t0), "bridge-a")
		return err
	})
	err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := nativesql.Insert(tx, plan(), "bridge-b"); return err })
	if !fault.Is(err, turn.CodeBlocked) || !strings.Contains(err.Error(), string(held)) {
		t.Fatalf("%v does not name the Turn", err)
	}
}

func TestAStaleOwnersWriteIsRefusedAndTheJournalFoldsToTheState(t *testing.T) {
	db := newStore(t)
	row := insert(t, db)
	var taken nativesql.Row
	update(t, db, func(tx *store.Tx) (err error) {
		if taken, err = nativesql.TakeOver(tx, row, "bridge-b"); err != nil {
			return err
		}
		taken, err = nativesql.Save(tx, taken, native.Adopt(taken.Transition, "bridge-a", "bridge-b", t0))
		return err
	})
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		p, err := native.Dispatch(row.Transition, t0)
		if err == nil {
			_, err = nativesql.Save(tx, row, p)
		}
		return err
	})
	if !fault.Is(err, turn.CodeStaleOwner) {
		t.Fatal(err)
	}
	err = db.View(t.Context(), func(tx *store.Tx) error {
		got, err := nativesql.Get(tx, row.Transition.ID)
		if err != nil {
			return err
		}
		events, err := nativesql.Events(tx, row.Transition.ID)
		var fold native.Transition
		for _, e := range events {
			if fold, err = native.Apply(fold, e); err != nil {
				return err
			}
		}
		if fold != got.Transition || got.Owner != "bridge-b" || got.Fence != 2 || fold.Seq != 2 {
			t.Errorf("fold %+v\nstored %+v", fold, got)
		}
		for other, want := range map[ids.BridgeID]bool{"bridge-b": true, "bridge-c": false} {
			if same, err := nativesql.SameProfile(tx, "bridge-a", other); err != nil || same != want {
				t.Errorf("%s: %v %v", other, same, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestADamagedTransitionStillKeepsItsTerminal(t *testing.T) { // as case E10
	db := newStore(t)
	row := insert(t, db)
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE native_transition SET state = '{' WHERE transition_id = ?", row.Transition.ID)
		return err
	})
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		if all, err := nativesql.Open(tx); err != nil || len(all) != 1 || all[0].Damaged == nil {
			t.Errorf("%+v %v", all, err)
		}
		if _, err := nativesql.Get(tx, row.Transition.ID); !fault.Is(err, store.CodeStorage) {
			t.Errorf("it reads as %v", err)
		}
		return nativesql.CheckFree(tx, row.Terminal)
	})
	if !fault.Is(err, native.CodeOpen) || !strings.Contains(err.Error(), string(row.Transition.ID)) {
		t.Error(err)
	}
}

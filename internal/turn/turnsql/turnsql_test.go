package turnsql_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	update(t, db, func(tx *store.Tx) error {
		for _, b := range []ids.BridgeID{"bridge-a", "bridge-b"} {
			if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: b, ProfileID: "p"}); err != nil {
				return err
			}
		}
		return nil
	})
	return db
}

func update(t testing.TB, db *store.DB, f func(*store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// plan reserves a Turn on pane n in a Session of its own.
func plan(t testing.TB, tx *store.Tx, n int) turn.Plan {
	t.Helper()
	b := turn.Binding{Endpoint: turn.Endpoint{Socket: "/s", PaneID: fmt.Sprintf("%%%d", n), PanePID: 1}, Process: turn.Incarnation{PID: n + 10, Birth: "1@b"}}
	s, ok, err := turnsql.BoundSession(tx, turn.TerminalKey(b.Endpoint, b.Process))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		s = turn.NewSession("codex", "", "/w", b, t0)
		if err := turnsql.PutSession(tx, s); err != nil {
			t.Fatal(err)
		}
	}
	id := ids.NewTurn(t0)
	return turn.Reserve(turn.Turn{ID: id, SessionID: s.ID, CallKey: string(id), Endpoint: b.Endpoint, Process: b.Process, Hard: time.Hour}, t0)
}

func TestASecondTurnOnATerminalIsRefusedByName(t *testing.T) { // spec case 39
	db := newStore(t)
	var first turnsql.Row
	update(t, db, func(tx *store.Tx) (err error) {
		first, err = turnsql.Insert(tx, plan(t, tx, 1), "bridge-a")
		return err
	})
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := turnsql.Insert(tx, plan(t, tx, 1), "bridge-b")
		return err
	})
	if !fault.Is(err, turn.CodeBlocked) {
		t.Fatal(err)
	}
	if _, msg, _ := fault.Public(err); !strings.Contains(msg, string(first.Turn.ID)) {
		t.Fatalf("%q does not name the holder", msg)
	}
}

func TestAStaleOwnersLateWriteIsRefused(t *testing.T) {
	db := newStore(t)
	var row turnsql.Row
	update(t, db, func(tx *store.Tx) (err error) {
		row, err = turnsql.Insert(tx, plan(t, tx, 1), "bridge-a")
		return err
	})
	update(t, db, func(tx *store.Tx) error {
		_, err := turnsql.TakeOver(tx, row, "bridge-b")
		return err
	})
	err := db.Update(t.Context(), func(tx *store.Tx) error {
		p, err := turn.Inject(row.Turn, t0)
		if err != nil {
			return err
		}
		return turnsql.Save(tx, row, p)
	})
	if !fault.Is(err, turn.CodeStaleOwner) {
		t.Fatal(err)
	}
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		got, err := turnsql.Get(tx, row.Turn.ID)
		if err == nil && (got.Owner != "bridge-b" || got.Turn.Stage != turn.Reserved) {
			t.Errorf("%+v", got)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestTheStoredStateIsTheFoldOfTheStoredJournal(t *testing.T) {
	db := newStore(t)
	var row turnsql.Row
	update(t, db, func(tx *store.Tx) (err error) {
		if row, err = turnsql.Insert(tx, plan(t, tx, 1), "bridge-a"); err != nil {
			return err
		}
		p, err := turn.Inject(row.Turn, t0)
		if err != nil {
			return err
		}
		if err := turnsql.Save(tx, row, p); err != nil {
			return err
		}
		row.Turn = p.Turn
		p = turn.MarkUncertain(row.Turn, "why", t0.Add(time.Second))
		row.Turn, err = p.Turn, turnsql.Save(tx, row, p)
		return err
	})
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		events, err := turnsql.Events(tx, row.Turn.ID, 100)
		if err != nil {
			return err
		}
		var fold turn.Turn
		for _, e := range events {
			if fold, err = turn.Apply(fold, e); err != nil {
				return err
			}
		}
		stored, err := turnsql.Get(tx, row.Turn.ID)
		if fold.Status != stored.Turn.Status || fold.Stage != stored.Turn.Stage || fold.Seq != stored.Turn.Seq || fold.Seq != 3 {
			t.Errorf("fold %+v\nstored %+v", fold, stored.Turn)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestASessionWriteOverAChangedRevisionIsAConflict(t *testing.T) {
	db := newStore(t)
	var s turn.Session
	update(t, db, func(tx *store.Tx) error {
		p := plan(t, tx, 1)
		var err error
		s, err = turnsql.GetSession(tx, p.Turn.SessionID)
		return err
	})
	update(t, db, func(tx *store.Tx) error { return turnsql.PutSession(tx, s.Detach(t0)) })
	err := db.Update(t.Context(), func(tx *store.Tx) error { return turnsql.PutSession(tx, s.LearnThread("x", t0)) })
	if !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
}

func TestNewestOnFindsTheNewestTurnOfEachTerminalInOneQuery(t *testing.T) {
	db := newStore(t)
	want := map[string]ids.TurnID{}
	update(t, db, func(tx *store.Tx) error {
		for n := range 5 {
			for range 3 {
				p := plan(t, tx, n)
				row, err := turnsql.Insert(tx, p, "bridge-a")
				if err != nil {
					return err
				}
				ab, err := turn.Abort(row.Turn, "x", t0)
				if err != nil {
					return err
				}
				if err := turnsql.Save(tx, row, ab); err != nil {
					return err
				}
				if k := p.Turn.TerminalKey(); row.Turn.ID > want[k] {
					want[k] = row.Turn.ID
				}
			}
		}
		var keys []string
		for k := range want {
			keys = append(keys, k)
		}
		got, err := turnsql.NewestOn(tx, append(keys, "no such terminal"))
		if err != nil {
			return err
		}
		for k, id := range want {
			if got[k].Turn.ID != id {
				t.Errorf("%s: %s, want %s", k, got[k].Turn.ID, id)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d rows", len(got))
		}
		return nil
	})
}

func TestADamagedRecordHidesNoOtherAndStillKeepsItsTerminal(t *testing.T) { // E10
	db := newStore(t)
	var bad, good turnsql.Row
	update(t, db, func(tx *store.Tx) (err error) {
		if bad, err = turnsql.Insert(tx, plan(t, tx, 1), "bridge-a"); err != nil {
			return err
		}
		if good, err = turnsql.Insert(tx, plan(t, tx, 2), "bridge-a"); err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE turn SET state = '{\"turn_id\": 7' WHERE turn_id = ?", bad.Turn.ID)
		return err
	})
	err := db.View(t.Context(), func(tx *store.Tx) error {
		rows, err := turnsql.Blocking(tx)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		for _, r := range rows {
			if (r.Damaged != nil) != (r.Turn.ID == bad.Turn.ID) || r.Terminal == "" || !r.Turn.Status.Blocking() {
				t.Errorf("%+v", r)
			}
		}
		if _, err := turnsql.Get(tx, bad.Turn.ID); !fault.Is(err, store.CodeStorage) {
			t.Errorf("the damaged one reads as %v", err)
		}
		_, err = turnsql.Get(tx, good.Turn.ID)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	err = db.Update(t.Context(), func(tx *store.Tx) error { _, err := turnsql.Insert(tx, plan(t, tx, 1), "bridge-b"); return err })
	if !fault.Is(err, turn.CodeBlocked) || !strings.Contains(err.Error(), string(bad.Turn.ID)) {
		t.Errorf("a second Turn on the damaged one's terminal: %v", err)
	}
}

// The newest Turn of a terminal is asked for by every list and status: it must be found,
// not looked for among all Turns that ever were (it took 7 s of 200,000).
func TestTheNewestTurnOfATerminalIsFoundByAnIndex(t *testing.T) {
	db := newStore(t)
	err := db.View(t.Context(), func(tx *store.Tx) error {
		for _, q := range []string{
			"SELECT turn_id FROM turn WHERE endpoint_key = 'k' ORDER BY created_at DESC, turn_id DESC LIMIT 1",
			"SELECT state FROM turn WHERE blocking = 1 ORDER BY updated_at DESC, turn_id DESC LIMIT 10000",
			"SELECT state FROM turn WHERE blocking = 0 ORDER BY updated_at DESC, turn_id DESC LIMIT 50",
		} {
			rows, err := tx.Query("EXPLAIN QUERY PLAN " + q)
			if err != nil {
				return err
			}
			plan := ""
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				plan += detail + "; "
			}
			rows.Close()
			if strings.Contains(q, "blocking = 1") && !strings.Contains(plan, "turn_blocking_time") || !strings.Contains(plan, "USING") || strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY") {
				t.Errorf("%s\nis planned as: %s", q, plan)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

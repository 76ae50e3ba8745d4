package retention_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/retention"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/bigstore"
)

// aged is a Store with old Turns, three of them of yesterday.
func aged(t *testing.T, n int) (*store.DB, time.Time) {
	t.Helper()
	dir, now := t.TempDir(), time.Now()
	bigstore.Fill(t, dir, n, now.Add(-8*24*time.Hour))
	bigstore.Fill(t, dir, 3, now.Add(-24*time.Hour))
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, now.Add(-retention.Keep)
}

func exec(t *testing.T, db *store.DB, sql string) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *store.DB, table string) (n int) {
	t.Helper()
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM " + table).Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func whole(t *testing.T, db *store.DB) {
	t.Helper()
	if n := count(t, db, "pragma_foreign_key_check"); n != 0 {
		t.Errorf("%d rows lost their parent", n)
	}
	if n := count(t, db, "pragma_integrity_check WHERE integrity_check <> 'ok'"); n != 0 {
		t.Errorf("integrity_check found %d problems", n)
	}
}

func TestWhatEndedLongAgoIsForgottenAndTheFileShrinks(t *testing.T) {
	db, before := aged(t, 1000)
	space, err := db.Space(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, done, err := (&retention.Pruner{DB: db}).Prune(t.Context(), before, 0)
	if err != nil || !done || sum.Turns != 1000 || sum.Kept != 0 || sum.Sessions != 1 || sum.Bridges != 1 {
		t.Errorf("%+v, %v, %v", sum, done, err)
	}
	for table, want := range map[string]int{"turn": 3, "outbox": 3, "session": 1, "bridge": 1, "turn_event": 15} {
		if n := count(t, db, table); n != want {
			t.Errorf("%d rows are left in %s, want %d", n, table, want)
		}
	}
	whole(t, db)
	if err := db.Shrink(t.Context(), 1<<20); err != nil {
		t.Fatal(err)
	}
	if after, err := db.Space(t.Context()); err != nil || after.Size > space.Size/4 {
		t.Errorf("%d bytes of %d are left, %v", after.Size, space.Size, err)
	}
}

func TestWhatWasNotHeardOrKeepsATerminalStays(t *testing.T) {
	db, before := aged(t, 250)
	exec(t, db, "UPDATE outbox SET status = 'uncertain' WHERE seq IN (2, 150)")
	exec(t, db, "UPDATE outbox SET status = 'pending', open = 1 WHERE seq = 3")
	exec(t, db, "UPDATE outbox SET status = 'discarded' WHERE seq = 4") // an operator decided
	exec(t, db, "UPDATE turn SET blocking = 1 WHERE turn_id = (SELECT source_id FROM outbox WHERE seq = 200)")
	sum, done, err := (&retention.Pruner{DB: db}).Prune(t.Context(), before, 0)
	if err != nil || !done || sum.Turns != 246 || sum.Kept != 3 || sum.Bridges != 0 {
		t.Errorf("%+v, %v, %v", sum, done, err)
	}
	if n := count(t, db, "turn"); n != 7 {
		t.Errorf("%d turns are left", n)
	}
	whole(t, db)
}

func TestADryRunCountsAndChangesNothing(t *testing.T) {
	db, before := aged(t, 250)
	exec(t, db, "UPDATE outbox SET status = 'failed' WHERE seq = 2")
	sum, done, err := (&retention.Pruner{DB: db, DryRun: true}).Prune(t.Context(), before, 0)
	if err != nil || !done || sum.Turns != 249 || sum.Kept != 1 || count(t, db, "turn") != 253 {
		t.Errorf("%+v, %v, %v", sum, done, err)
	}
}

// idle makes n Bridges and Sessions of long ago that own nothing.
func idle(t *testing.T, db *store.DB, n int) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			if _, err := tx.Exec(`INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at)
				VALUES (?, 'h', '1', 'p', '1', 'f', 1, 1)`, fmt.Sprintf("bridge-idle-%03d", i)); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO session (session_id, agent, status, endpoint_key, thread_id, workspace, binding, revision, created_at, updated_at)
				VALUES (?, 'codex', 'detached', 'e', '', '/w', '{}', 0, 0, 0)`, fmt.Sprintf("session-idle-%03d", i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Every Bridge of a Host that is started for each task leaves a record: what a dry run says
// is what the run does, and that ends when nothing old is left.
func TestADryRunSaysWhatTheRunForgetsAndThatLeavesNothingOld(t *testing.T) {
	db, before := aged(t, 150)
	idle(t, db, 250)
	exec(t, db, "UPDATE outbox SET status = 'failed' WHERE seq = 2") // its Turn stays, and their Bridge and Session
	release, err := db.Announce("bridge-idle-007")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	same := func(want retention.Removed) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			if sum, done, err := (&retention.Pruner{DB: db, DryRun: dry}).Prune(t.Context(), before, 0); err != nil || !done || sum != want {
				t.Errorf("dry %v: %+v, %v, %v, want %+v", dry, sum, done, err, want)
			}
		}
	}
	same(retention.Removed{Turns: 149, Sessions: 250, Bridges: 249, Kept: 1})
	exec(t, db, "UPDATE outbox SET status = 'discarded' WHERE seq = 2")
	same(retention.Removed{Turns: 1, Sessions: 1, Bridges: 1})
	same(retention.Removed{})
	if n := count(t, db, "bridge"); n != 2 { // the living one, and that of yesterday
		t.Errorf("%d Bridges are left", n)
	}
	whole(t, db)
}

// Bridges that live stand before many that do not: they end no pass.
func TestManyLivingBridgesDoNotKeepTheOthers(t *testing.T) {
	db, before := aged(t, 1)
	idle(t, db, 130)
	for i := range 120 {
		release, err := db.Announce(ids.BridgeID(fmt.Sprintf("bridge-idle-%03d", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	if sum, done, err := (&retention.Pruner{DB: db}).Prune(t.Context(), before, 0); err != nil || !done || sum.Bridges != 11 {
		t.Errorf("%+v, %v, %v", sum, done, err)
	}
}

// hand is a clock that a test moves.
type hand struct {
	clock.System
	now time.Time
}

func (h *hand) Now() time.Time { return h.now }

func TestABridgeForgetsInPassesAnHourApart(t *testing.T) {
	db, _ := aged(t, 2500)
	h := &hand{now: time.Now()}
	k := &retention.Keeper{DB: db, Clock: h, Log: slog.New(slog.DiscardHandler)}
	sweep := func(want int) {
		t.Helper()
		if err := k.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "turn"); n != want {
			t.Errorf("%d turns are left, want %d", n, want)
		}
	}
	sweep(2503) // not while it starts
	h.now = h.now.Add(61 * time.Second)
	sweep(503) // one bounded step
	sweep(3)
	exec(t, db, "UPDATE turn SET updated_at = 0 WHERE rowid = (SELECT min(rowid) FROM turn)")
	sweep(3) // the pass is over
	h.now = h.now.Add(61 * time.Minute)
	sweep(2)
}

// A Bridge, Session or source is only removed once SQLite knows that no row names it. With
// a partial index or none that reads the whole table for each: 50 Bridges took two minutes
// beside 100,000 Turns, with every writer waiting.
func TestWhatNamesAForgottenRecordIsFoundByAnIndex(t *testing.T) {
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const forgotten = "'bridge', 'session', 'turn', 'watch', 'native_transition', 'outbox'"
	const names = `SELECT m.name || '.' || f."from" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' AND f."table" IN (` + forgotten + `)`
	if n := count(t, db, "("+names+")"); n < 10 {
		t.Fatalf("only %d columns name such a record", n)
	}
	err = db.View(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.Query(names + ` AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name) l, pragma_index_info(l.name) i WHERE l.partial = 0 AND i.seqno = 0 AND i.name = f."from")`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var column string
			if err := rows.Scan(&column); err != nil {
				return err
			}
			t.Errorf("no whole index begins with %s", column)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The whole indexes of owners must not draw to themselves what runs every five seconds: of
// all that a Bridge owns nearly everything has ended.
func TestWhatAnOwnerStillHasToDoIsFoundByPartialIndexes(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for query, index := range map[string]string{
		"SELECT state FROM turn WHERE blocking = 1 AND owner = 'o' ORDER BY updated_at DESC, turn_id DESC LIMIT 9":                  "turn_blocking_owner",
		"SELECT DISTINCT owner FROM turn JOIN bridge ON bridge_id = owner WHERE blocking = 1 AND owner <> 'o' AND profile_id = 'p'": "turn_blocking_owner",
		"SELECT state FROM watch WHERE active = 1 AND owner = 'o' ORDER BY updated_at DESC, watch_id DESC LIMIT 9":                  "watch_active_owner",
		"SELECT state FROM native_transition WHERE open = 1 ORDER BY created_at, transition_id LIMIT 9":                             "native_transition_open_owner",
		"SELECT body FROM outbox o WHERE o.open = 1 AND o.owner = 'o' AND o.seq > 3 ORDER BY o.seq LIMIT 9":                         "outbox_open_owner",
		"SELECT DISTINCT o.owner FROM outbox o JOIN callback_route r ON r.route_id = o.route_id WHERE o.open = 1":                   "outbox_open_owner",
		"SELECT body FROM outbox o WHERE o.open = 1 AND o.status = 'delivering' AND o.owner = 'o' ORDER BY o.seq LIMIT 9":           "outbox_open_owner",
	} {
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			plan := ""
			rows, err := tx.Query("EXPLAIN QUERY PLAN " + query)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				plan += detail + "\n"
			}
			if !strings.Contains(plan, "INDEX "+index) {
				t.Errorf("%s\nis planned as\n%s", query, plan)
			}
			return rows.Err()
		}); err != nil {
			t.Fatal(err)
		}
	}
}

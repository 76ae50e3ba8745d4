package outboxsql_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

var route = outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "sha256:f", SessionDigest: "s"}

const me ids.BridgeID = "bridge-me"

// hand is a clock that a test sets.
type hand struct{ now time.Time }

func (h *hand) Now() time.Time                                    { return h.now }
func (h *hand) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func open(t testing.TB) (*store.DB, *hand) {
	t.Helper()
	clock := &hand{time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	update(t, db, func(tx *store.Tx) error {
		for _, id := range []ids.BridgeID{me, "bridge-other"} {
			if _, err := tx.Exec(`INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at)
				VALUES (?, 'h', '1', 'p', '1', 'f', 1, 1)`, id); err != nil {
				return err
			}
		}
		_, err := outboxsql.PutRoute(tx, route)
		return err
	})
	return db, clock
}

func update(t testing.TB, db *store.DB, fn func(*store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func event(id, body string) outbox.Event {
	return outbox.Event{ID: id, Type: "question", Kind: "approval", Body: []byte(body), RequiresResponse: true, Metadata: map[string]string{"k": "v"}}
}

func put(t testing.TB, db *store.DB, source string, ev outbox.Event) bool {
	t.Helper()
	var inserted bool
	update(t, db, func(tx *store.Tx) (err error) {
		inserted, err = outboxsql.Enqueue(tx, outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: source}, ev, tx.Now), me)
		return err
	})
	return inserted
}

func TestARouteIsStoredOnceAndComesBackAsItWas(t *testing.T) {
	db, _ := open(t)
	update(t, db, func(tx *store.Tx) error {
		id, err := outboxsql.PutRoute(tx, route)
		if err != nil {
			return err
		}
		got, err := outboxsql.GetRoute(tx, id)
		if got != route || id != route.ID() {
			t.Errorf("got %+v as %s", got, id)
		}
		if _, missing := outboxsql.GetRoute(tx, "route-none"); !fault.Is(missing, fault.NotFound) {
			t.Errorf("a missing route: %v", missing)
		}
		return err
	})
}

func TestCase34TheSameMessageIsOneDeliveryAndAnotherContentIsAConflict(t *testing.T) {
	db, clock := open(t)
	if !put(t, db, "turn-1", event("msg-1", "body ${HOME} \x00 😀")) {
		t.Fatal("not inserted")
	}
	clock.now = clock.now.Add(time.Hour)
	if put(t, db, "turn-1", event("msg-1", "body ${HOME} \x00 😀")) {
		t.Error("the same event made a second delivery")
	}
	for what, ev := range map[string]outbox.Event{"body": event("msg-1", "other"), "type": {ID: "msg-1", Type: "done", Body: []byte("x")}} {
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := outboxsql.Enqueue(tx, outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}, ev, tx.Now), me)
			return err
		})
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	update(t, db, func(tx *store.Tx) error {
		all, err := outboxsql.BySource(tx, outbox.SourceTurn, "turn-1")
		if len(all) != 1 {
			t.Fatalf("%d deliveries", len(all))
		}
		want := outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}, event("msg-1", "body ${HOME} \x00 😀"), tx.Now.Add(-time.Hour))
		if !reflect.DeepEqual(all[0], want) {
			t.Errorf("stored %+v\nwant   %+v", all[0], want)
		}
		return err
	})
}

func TestClaimsGoInOrderOfTheSourceAndOnlyWhenDue(t *testing.T) {
	db, clock := open(t)
	put(t, db, "turn-1", event("a1", ""))
	put(t, db, "turn-1", event("a2", ""))
	put(t, db, "turn-2", event("b1", ""))
	claim := func(limit int) (got []outbox.Delivery) {
		update(t, db, func(tx *store.Tx) (err error) {
			got, err = outboxsql.ClaimDue(tx, me, limit)
			return err
		})
		return got
	}
	next := func() (at time.Time, ok bool) {
		update(t, db, func(tx *store.Tx) (err error) {
			at, ok, err = outboxsql.NextDue(tx, me)
			return err
		})
		return at, ok
	}
	got := claim(9)
	if len(got) != 2 || got[0].Event.ID != "a1" || got[1].Event.ID != "b1" || got[0].AttemptID == got[1].AttemptID {
		t.Fatalf("claimed %+v", got)
	}
	if at, ok := next(); ok {
		t.Errorf("a2 counts as due at %s although a1 is in flight", at)
	}
	update(t, db, func(tx *store.Tx) error {
		d, err := outboxsql.MarkStarted(tx, got[0], me)
		if err != nil {
			return err
		}
		if _, err := outboxsql.MarkStarted(tx, d, me); !fault.Is(err, fault.Conflict) {
			t.Errorf("started twice: %v", err)
		}
		if _, ok, err := outboxsql.Settle(tx, d.DeliveryID, d.AttemptID, "bridge-other", outbox.Outcome{Kind: outbox.Accepted}); ok || err != nil {
			t.Errorf("a foreign Bridge settled: %v", err)
		}
		after, ok, err := outboxsql.Settle(tx, d.DeliveryID, d.AttemptID, me, outbox.Outcome{Kind: outbox.RetryableFailure, ErrorCode: "busy"})
		if !ok || after.NextAttemptAt != tx.Now.Add(5*time.Second) {
			t.Errorf("settled %v %+v", ok, after)
		}
		return err
	})
	if got := claim(9); len(got) != 0 {
		t.Errorf("claimed %+v before a1 was due and settled", got)
	}
	if at, ok := next(); !ok || at != clock.now.Add(5*time.Second) {
		t.Errorf("next due %s, %v", at, ok)
	}
	clock.now = clock.now.Add(5 * time.Second)
	if got := claim(9); len(got) != 1 || got[0].Event.ID != "a1" || got[0].Attempts != 2 {
		t.Errorf("claimed %+v, want a1 again", got)
	}
	update(t, db, func(tx *store.Tx) error {
		var n, started int
		err := tx.QueryRow(`SELECT count(*), sum(started_at > 0) FROM outbox_attempt`).Scan(&n, &started)
		if n != 3 || started != 1 {
			t.Errorf("%d attempts recorded, %d started", n, started)
		}
		counts, err2 := outboxsql.Counts(tx, me)
		if want := map[outbox.Status]int{outbox.Pending: 1, outbox.Delivering: 2}; !reflect.DeepEqual(counts, want) || err2 != nil {
			t.Errorf("counts %v, %v", counts, err2)
		}
		return err
	})
}

func TestOfTwoClaimsOfOneRecordTheSecondIsRefused(t *testing.T) {
	db, _ := open(t)
	put(t, db, "turn-1", event("a1", ""))
	update(t, db, func(tx *store.Tx) error {
		rows, err := outboxsql.RowsBySource(tx, outbox.SourceTurn, "turn-1")
		if err != nil {
			return err
		}
		if _, err := outboxsql.Claim(tx, rows[0]); err != nil {
			return err
		}
		if _, err := outboxsql.Claim(tx, rows[0]); !fault.Is(err, fault.Conflict) {
			t.Errorf("the second claim: %v", err)
		}
		return nil
	})
}

func TestANewerEventSupersedesWhatNobodyIsSending(t *testing.T) {
	db, _ := open(t)
	put(t, db, "turn-1", event("a1", ""))
	put(t, db, "turn-1", event("a2", ""))
	put(t, db, "turn-1", outbox.Event{ID: "done", Type: "done", Kind: "completion"})
	update(t, db, func(tx *store.Tx) error {
		if _, err := outboxsql.ClaimDue(tx, me, 1); err != nil { // a1 is on its way
			return err
		}
		n, err := outboxsql.Supersede(tx, outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}, "approval")
		if n != 1 {
			t.Errorf("%d superseded, want a2 only", n)
		}
		all, _ := outboxsql.BySource(tx, outbox.SourceTurn, "turn-1")
		for i, want := range []outbox.Status{outbox.Delivering, outbox.Superseded, outbox.Pending} {
			if all[i].Status != want {
				t.Errorf("%s is %s, want %s", all[i].Event.ID, all[i].Status, want)
			}
		}
		return err
	})
}

func TestADamagedRecordStopsNoOther(t *testing.T) { // E10
	db, _ := open(t)
	put(t, db, "t1", event("m1", "one"))
	put(t, db, "t2", event("m2", "two"))
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE outbox SET metadata = '{', outcome = 'x' WHERE message_id = 'm1'")
		return err
	})
	update(t, db, func(tx *store.Tx) error {
		claimed, err := outboxsql.ClaimDue(tx, me, 10)
		if len(claimed) != 2 || string(claimed[0].Event.Body) != "one" {
			t.Errorf("claimed %+v", claimed)
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE outbox SET outcome = 'x' WHERE message_id = 'm1'")
		return err
	})
	update(t, db, func(tx *store.Tx) error {
		rows, err := outboxsql.RunningOf(tx, me)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if o := rows[0].Outcome; o == nil || o.Kind != outbox.Uncertain {
			t.Errorf("evidence that cannot be read counts as %+v", o)
		}
		return nil
	})
}

func TestTheHotQueriesUseTheirIndexes(t *testing.T) {
	db, _ := open(t)
	update(t, db, func(tx *store.Tx) error {
		for q, args := range outboxsql.HotQueries {
			rows, err := tx.Query("EXPLAIN QUERY PLAN "+q, args...)
			if err != nil {
				return err
			}
			var plan []string
			for rows.Next() {
				var a, b, c int
				var detail string
				if err := rows.Scan(&a, &b, &c, &detail); err != nil {
					return err
				}
				plan = append(plan, detail)
			}
			rows.Close()
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "SCAN") || strings.Contains(text, "TEMP B-TREE") || !strings.Contains(text, "outbox_due") || !strings.Contains(text, "outbox_open") {
				t.Errorf("plan of %s:\n%s", q, text)
			}
		}
		return nil
	})
}

package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// later is the system's clock some time ahead.
type later struct {
	clock.System
	by *time.Duration
}

func (c later) Now() time.Time { return time.Now().Add(*c.by) }

func TestACallbackForWhichNoBridgeComesIsSaid(t *testing.T) {
	ahead := time.Duration(0)
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Clock: later{by: &ahead}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: "bridge-that-ended", ProfileID: "p"}); err != nil {
			return err
		}
		route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "d"}
		if _, err := outboxsql.PutRoute(tx, route); err != nil {
			return err
		}
		d := outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}, outbox.Event{ID: "msg-1", Type: "status", Kind: "completion", Body: []byte("done")}, tx.Now)
		_, err := outboxsql.Enqueue(tx, d, "bridge-that-ended")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Status{OK, Warned} {
		var r MachineReport
		if err := db.View(t.Context(), func(tx *store.Tx) error { return r.contents(tx, db) }); err != nil {
			t.Fatal(err)
		}
		if r.Checks[0].Name != CheckCallbacks || r.Checks[0].Status != want {
			t.Errorf("after %s: %+v", ahead, r.Checks[0])
		}
		ahead = abandonedAfter + time.Minute
	}
}

// enqueue stores callbacks of an owner that is recorded, and makes them what rows say.
func enqueue(t *testing.T, db *store.DB, owner ids.BridgeID, n int, set string) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: owner, ProfileID: "p"}); err != nil {
			return err
		}
		route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "d"}
		if _, err := outboxsql.PutRoute(tx, route); err != nil {
			return err
		}
		for i := range n {
			d := outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}, outbox.Event{ID: fmt.Sprintf("msg-%s-%d", owner, i), Type: "status", Kind: "completion", Body: []byte("done")}, tx.Now)
			if _, err := outboxsql.Enqueue(tx, d, owner); err != nil {
				return err
			}
		}
		if set == "" {
			return nil
		}
		_, err := tx.Exec("UPDATE outbox SET "+set+" WHERE owner = ?", owner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Callbacks that nobody comes for are counted, however many are newer; those that are on
// their way are not among the dead.
func TestEveryCallbackIsCountedAmongItsOwnKind(t *testing.T) {
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	gone, err := db.Announce("bridge-alive")
	if err != nil {
		t.Fatal(err)
	}
	defer gone()
	enqueue(t, db, "bridge-gone", outboxsql.MaxList+50, "created_at = 1")
	enqueue(t, db, "bridge-alive", outboxsql.MaxList+1, "")
	enqueue(t, db, "bridge-dead", 2, "status = 'failed', open = 0")
	enqueue(t, db, "bridge-stale", outboxsql.MaxList+2, "status = 'delivering', lease_expires_at = 1")
	enqueue(t, db, "bridge-trying", outboxsql.MaxList+3, fmt.Sprintf("status = 'delivering', lease_expires_at = %d", store.Millis(time.Now().Add(time.Hour))))
	r := MachineReport{OK: true}
	if err := db.View(t.Context(), func(tx *store.Tx) error { return r.contents(tx, db) }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Checks[:4] {
		got = append(got, fmt.Sprintf("%s %s: %s", c.Name, c.Status, c.Detail))
	}
	want := []string{
		"callbacks error: callbacks that nobody will deliver: 2 failed",
		"callbacks warning: 250 callbacks wait for a Bridge of their session, and none has come for 10m0s",
		"callbacks ok: on their way: 201 pending, 405 delivering",
		"leases error: 202 callback attempts ran out of their lease and nobody decided them",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

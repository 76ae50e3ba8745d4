package doctor

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
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

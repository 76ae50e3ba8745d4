package outboxsql_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

func TestAnOperatorListsRedrivesAndDiscards(t *testing.T) {
	db, _ := open(t)
	put(t, db, "turn-1", event("msg-1", "one"))
	put(t, db, "turn-2", event("msg-2", "two"))
	update(t, db, func(tx *store.Tx) error {
		rows, err := outboxsql.List(tx, nil, 10)
		if err != nil || len(rows) != 2 || rows[0].Event.ID != "msg-2" {
			t.Fatalf("%+v %v", rows, err)
		}
		if _, err := outboxsql.Redrive(tx, rows[0].DeliveryID, true, living); !fault.Is(err, fault.Conflict) {
			t.Errorf("what is pending is redriven: %v", err)
		}
		if r, err := outboxsql.Discard(tx, rows[0].DeliveryID, living); err != nil || r.Status != outbox.Discarded {
			t.Errorf("%+v %v", r, err)
		}
		d, err := outboxsql.Claim(tx, rows[1])
		if err != nil {
			return err
		}
		if d, err = outboxsql.MarkStarted(tx, d, rows[1].Owner); err != nil {
			return err
		}
		if _, _, err := outboxsql.Settle(tx, d.DeliveryID, d.AttemptID, rows[1].Owner, outbox.Outcome{Kind: outbox.Uncertain, At: tx.Now}); err != nil {
			return err
		}
		if _, err := outboxsql.Redrive(tx, d.DeliveryID, false, living); !fault.Is(err, outbox.CodeNotChecked) {
			t.Errorf("unchecked: %v", err)
		}
		if _, err := outboxsql.Redrive(tx, d.DeliveryID, true, living); err != nil {
			t.Errorf("checked: %v", err)
		}
		due, err := outboxsql.ClaimDue(tx, rows[1].Owner, 10)
		if err != nil || len(due) != 1 || due[0].DeliveryID != d.DeliveryID || due[0].IdempotencyKey != d.IdempotencyKey {
			t.Errorf("%+v %v", due, err)
		}
		dead, err := outboxsql.List(tx, []outbox.Status{outbox.Discarded, outbox.Failed}, 10)
		if err != nil || len(dead) != 1 || dead[0].Event.ID != "msg-2" {
			t.Errorf("%+v %v", dead, err)
		}
		return nil
	})
}

func living(ids.BridgeID) (bool, error) { return true, nil }

// A session may never come back. Nobody takes its deliveries over then, and an operator
// decides what its dead Bridge left.
func TestAnOperatorDecidesTheAttemptOfADeadBridge(t *testing.T) {
	dead := func(ids.BridgeID) (bool, error) { return false, nil }
	unknown := func(ids.BridgeID) (bool, error) { return false, fault.New(fault.Unavailable, "test", "cannot tell") }
	for _, c := range []struct {
		name    string
		started bool
		alive   outboxsql.Alive
		redrive fault.Code // of an unchecked one, "" for none
		discard bool
	}{
		{"a started one may have been heard", true, dead, outbox.CodeNotChecked, true},
		{"one that was not started never happened", false, dead, fault.Conflict, true},
		{"a living owner decides it", true, living, fault.Conflict, false},
		{"what cannot be told lives", true, unknown, fault.Conflict, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, _ := open(t)
			put(t, db, "turn-1", event("msg-1", "one"))
			update(t, db, func(tx *store.Tx) error {
				rows, err := outboxsql.List(tx, nil, 10)
				if err != nil {
					return err
				}
				d, err := outboxsql.Claim(tx, rows[0])
				if err == nil && c.started {
					d, err = outboxsql.MarkStarted(tx, d, rows[0].Owner)
				}
				if err != nil {
					return err
				}
				if _, err := outboxsql.Redrive(tx, d.DeliveryID, false, c.alive); !fault.Is(err, c.redrive) {
					t.Errorf("redrive: %v", err)
				}
				if r, err := outboxsql.Discard(tx, d.DeliveryID, c.alive); (err == nil) != c.discard || c.discard && r.Status != outbox.Discarded {
					t.Errorf("discard: %+v %v", r, err)
				}
				got, err := outboxsql.Journeys(tx, d.Source)
				if err != nil {
					return err
				}
				// What ended is told with its end; what never happened is no attempt.
				if legs := got[0].Attempts; (len(legs) == 1 && legs[0].ErrorCode == outbox.CodeLost) != (c.started && c.discard) {
					t.Errorf("the attempts are %+v", legs)
				}
				return nil
			})
		})
	}
}

// A person looked in the Host: the message is sent once more, under the same ids.
func TestAnAttemptThatADeadBridgeLeftIsSentAgainWhenItWasLookedUp(t *testing.T) {
	db, _ := open(t)
	put(t, db, "turn-1", event("msg-1", "one"))
	update(t, db, func(tx *store.Tx) error {
		due, err := outboxsql.ClaimDue(tx, me, 1)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		if _, err := outboxsql.MarkStarted(tx, due[0], me); err != nil {
			return err
		}
		dead := func(ids.BridgeID) (bool, error) { return false, nil }
		if r, err := outboxsql.Redrive(tx, due[0].DeliveryID, true, dead); err != nil || r.Status != outbox.Pending || r.Owner != me {
			t.Errorf("%+v %v", r, err)
		}
		again, err := outboxsql.ClaimDue(tx, me, 1)
		if err != nil || len(again) != 1 || again[0].IdempotencyKey != due[0].IdempotencyKey || again[0].AttemptID == due[0].AttemptID {
			t.Errorf("%+v %v", again, err)
		}
		return nil
	})
}

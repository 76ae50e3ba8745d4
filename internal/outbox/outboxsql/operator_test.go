package outboxsql_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
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
		if _, err := outboxsql.Redrive(tx, rows[0].DeliveryID, true); !fault.Is(err, fault.Conflict) {
			t.Errorf("what is pending is redriven: %v", err)
		}
		if r, err := outboxsql.Discard(tx, rows[0].DeliveryID); err != nil || r.Status != outbox.Discarded {
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
		if _, err := outboxsql.Redrive(tx, d.DeliveryID, false); !fault.Is(err, outbox.CodeNotChecked) {
			t.Errorf("unchecked: %v", err)
		}
		if _, err := outboxsql.Redrive(tx, d.DeliveryID, true); err != nil {
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

package outboxsql_test

import (
	"fmt"
	"testing"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// A Watch can have more callbacks than are read: the newest are, in their order.
func TestJourneysAreTheNewestInTheirOrder(t *testing.T) {
	db, _ := open(t)
	const all = outboxsql.LegLimit + 5
	for i := range all {
		put(t, db, "turn-1", event(fmt.Sprintf("msg-%d", i), "text"))
	}
	update(t, db, func(tx *store.Tx) error {
		rows, err := outboxsql.List(tx, nil, 1)
		if err != nil {
			return err
		}
		last := rows[0].DeliveryID
		if _, err := outboxsql.Discard(tx, last, living); err != nil {
			return err
		}
		got, err := outboxsql.Journeys(tx, rows[0].Source)
		if err != nil || len(got) != outboxsql.LegLimit {
			t.Fatalf("%d journeys, %v", len(got), err)
		}
		end := got[len(got)-1]
		if end.DeliveryID != string(last) || end.Status != outbox.Discarded || end.SettledAt.IsZero() || got[0].QueuedAt.After(end.QueuedAt) {
			t.Errorf("the last is %+v, not %s", end, last)
		}
		for i := 1; i < len(got); i++ {
			if got[i].DeliveryID == got[i-1].DeliveryID {
				t.Fatalf("%s is there twice", got[i].DeliveryID)
			}
		}
		return nil
	})
}

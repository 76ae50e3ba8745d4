package outboxsql

import (
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Unsettled counts the deliveries of a source that are on their way, or dead and not yet
// decided by an operator: what was not heard is not forgotten.
func Unsettled(tx *store.Tx, kind, id string) (n int, err error) {
	err = tx.QueryRow(`SELECT count(*) FROM outbox WHERE source_kind = ? AND source_id = ? AND status NOT IN (?, ?, ?)`,
		kind, id, outbox.Delivered, outbox.Superseded, outbox.Discarded).Scan(&n)
	return n, err
}

// Drop removes the deliveries of a source with their attempts, but those that are on their
// way.
func Drop(tx *store.Tx, kind, id string) error {
	_, err := tx.Exec("DELETE FROM outbox WHERE source_kind = ? AND source_id = ? AND open = 0", kind, id)
	return err
}

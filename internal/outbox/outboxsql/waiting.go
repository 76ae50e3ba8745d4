package outboxsql

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// WaitingSince counts the deliveries that wait since before a moment, of each owner. It
// reads no body, so it may count them all.
func WaitingSince(tx *store.Tx, before time.Time) (map[ids.BridgeID]int, error) {
	rows, err := tx.Query("SELECT owner, count(*) FROM outbox WHERE status = 'pending' AND created_at < ? GROUP BY owner", store.Millis(before))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := make(map[ids.BridgeID]int)
	for rows.Next() {
		var owner ids.BridgeID
		var n int
		if err := rows.Scan(&owner, &n); err != nil {
			return nil, err
		}
		counts[owner] = n
	}
	return counts, rows.Err()
}

// StaleLeases counts the attempts whose lease ran out before now and that nobody decided.
func StaleLeases(tx *store.Tx) (n int, err error) {
	err = tx.QueryRow("SELECT count(*) FROM outbox WHERE open = 1 AND status = ? AND lease_expires_at < ?", outbox.Delivering, store.Millis(tx.Now)).Scan(&n)
	return n, err
}

package watchsql

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Old returns the Watches that ended and were last changed before a moment, oldest first,
// after the one that was seen last.
func Old(tx *store.Tx, before time.Time, after ids.WatchID, limit int) ([]ids.WatchID, error) {
	rows, err := tx.Query("SELECT watch_id FROM watch WHERE active = 0 AND updated_at < ? AND watch_id > ? ORDER BY watch_id LIMIT ?", store.Millis(before), after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []ids.WatchID
	for rows.Next() {
		var id ids.WatchID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

// Drop removes a Watch that ended, with its journal.
func Drop(tx *store.Tx, id ids.WatchID) error {
	_, err := tx.Exec("DELETE FROM watch WHERE watch_id = ? AND active = 0", id)
	return err
}

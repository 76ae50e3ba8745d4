package turnsql

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

// Mark is where a walk over old records stands: what it has seen comes before.
type Mark struct {
	UpdatedAt int64
	ID        string
}

// Old returns the Turns that keep no terminal and were last changed before a moment,
// oldest first, from a mark on, and the mark of the last one.
func Old(tx *store.Tx, before time.Time, from Mark, limit int) ([]ids.TurnID, Mark, error) {
	rows, err := tx.Query(`SELECT turn_id, updated_at FROM turn WHERE blocking = 0 AND updated_at < ? AND (updated_at, turn_id) > (?, ?)
		ORDER BY updated_at, turn_id LIMIT ?`, store.Millis(before), from.UpdatedAt, from.ID, limit)
	if err != nil {
		return nil, from, err
	}
	defer rows.Close()
	var out []ids.TurnID
	for rows.Next() {
		if err := rows.Scan(&from.ID, &from.UpdatedAt); err != nil {
			return nil, from, err
		}
		out = append(out, ids.TurnID(from.ID))
	}
	return out, from, rows.Err()
}

// Drop removes a Turn with its journal and its calls, if it keeps no terminal.
func Drop(tx *store.Tx, id ids.TurnID) error {
	_, err := tx.Exec("DELETE FROM turn WHERE turn_id = ? AND blocking = 0", id)
	return err
}

// DropSessions removes the Sessions that nobody is bound to, that no Turn names and that
// were last changed before a moment. It returns how many.
func DropSessions(tx *store.Tx, before time.Time) (int64, error) {
	res, err := tx.Exec(`DELETE FROM session WHERE status <> 'bound' AND updated_at < ?
		AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session_id = session.session_id)`, store.Millis(before))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// OldBridges returns the Bridges that started before a moment and own nothing any more, in
// the order of their ids, after the one that was seen last. Whether one lives is not in the
// Store.
func OldBridges(tx *store.Tx, before time.Time, after ids.BridgeID, limit int) ([]ids.BridgeID, error) {
	return table.Column[ids.BridgeID](tx.Query(`SELECT bridge_id FROM bridge WHERE started_at < ? AND bridge_id > ?
		AND NOT EXISTS (SELECT 1 FROM turn WHERE owner = bridge_id) AND NOT EXISTS (SELECT 1 FROM outbox WHERE owner = bridge_id)
		AND NOT EXISTS (SELECT 1 FROM watch WHERE owner = bridge_id) AND NOT EXISTS (SELECT 1 FROM native_transition WHERE owner = bridge_id)
		ORDER BY bridge_id LIMIT ?`, store.Millis(before), after, limit))
}

// DropBridge removes the record of a Bridge that owns nothing.
func DropBridge(tx *store.Tx, id ids.BridgeID) error {
	_, err := tx.Exec("DELETE FROM bridge WHERE bridge_id = ?", id)
	return err
}

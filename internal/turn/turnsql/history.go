package turnsql

import (
	"encoding/json"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
)

// History returns the Turns that keep no terminal, newest change first.
func History(tx *store.Tx, limit int) ([]Row, error) { return List(tx, "WHERE blocking = 0", limit) }

// Settled returns those of the named Turns that keep no terminal, newest change first.
func Settled(tx *store.Tx, names []string) ([]Row, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return List(tx, "WHERE blocking = 0 AND turn_id IN (SELECT value FROM json_each(?))", len(names), string(list))
}

// BridgePID returns the process id that a Bridge was started with, 0 for one that is not
// known.
func BridgePID(tx *store.Tx, id ids.BridgeID) (pid int, err error) {
	err = tx.QueryRow("SELECT pid FROM bridge WHERE bridge_id = ?", id).Scan(&pid)
	if store.NotFound(err) {
		return 0, nil
	}
	return pid, err
}

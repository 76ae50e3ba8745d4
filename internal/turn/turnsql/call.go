package turnsql

import (
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Call is a tool call that typed something for a Turn, or may have. RequestHash stands for
// its arguments: the same call with other ones is another call under a used id.
type Call struct {
	Key         string
	TurnID      ids.TurnID
	Tool        string
	RequestHash string
}

// PutCall records a call, in the transaction of what it reserved. A key is recorded once.
func PutCall(tx *store.Tx, c Call) error {
	_, err := tx.Exec("INSERT INTO turn_call (call_key, turn_id, tool, request_hash, created_at) VALUES (?, ?, ?, ?, ?)",
		c.Key, c.TurnID, c.Tool, c.RequestHash, store.Millis(tx.Now))
	return err
}

// GetCall returns the call of a key, if there was one.
func GetCall(tx *store.Tx, key string) (Call, bool, error) {
	c := Call{Key: key}
	err := tx.QueryRow("SELECT turn_id, tool, request_hash FROM turn_call WHERE call_key = ?", key).Scan(&c.TurnID, &c.Tool, &c.RequestHash)
	if store.NotFound(err) {
		return c, false, nil
	}
	return c, err == nil, err
}

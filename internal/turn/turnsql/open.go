package turnsql

import "github.com/agent-knock-knock/akk/internal/store"

// CountBlocking returns how many Turns of the Store keep a terminal. An index answers it.
func CountBlocking(tx *store.Tx) (n int64, err error) {
	err = tx.QueryRow("SELECT count(*) FROM turn WHERE blocking = 1").Scan(&n)
	return n, err
}

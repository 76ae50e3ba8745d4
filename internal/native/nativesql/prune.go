package nativesql

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
)

// DropOld removes Transitions that ended and were last changed before a moment, with their
// journals, at most limit of them. It returns how many.
func DropOld(tx *store.Tx, before time.Time, limit int) (int64, error) {
	res, err := tx.Exec(`DELETE FROM native_transition WHERE transition_id IN (
		SELECT transition_id FROM native_transition WHERE open = 0 AND updated_at < ? LIMIT ?)`, store.Millis(before), limit)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// CountOld counts what [DropOld] would remove.
func CountOld(tx *store.Tx, before time.Time) (n int64, err error) {
	err = tx.QueryRow("SELECT count(*) FROM native_transition WHERE open = 0 AND updated_at < ?", store.Millis(before)).Scan(&n)
	return n, err
}

package outboxsql

import (
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Brief is the newest delivery of a source, in short: no body is read.
type Brief struct {
	MessageID     string
	Kind          string
	Status        outbox.Status
	Attempts      int
	NextAttemptAt time.Time
	AcceptedAt    time.Time
	LastError     string
	Retryable     bool // some delivery of the source failed and may be tried again
}

// Briefs returns the newest delivery of each of the sources, by source id. A source without
// one is not among them.
func Briefs(tx *store.Tx, kind string, sources []string) (map[string]Brief, error) {
	out := make(map[string]Brief, len(sources))
	if len(sources) == 0 {
		return out, nil
	}
	list, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(`SELECT o.source_id, o.message_id, o.kind, o.status, o.attempts, o.next_attempt_at, o.accepted_at, o.last_error,
			EXISTS (SELECT 1 FROM outbox x WHERE x.source_kind = o.source_kind AND x.source_id = o.source_id AND x.open = 1
				AND (x.attempts > 0 AND x.status = 'pending' OR x.status = 'delivering' AND x.lease_expires_at < ?))
		FROM outbox o WHERE o.seq IN (SELECT (SELECT max(seq) FROM outbox WHERE source_kind = ? AND source_id = j.value) FROM json_each(?) j)`,
		store.Millis(tx.Now), kind, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b Brief
		var source string
		var next, accepted int64
		if err := rows.Scan(&source, &b.MessageID, &b.Kind, &b.Status, &b.Attempts, &next, &accepted, &b.LastError, &b.Retryable); err != nil {
			return nil, err
		}
		b.NextAttemptAt, b.AcceptedAt = store.Time(next), store.Time(accepted)
		out[source] = b
	}
	return out, rows.Err()
}

// OpenSources names the sources of a kind that have a delivery on its way, at most limit.
func OpenSources(tx *store.Tx, kind string, limit int) ([]string, error) {
	rows, err := tx.Query("SELECT DISTINCT source_id FROM outbox WHERE source_kind = ? AND open = 1 ORDER BY source_id DESC LIMIT ?", kind, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

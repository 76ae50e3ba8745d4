package outboxsql

import (
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

// first keeps the order of a source: only its oldest open delivery may be attempted.
const first = ` AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.open = 1 AND e.source_kind = o.source_kind AND e.source_id = o.source_id AND e.seq < o.seq)`

// The two queries that run for every delivery. Their cost must not grow with the table.
const (
	whereDue   = `WHERE o.status = 'pending' AND o.owner = ? AND o.next_attempt_at <= ?` + first + ` ORDER BY o.next_attempt_at, o.seq LIMIT ?`
	selectNext = `SELECT o.next_attempt_at FROM outbox o WHERE o.status = 'pending' AND o.owner = ?` + first + ` ORDER BY o.next_attempt_at, o.seq LIMIT 1`
)

// ClaimDue begins an attempt of up to limit due deliveries of owner, the longest due
// first, one per source. The attempts are leased and not marked started.
func ClaimDue(tx *store.Tx, owner ids.BridgeID, limit int) ([]outbox.Delivery, error) {
	rows, err := list(tx, whereDue, owner, store.Millis(tx.Now), limit)
	if err != nil {
		return nil, err
	}
	var out []outbox.Delivery
	for _, r := range rows {
		if outbox.Decide(r.Delivery, tx.Now, true) != outbox.DoRetry {
			continue
		}
		d, err := Claim(tx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Claim begins an attempt of a delivery, of which outbox.Decide said that it may be
// retried. fault.Conflict says that somebody else was faster.
func Claim(tx *store.Tx, r Row) (outbox.Delivery, error) {
	d := outbox.Begin(r.Delivery, ids.NewAttempt(), tx.Now)
	ok, err := save(tx, d, r.Owner, r.AttemptID)
	if err != nil {
		return d, err
	}
	if !ok {
		return d, stale("outboxsql.claim", d.DeliveryID)
	}
	_, err = tx.Exec(`INSERT INTO outbox_attempt (attempt_id, delivery_id, number, owner, claimed_at, started_at, ended_at, outcome) VALUES (?, ?, ?, ?, ?, 0, 0, '')`,
		d.AttemptID, d.DeliveryID, d.Attempts, r.Owner, store.Millis(tx.Now))
	return d, err
}

// MarkStarted records that the program of the attempt may run from now on. Commit it
// before the program is started.
func MarkStarted(tx *store.Tx, d outbox.Delivery, owner ids.BridgeID) (outbox.Delivery, error) {
	next, ok := outbox.MarkStarted(d, d.AttemptID, tx.Now)
	if ok {
		var err error
		if ok, err = save(tx, next, owner, d.AttemptID); err != nil {
			return d, err
		}
	}
	if !ok {
		return d, stale("outboxsql.started", d.DeliveryID)
	}
	_, err := tx.Exec(`UPDATE outbox_attempt SET started_at = ? WHERE attempt_id = ?`, store.Millis(tx.Now), d.AttemptID)
	return next, err
}

// RecordOutcome keeps the evidence of an attempt without settling the delivery. It
// reports false when the attempt is not in flight any more.
func RecordOutcome(tx *store.Tx, id ids.DeliveryID, attempt ids.AttemptID, owner ids.BridgeID, o outbox.Outcome) (outbox.Delivery, bool, error) {
	return change(tx, id, attempt, owner, func(d outbox.Delivery) (outbox.Delivery, bool) { return outbox.RecordOutcome(d, attempt, o, tx.Now) })
}

// Settle ends an attempt of owner with its outcome. It reports false, and changes nothing,
// when the attempt is not in flight any more.
func Settle(tx *store.Tx, id ids.DeliveryID, attempt ids.AttemptID, owner ids.BridgeID, o outbox.Outcome) (outbox.Delivery, bool, error) {
	return change(tx, id, attempt, owner, func(d outbox.Delivery) (outbox.Delivery, bool) { return outbox.Settle(d, attempt, o, tx.Now) })
}

// Postpone gives an attempt back that provably did not begin.
func Postpone(tx *store.Tx, id ids.DeliveryID, attempt ids.AttemptID, owner ids.BridgeID, code string) (outbox.Delivery, bool, error) {
	return change(tx, id, attempt, owner, func(d outbox.Delivery) (outbox.Delivery, bool) { return outbox.Postpone(d, attempt, code, tx.Now) })
}

func change(tx *store.Tx, id ids.DeliveryID, attempt ids.AttemptID, owner ids.BridgeID, rule func(outbox.Delivery) (outbox.Delivery, bool)) (outbox.Delivery, bool, error) {
	r, err := Get(tx, id)
	if err != nil {
		return outbox.Delivery{}, false, err
	}
	d, ok := rule(r.Delivery)
	if !ok || r.Owner != owner {
		return r.Delivery, false, nil
	}
	if ok, err = save(tx, d, owner, attempt); err != nil || !ok {
		return r.Delivery, false, err
	}
	outcome, err := encodeOutcome(d.Outcome)
	if err != nil {
		return d, false, err
	}
	_, err = tx.Exec(`UPDATE outbox_attempt SET ended_at = ?, outcome = ? WHERE attempt_id = ?`, store.Millis(tx.Now), outcome, attempt)
	return d, err == nil, err
}

// Supersede ends the pending deliveries of a source whose event has the given kind, and
// returns how many those were. One that is being sent is left alone.
func Supersede(tx *store.Tx, source outbox.Source, eventKind string) (int, error) {
	rows, err := list(tx, "WHERE o.open = 1 AND o.source_kind = ? AND o.source_id = ? AND o.kind = ?", source.Kind, source.ID, eventKind)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range rows {
		d, ok := outbox.Supersede(r.Delivery, tx.Now)
		if !ok {
			continue
		}
		if ok, err = save(tx, d, r.Owner, r.AttemptID); err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

// NextDue returns when the next delivery of owner becomes due, leaving out those that
// wait for an older one of their source.
func NextDue(tx *store.Tx, owner ids.BridgeID) (time.Time, bool, error) {
	var ms int64
	err := tx.QueryRow(selectNext, owner).Scan(&ms)
	if store.NotFound(err) {
		return time.Time{}, false, nil
	}
	return store.Time(ms), err == nil, err
}

// Counts returns the number of deliveries of owner by status; of all Bridges when owner
// is empty.
func Counts(tx *store.Tx, owner ids.BridgeID) (map[outbox.Status]int, error) {
	query, args := "SELECT status, count(*) FROM outbox GROUP BY status", []any{} // an index alone answers this one
	if owner != "" {
		query, args = "SELECT status, count(*) FROM outbox WHERE owner = ? GROUP BY status", []any{owner}
	}
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := make(map[outbox.Status]int)
	for rows.Next() {
		var s outbox.Status
		var n int
		if err := rows.Scan(&s, &n); err != nil {
			return nil, err
		}
		counts[s] = n
	}
	return counts, rows.Err()
}

// CountsBySource returns the number of deliveries by status of each of the given sources
// of a kind.
func CountsBySource(tx *store.Tx, kind string, sources []string) (map[string]map[outbox.Status]int, error) {
	wanted, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(`SELECT source_id, status, count(*) FROM outbox WHERE source_kind = ? AND source_id IN (SELECT value FROM json_each(?)) GROUP BY source_id, status`,
		kind, string(wanted))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]map[outbox.Status]int{}
	for rows.Next() {
		var source string
		var s outbox.Status
		var n int
		if err := rows.Scan(&source, &s, &n); err != nil {
			return nil, err
		}
		if out[source] == nil {
			out[source] = map[outbox.Status]int{}
		}
		out[source][s] = n
	}
	return out, rows.Err()
}

// OpenOwners returns the Bridges, self included, that own an open delivery whose route has
// the Profile id and session of live.
func OpenOwners(tx *store.Tx, live outbox.Route) ([]ids.BridgeID, error) {
	return table.Column[ids.BridgeID](tx.Query(`SELECT DISTINCT o.owner FROM outbox o JOIN callback_route r ON r.route_id = o.route_id
		WHERE o.open = 1 AND r.profile_id = ? AND r.session_digest = ?`, live.ProfileID, live.SessionDigest))
}

// OpenOf returns up to limit open deliveries of a Bridge on the Profile id and session of
// live, oldest first, after the delivery that after names ("" for the start).
func OpenOf(tx *store.Tx, owner ids.BridgeID, live outbox.Route, after ids.DeliveryID, limit int) ([]Row, error) {
	return list(tx, `WHERE o.open = 1 AND o.owner = ? AND r.profile_id = ? AND r.session_digest = ?
		AND o.seq > coalesce((SELECT seq FROM outbox WHERE delivery_id = ?), 0) ORDER BY o.seq LIMIT ?`,
		owner, live.ProfileID, live.SessionDigest, after, limit)
}

// TakeOver gives a delivery to another Bridge. The caller proved that its owner is dead.
func TakeOver(tx *store.Tx, r Row, to ids.BridgeID) (Row, error) {
	res, err := tx.Exec(`UPDATE outbox SET owner = ? WHERE delivery_id = ? AND owner = ?`, to, r.DeliveryID, r.Owner)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return r, stale("outboxsql.take", r.DeliveryID)
	}
	r.Owner = to
	return r, nil
}

func stale(op string, id ids.DeliveryID) error {
	return fault.New(fault.Conflict, op, "delivery %s changed meanwhile", id)
}

// runningLimit bounds RunningOf, far above any concurrency.
const runningLimit = 1000

// RunningOf returns the deliveries of which the Store says that owner attempts them now.
func RunningOf(tx *store.Tx, owner ids.BridgeID) ([]Row, error) {
	return list(tx, "WHERE o.open = 1 AND o.status = 'delivering' AND o.owner = ? ORDER BY o.seq LIMIT ?", owner, runningLimit)
}

package outboxsql

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Journey is how a delivery went, in short: no body is read.
type Journey struct {
	DeliveryID string
	Kind       string // of the event
	Status     outbox.Status
	QueuedAt   time.Time
	SettledAt  time.Time // zero while automatic work is left
	Attempts   []Leg
}

// Leg is one attempt that began and ended. One that was given back, because it provably did
// not begin, is none.
type Leg struct {
	AttemptID string
	Number    int
	BeganAt   time.Time
	EndedAt   time.Time
	Outcome   outbox.OutcomeKind
	ErrorCode string
}

// legLimit bounds the attempts that Journeys reads, the newest.
const legLimit = 1000

// Journeys returns the deliveries of a source with their attempts, oldest first.
func Journeys(tx *store.Tx, source outbox.Source) ([]Journey, error) {
	rows, err := tx.Query(`SELECT o.delivery_id, o.kind, o.status, o.open, o.created_at, o.settled_at,
			coalesce(a.attempt_id, ''), coalesce(a.number, 0), coalesce(a.started_at, 0), coalesce(a.ended_at, 0), coalesce(a.outcome, '')
		FROM outbox o LEFT JOIN outbox_attempt a ON a.delivery_id = o.delivery_id
		WHERE o.source_kind = ? AND o.source_id = ? ORDER BY o.seq DESC, a.number DESC, a.claimed_at DESC LIMIT ?`, source.Kind, source.ID, legLimit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Journey
	for rows.Next() {
		var j Journey
		var l Leg
		var open bool
		var queued, settled, began, ended int64
		var outcome string
		if err := rows.Scan(&j.DeliveryID, &j.Kind, &j.Status, &open, &queued, &settled, &l.AttemptID, &l.Number, &began, &ended, &outcome); err != nil {
			return nil, err
		}
		if len(out) == 0 || out[len(out)-1].DeliveryID != j.DeliveryID {
			j.QueuedAt = store.Time(queued)
			if !open {
				j.SettledAt = store.Time(settled)
			}
			out = append(out, j)
		}
		if began == 0 || ended == 0 || outcome == "" {
			continue
		}
		var o outbox.Outcome
		if json.Unmarshal([]byte(outcome), &o) != nil { // evidence that cannot be read proves nothing
			o = outbox.Outcome{Kind: outbox.Uncertain, ErrorCode: CodeDamaged}
		}
		l.BeganAt, l.EndedAt, l.Outcome, l.ErrorCode = store.Time(began), store.Time(ended), o.Kind, o.ErrorCode
		last := &out[len(out)-1]
		last.Attempts = append(last.Attempts, l)
	}
	slices.Reverse(out)
	for i := range out {
		slices.Reverse(out[i].Attempts)
	}
	return out, rows.Err()
}

// Backlog returns how many deliveries of the Store are on their way, and how many died and
// wait for an operator. Indexes alone answer it.
func Backlog(tx *store.Tx) (open, dead int64, err error) {
	err = tx.QueryRow(`SELECT count(*) FILTER (WHERE status IN (?, ?)), count(*) FILTER (WHERE status IN (?, ?, ?)) FROM outbox
		WHERE status IN (?, ?, ?, ?, ?)`, outbox.Pending, outbox.Delivering, outbox.Failed, outbox.Unproved, outbox.Exhausted,
		outbox.Pending, outbox.Delivering, outbox.Failed, outbox.Unproved, outbox.Exhausted).Scan(&open, &dead)
	return open, dead, err
}

package outboxsql

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Row is a delivery with the Bridge that owns it.
type Row struct {
	outbox.Delivery
	Owner ids.BridgeID
}

// Enqueue stores a new delivery of owner. Its route must be stored. The same event again
// changes nothing and reports false; the same message id with other content is
// fault.Conflict.
func Enqueue(tx *store.Tx, d outbox.Delivery, owner ids.BridgeID) (inserted bool, err error) {
	const op = "outboxsql.enqueue"
	had, ok, err := one(tx, "WHERE o.route_id = ? AND o.message_id = ?", d.RouteID, d.Event.ID)
	if err != nil {
		return false, err
	}
	if ok {
		if had.DeliveryID != d.DeliveryID {
			return false, fault.New(fault.Conflict, op, "message %s was recorded with another content", d.Event.ID).
				WithHint("use a new message id for a new message")
		}
		return false, nil
	}
	metadata, err := json.Marshal(d.Event.Metadata)
	if err != nil {
		return false, fmt.Errorf("%s: %w", op, err)
	}
	outcome, err := encodeOutcome(d.Outcome)
	if err != nil {
		return false, err
	}
	body := d.Event.Body
	if body == nil {
		body = []byte{}
	}
	_, err = tx.Exec(`INSERT INTO outbox (delivery_id, idempotency_key, route_id, source_kind, source_id, message_id, type, kind, body, requires_response, metadata,
			owner, status, open, attempts, attempt_id, lease_expires_at, transport_started_at, next_attempt_at, outcome, last_error, created_at, accepted_at, settled_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.DeliveryID, d.IdempotencyKey, d.RouteID, d.Source.Kind, d.Source.ID, d.Event.ID, d.Event.Type, d.Event.Kind, body, d.Event.RequiresResponse, string(metadata),
		owner, d.Status, d.Status.Open(), d.Attempts, d.AttemptID, store.Millis(d.LeaseExpiresAt), store.Millis(d.TransportStartedAt), store.Millis(d.NextAttemptAt),
		outcome, d.LastError, store.Millis(d.CreatedAt), store.Millis(d.AcceptedAt), store.Millis(d.SettledAt), store.Millis(d.UpdatedAt))
	return err == nil, err
}

const selectDelivery = `SELECT o.delivery_id, o.idempotency_key, o.route_id, o.source_kind, o.source_id, o.message_id, o.type, o.kind, o.body, o.requires_response, o.metadata,
	o.owner, o.status, o.attempts, o.attempt_id, o.lease_expires_at, o.transport_started_at, o.next_attempt_at, o.outcome, o.last_error, o.created_at, o.accepted_at, o.settled_at, o.updated_at,
	r.transport, r.profile_id, r.profile_revision, r.profile_fingerprint, r.session_digest
	FROM outbox o JOIN callback_route r ON r.route_id = o.route_id `

type scanner interface{ Scan(...any) error }

func scanRow(s scanner) (Row, error) {
	var d Row
	var metadata, outcome string
	var lease, started, next, created, accepted, settled, updated int64
	err := s.Scan(&d.DeliveryID, &d.IdempotencyKey, &d.RouteID, &d.Source.Kind, &d.Source.ID, &d.Event.ID, &d.Event.Type, &d.Event.Kind, &d.Event.Body, &d.Event.RequiresResponse, &metadata,
		&d.Owner, &d.Status, &d.Attempts, &d.AttemptID, &lease, &started, &next, &outcome, &d.LastError, &created, &accepted, &settled, &updated,
		&d.Route.Transport, &d.Route.ProfileID, &d.Route.ProfileRevision, &d.Route.ProfileFingerprint, &d.Route.SessionDigest)
	if err != nil {
		return Row{}, err
	}
	// A record with a damaged part must not stop all others. Metadata is not needed to
	// deliver; evidence that cannot be read is no proof that the Host did not hear.
	if json.Unmarshal([]byte(metadata), &d.Event.Metadata) != nil {
		d.Event.Metadata = nil
	}
	if outcome != "" && json.Unmarshal([]byte(outcome), &d.Outcome) != nil {
		d.Outcome = nil
		if d.Status != outbox.Pending { // what is pending may be tried again whatever happened
			d.Outcome = &outbox.Outcome{Kind: outbox.Uncertain, ErrorCode: CodeDamaged, At: store.Time(updated)}
		}
	}
	d.LeaseExpiresAt, d.TransportStartedAt, d.NextAttemptAt = store.Time(lease), store.Time(started), store.Time(next)
	d.CreatedAt, d.AcceptedAt, d.SettledAt, d.UpdatedAt = store.Time(created), store.Time(accepted), store.Time(settled), store.Time(updated)
	return d, nil
}

func encodeOutcome(o *outbox.Outcome) (string, error) {
	if o == nil {
		return "", nil
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("outboxsql.outcome: %w", err)
	}
	return string(b), nil
}

func one(tx *store.Tx, where string, args ...any) (Row, bool, error) {
	d, err := scanRow(tx.QueryRow(selectDelivery+where, args...))
	if store.NotFound(err) {
		return Row{}, false, nil
	}
	return d, err == nil, err
}

func list(tx *store.Tx, where string, args ...any) ([]Row, error) {
	rows, err := tx.Query(selectDelivery+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Row
	for rows.Next() {
		d, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// Get returns a delivery; a missing one is fault.NotFound.
func Get(tx *store.Tx, id ids.DeliveryID) (Row, error) {
	d, ok, err := one(tx, "WHERE o.delivery_id = ?", id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "outboxsql.get", "there is no delivery %q", id)
	}
	return d, err
}

// CodeDamaged is the error code of an outcome whose record cannot be read.
const CodeDamaged = "callback_record_damaged"

// sourceLimit bounds how many deliveries of one source are read, the newest; a Turn has a
// handful. Each may carry a body of 256 KiB.
const sourceLimit = 50

// BySource returns the newest deliveries of a source, oldest first.
func BySource(tx *store.Tx, kind, id string) ([]outbox.Delivery, error) {
	rows, err := RowsBySource(tx, kind, id)
	out := make([]outbox.Delivery, len(rows))
	for i, r := range rows {
		out[i] = r.Delivery
	}
	return out, err
}

// RowsBySource is BySource with the owners.
func RowsBySource(tx *store.Tx, kind, id string) ([]Row, error) {
	rows, err := list(tx, "WHERE o.source_kind = ? AND o.source_id = ? ORDER BY o.seq DESC LIMIT ?", kind, id, sourceLimit)
	slices.Reverse(rows)
	return rows, err
}

// save writes what an attempt changes, if owner still owns the delivery and the attempt
// in the Store is still was. It reports whether it did.
func save(tx *store.Tx, d outbox.Delivery, owner ids.BridgeID, was ids.AttemptID) (bool, error) {
	outcome, err := encodeOutcome(d.Outcome)
	if err != nil {
		return false, err
	}
	res, err := tx.Exec(`UPDATE outbox SET status = ?, open = ?, attempts = ?, attempt_id = ?, lease_expires_at = ?, transport_started_at = ?, next_attempt_at = ?,
			outcome = ?, last_error = ?, accepted_at = ?, settled_at = ?, updated_at = ?
		WHERE delivery_id = ? AND owner = ? AND attempt_id = ?`,
		d.Status, d.Status.Open(), d.Attempts, d.AttemptID, store.Millis(d.LeaseExpiresAt), store.Millis(d.TransportStartedAt), store.Millis(d.NextAttemptAt),
		outcome, d.LastError, store.Millis(d.AcceptedAt), store.Millis(d.SettledAt), store.Millis(d.UpdatedAt), d.DeliveryID, owner, was)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

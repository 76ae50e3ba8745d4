package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
)

// The limits of automatic delivery.
const (
	// Lease is how long one attempt may be in flight before its silence counts as loss. It
	// is far above the longest callback (30 s), so a living attempt never loses it.
	Lease = 120 * time.Second
	// MaxAttempts is the number of automatic attempts of one delivery.
	MaxAttempts = 5
	// UnavailableDelay is the pause after an attempt that provably did not begin because
	// our own worker was not there. Such an attempt does not count.
	UnavailableDelay = 5 * time.Second
)

// retryDelays follow the attempts 1 to 4. After attempt 5 the delivery is exhausted.
var retryDelays = [MaxAttempts - 1]time.Duration{5 * time.Second, 15 * time.Second, 60 * time.Second, 60 * time.Second}

// Source kinds.
const (
	SourceTurn  = "managed_turn"
	SourceWatch = "terminal_watch"
	SourceTest  = "test"
)

// Status is where a delivery stands.
type Status string

const (
	Pending    Status = "pending"    // to be attempted at NextAttemptAt
	Delivering Status = "delivering" // one attempt holds the lease
	Delivered  Status = "delivered"  // the Host accepted exactly this
	Failed     Status = "failed"     // permanently; nothing will be tried
	Unproved   Status = "uncertain"  // the Host may have heard it; nothing will be tried
	Exhausted  Status = "exhausted"  // every automatic attempt failed
	Superseded Status = "superseded" // a newer event made it pointless before it was sent
)

// Open reports whether automatic work is left for a delivery in this status.
func (s Status) Open() bool { return s == Pending || s == Delivering }

// Delivery is one event on its way to one route. DeliveryID, IdempotencyKey, Route, Source
// and Event never change; they are the same on every attempt.
type Delivery struct {
	DeliveryID     ids.DeliveryID `json:"delivery_id"`
	IdempotencyKey string         `json:"idempotency_key"`
	RouteID        ids.RouteID    `json:"route_id"`
	Route          Route          `json:"route"`
	Source         Source         `json:"source"`
	Event          Event          `json:"event"`

	Status             Status        `json:"status"`
	Attempts           int           `json:"attempts"` // begun so far
	AttemptID          ids.AttemptID `json:"attempt_id,omitempty"`
	LeaseExpiresAt     time.Time     `json:"lease_expires_at,omitzero"`
	TransportStartedAt time.Time     `json:"transport_started_at,omitzero"` // of the newest attempt
	NextAttemptAt      time.Time     `json:"next_attempt_at,omitzero"`      // while pending
	Outcome            *Outcome      `json:"outcome,omitempty"`             // of the newest attempt that has one
	LastError          string        `json:"last_error,omitempty"`          // an error code
	CreatedAt          time.Time     `json:"created_at"`
	AcceptedAt         time.Time     `json:"accepted_at,omitzero"`
	SettledAt          time.Time     `json:"settled_at,omitzero"` // when automatic work ended
	UpdatedAt          time.Time     `json:"updated_at"`
}

// New returns the pending delivery of an event. The same event of the same source on the
// same route always has the same ids; any difference in content, profile revision or
// controller session gives others.
func New(route Route, src Source, ev Event, now time.Time) Delivery {
	id, key := Identify(route, src, ev)
	return Delivery{
		DeliveryID: id, IdempotencyKey: key, RouteID: route.ID(), Route: route, Source: src, Event: ev,
		Status: Pending, NextAttemptAt: now, CreatedAt: now, UpdatedAt: now,
	}
}

// Identify derives the two stable ids of an event on a route. A worker uses it to see that
// an envelope was not changed on its way.
func Identify(route Route, src Source, ev Event) (ids.DeliveryID, string) {
	parts := []string{
		"callback-envelope", "v1", string(route.ID()), src.Kind, src.ID,
		ev.ID, ev.Type, ev.Kind, string(ev.Body), strconv.FormatBool(ev.RequiresResponse),
	}
	for _, key := range slices.Sorted(maps.Keys(ev.Metadata)) {
		parts = append(parts, key, ev.Metadata[key])
	}
	id := ids.Derive("callback-delivery", parts...)
	sum := sha256.Sum256([]byte("idempotency-key/v1\x00" + id))
	return ids.DeliveryID(id), "agent-knock-knock:" + hex.EncodeToString(sum[:])
}

// Begin starts the next attempt under a lease. An attempt that was claimed and provably
// never started is begun again under the same number. The caller asked [Decide] before.
func Begin(d Delivery, attempt ids.AttemptID, now time.Time) Delivery {
	if d.Status != Delivering || !d.TransportStartedAt.IsZero() {
		d.Attempts++
	}
	d.Status, d.AttemptID, d.LeaseExpiresAt = Delivering, attempt, now.Add(Lease)
	d.TransportStartedAt, d.NextAttemptAt, d.SettledAt = time.Time{}, time.Time{}, time.Time{}
	d.Outcome = nil
	d.UpdatedAt = now
	return d
}

// holds reports whether attempt is the one in flight.
func (d Delivery) holds(attempt ids.AttemptID) bool {
	return d.Status == Delivering && d.AttemptID == attempt && attempt != ""
}

// MarkStarted records that from now on the callback program may run. It is stored before
// the program is started, so that a crash can never look like "not started".
func MarkStarted(d Delivery, attempt ids.AttemptID, now time.Time) (Delivery, bool) {
	if !d.holds(attempt) || !d.TransportStartedAt.IsZero() {
		return d, false
	}
	d.TransportStartedAt, d.UpdatedAt = now, now
	return d, true
}

// RecordOutcome keeps the evidence of the attempt in flight without settling it. The
// first evidence stays.
func RecordOutcome(d Delivery, attempt ids.AttemptID, o Outcome, now time.Time) (Delivery, bool) {
	if !d.holds(attempt) || d.Outcome != nil {
		return d, false
	}
	d.Outcome, d.UpdatedAt = &o, now
	return d, true
}

// Settle ends the attempt in flight. It reports false, and changes nothing, when another
// attempt took over or the delivery is settled. Evidence that was recorded before wins
// over o. An outcome of unknown kind is uncertain.
func Settle(d Delivery, attempt ids.AttemptID, o Outcome, now time.Time) (Delivery, bool) {
	if !d.holds(attempt) {
		return d, false
	}
	if d.Outcome == nil {
		d.Outcome = &o
	}
	d.LastError = d.Outcome.ErrorCode
	d.LeaseExpiresAt, d.NextAttemptAt = time.Time{}, time.Time{}
	d.SettledAt, d.UpdatedAt = now, now
	switch d.Outcome.Kind {
	case Accepted:
		d.Status, d.AcceptedAt = Delivered, d.Outcome.At
	case PermanentFailure:
		d.Status = Failed
	case RetryableFailure:
		if d.Attempts >= MaxAttempts {
			d.Status = Exhausted
			break
		}
		d.Status, d.SettledAt = Pending, time.Time{}
		d.NextAttemptAt = now.Add(retryDelays[max(d.Attempts, 1)-1])
	default:
		d.Status = Unproved
	}
	return d, true
}

// Postpone gives back an attempt whose program was provably not started because our own
// worker was not there. It does not count as an attempt.
func Postpone(d Delivery, attempt ids.AttemptID, code string, now time.Time) (Delivery, bool) {
	if !d.holds(attempt) || d.Outcome != nil {
		return d, false
	}
	d.Status, d.Attempts, d.AttemptID = Pending, d.Attempts-1, ""
	d.LeaseExpiresAt, d.TransportStartedAt = time.Time{}, time.Time{}
	d.NextAttemptAt, d.LastError, d.UpdatedAt = now.Add(UnavailableDelay), code, now
	return d, true
}

// Supersede ends a delivery that nobody is sending, because a newer event made it
// pointless.
func Supersede(d Delivery, now time.Time) (Delivery, bool) {
	if d.Status != Pending {
		return d, false
	}
	d.Status, d.NextAttemptAt, d.SettledAt, d.UpdatedAt = Superseded, time.Time{}, now, now
	return d, true
}

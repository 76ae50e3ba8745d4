// Package outbox holds the rules of callbacks: the immutable route, the envelope, the
// delivery record, its attempts and what may be done next.
//
// Values in, values out. It runs nothing, stores nothing and never looks inside a Turn.
package outbox

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
)

// Transport of Host Profile v1.
const TransportCommandJSON = "command_json_v1"

// Route says to whom a callback goes. It is captured once, when a Turn or Watch is made,
// and never rebuilt. SessionDigest stands for the controller session: an HMAC under the
// Store's own key, so that equality can be proved and the session value is never stored.
type Route struct {
	Transport          string `json:"transport"`
	ProfileID          string `json:"profile_id"`
	ProfileRevision    string `json:"profile_revision"`
	ProfileFingerprint string `json:"profile_fingerprint"`
	SessionDigest      string `json:"session_digest"`
}

// ID derives the route's identity from its fields.
func (r Route) ID() ids.RouteID {
	return ids.RouteID(ids.Derive("route", "v1", r.Transport, r.ProfileID, r.ProfileRevision, r.ProfileFingerprint, r.SessionDigest))
}

// Source says what a delivery speaks of.
type Source struct {
	Kind string `json:"kind"` // managed_turn, terminal_watch, test
	ID   string `json:"id"`   // turn id, watch id
}

// Event is the one thing the Host must hear. ID is the message id: the same ID on the
// same route is the same logical delivery for ever.
type Event struct {
	ID               string            `json:"id"`
	Type             string            `json:"type"` // done, error, question, blocked
	Kind             string            `json:"kind"` // completion, failure, interrupted, approval, interaction, stalled
	Body             []byte            `json:"body"` // UTF-8 text, passed to the callback byte for byte
	RequiresResponse bool              `json:"requires_response"`
	Metadata         map[string]string `json:"metadata,omitempty"`
}

// OutcomeKind classifies one attempt.
type OutcomeKind string

const (
	Accepted         OutcomeKind = "accepted"
	RetryableFailure OutcomeKind = "retryable_failure"
	PermanentFailure OutcomeKind = "permanent_failure"
	Uncertain        OutcomeKind = "uncertain"
)

// Outcome is the classified result of one attempt.
type Outcome struct {
	Kind         OutcomeKind `json:"kind"`
	ErrorCode    string      `json:"error_code,omitempty"` // empty when accepted
	AcceptanceID string      `json:"acceptance_id,omitempty"`
	ExitStatus   *int        `json:"exit_status,omitempty"`
	Signal       string      `json:"signal,omitempty"`
	At           time.Time   `json:"at"`
}

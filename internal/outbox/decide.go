package outbox

import "time"

// Disposition says what may be done with a delivery next.
type Disposition string

const (
	DoNothing Disposition = "unavailable" // settled, superseded, or not a usable record
	DoSettle  Disposition = "accepted"    // the evidence is there: settle it, never send again
	DoRefuse  Disposition = "permanent"   // never again
	DoLeave   Disposition = "uncertain"   // never again: the Host may have heard it
	DoGiveUp  Disposition = "lost"        // started, no outcome, nobody will bring one: becomes uncertain
	DoStop    Disposition = "exhausted"   // every automatic attempt was made
	DoRetry   Disposition = "retryable"   // a new attempt may be made; NextAttemptAt says when
	DoWait    Disposition = "in_flight"   // an attempt is running under its lease
)

// CodeLost is the error code of an attempt whose outcome nobody can bring any more.
const CodeLost = "callback_outcome_lost"

// Decide applies the retry table: durable evidence first, then whether the owner of the
// attempt lives, then the clock. The first rule that matches wins.
//
// Where a started attempt has no outcome, its lease has run out and its owner lives, the
// delivery is lost, not retryable: the program may have run.
func Decide(d Delivery, now time.Time, ownerAlive bool) Disposition {
	if d.Event.ID == "" || d.Status == Superseded || d.Status == Delivered {
		return DoNothing
	}
	if d.Outcome != nil {
		switch d.Outcome.Kind {
		case Accepted:
			return DoSettle
		case PermanentFailure:
			return DoRefuse
		case RetryableFailure:
		default: // a kind that we do not know proves nothing
			return DoLeave
		}
	}
	running := d.Status == Delivering && d.Outcome == nil
	leased := running && ownerAlive && d.LeaseExpiresAt.After(now)
	switch {
	case running && !d.TransportStartedAt.IsZero() && !leased:
		return DoGiveUp
	case d.Attempts < 0, d.Status == Delivering && (d.Attempts < 1 || d.AttemptID == ""):
		return DoNothing
	case d.Status == Exhausted, d.Attempts >= MaxAttempts && !running:
		return DoStop
	case leased:
		return DoWait
	case d.Status.Open():
		return DoRetry
	}
	return DoNothing
}

// Lost is the outcome of an attempt that was started and that nobody can answer for.
func Lost(now time.Time) Outcome {
	return Outcome{Kind: Uncertain, ErrorCode: CodeLost, At: now}
}

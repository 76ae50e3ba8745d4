package outbox

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Discarded is the status of a delivery that an operator gave up. It is never sent.
const Discarded Status = "discarded"

// CodeNotChecked refuses to send again what the Host may have heard.
const CodeNotChecked fault.Code = "not_checked"

// Dead reports whether automatic work ended without an acceptance: what an operator must
// look at.
func (s Status) Dead() bool { return s == Failed || s == Unproved || s == Exhausted }

// Orphaned decides the attempt of an owner that is gone, as the Bridge that takes over from it
// would: it may have been heard if its program was started, and else it never happened.
// Without it a delivery whose session never comes back could not be decided by anybody.
func Orphaned(d Delivery, now time.Time) Delivery {
	if d.Status != Delivering {
		return d
	}
	if d.Outcome == nil && d.TransportStartedAt.IsZero() {
		d, _ = Postpone(d, d.AttemptID, CodeLost, now)
		return d
	}
	d, _ = Settle(d, d.AttemptID, Lost(now), now)
	return d
}

// Redrive gives a dead delivery one more attempt, under the same ids. What the Host may
// have heard is only sent again when a person says that it was looked up there. The
// attempt counts as the last automatic one: if it fails too, the delivery is dead again.
func Redrive(d Delivery, checked bool, now time.Time) (Delivery, error) {
	const op = "outbox.redrive"
	switch {
	case d.Status.Open():
		return d, fault.New(fault.Conflict, op, "delivery %s is on its way (%s)", d.DeliveryID, d.Status).
			WithHint("wait for its outcome; a Bridge of its Profile and session brings it, or discard it")
	case !d.Status.Dead():
		return d, fault.New(fault.Conflict, op, "delivery %s is %s; there is nothing to send again", d.DeliveryID, d.Status)
	case d.Status == Unproved && !checked:
		return d, fault.New(CodeNotChecked, op, "the Host may have heard delivery %s already", d.DeliveryID).
			WithHint("look for message %s there; if it is not there, pass --i-have-checked", d.Event.ID)
	}
	d.Status, d.Outcome = Pending, nil
	d.Attempts = min(d.Attempts, MaxAttempts-1)
	d.AttemptID, d.LeaseExpiresAt, d.TransportStartedAt = "", time.Time{}, time.Time{}
	d.NextAttemptAt, d.SettledAt, d.UpdatedAt = now, time.Time{}, now
	return d, nil
}

// Discard gives a delivery up that nobody is sending now. Its record stays.
func Discard(d Delivery, now time.Time) (Delivery, error) {
	const op = "outbox.discard"
	switch {
	case d.Status == Delivering:
		return d, fault.New(fault.Conflict, op, "delivery %s is being sent right now", d.DeliveryID).WithHint("wait for its outcome")
	case d.Status != Pending && !d.Status.Dead():
		return d, fault.New(fault.Conflict, op, "delivery %s is %s; there is nothing to discard", d.DeliveryID, d.Status)
	}
	d.Status, d.NextAttemptAt = Discarded, time.Time{}
	if d.SettledAt.IsZero() {
		d.SettledAt = now
	}
	d.UpdatedAt = now
	return d, nil
}

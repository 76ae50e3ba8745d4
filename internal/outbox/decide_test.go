package outbox_test

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
)

var (
	now     = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	later   = now.Add(time.Minute)
	earlier = now.Add(-time.Minute)
)

func outcome(kind outbox.OutcomeKind) *outbox.Outcome {
	return &outbox.Outcome{Kind: kind, At: earlier}
}

// One row per line of the retry table, in its order, and one more for each line that an
// earlier line must win over.
func TestEveryRowOfTheRetryTable(t *testing.T) {
	running := func(edit func(*outbox.Delivery)) outbox.Delivery {
		d := outbox.Delivery{Event: outbox.Event{ID: "m"}, Status: outbox.Delivering, Attempts: 1, AttemptID: "a", LeaseExpiresAt: later}
		edit(&d)
		return d
	}
	settled := func(status outbox.Status, attempts int, o *outbox.Outcome) outbox.Delivery {
		return outbox.Delivery{Event: outbox.Event{ID: "m"}, Status: status, Attempts: attempts, AttemptID: "a", Outcome: o}
	}
	for _, c := range []struct {
		row   string
		d     outbox.Delivery
		alive bool
		want  outbox.Disposition
	}{
		{"1 no message", running(func(d *outbox.Delivery) { d.Event.ID = "" }), true, outbox.DoNothing},
		{"1 superseded", settled(outbox.Superseded, 0, nil), true, outbox.DoNothing},
		{"1 delivered", settled(outbox.Delivered, 1, outcome(outbox.Accepted)), true, outbox.DoNothing},
		{"1 unknown status", settled("odd", 1, nil), true, outbox.DoNothing},
		{"2 accepted, unsettled, owner dead", running(func(d *outbox.Delivery) { d.Outcome = outcome(outbox.Accepted); d.TransportStartedAt = earlier }), false, outbox.DoSettle},
		{"2 accepted wins over a bad count", running(func(d *outbox.Delivery) { d.Outcome = outcome(outbox.Accepted); d.Attempts = 9 }), true, outbox.DoSettle},
		{"3 permanent", settled(outbox.Failed, 1, outcome(outbox.PermanentFailure)), true, outbox.DoRefuse},
		{"4 uncertain", settled(outbox.Unproved, 1, outcome(outbox.Uncertain)), true, outbox.DoLeave},
		{"5 started, owner gone, lease good", running(func(d *outbox.Delivery) { d.TransportStartedAt = earlier }), false, outbox.DoGiveUp},
		{"5 wins over a bad count", running(func(d *outbox.Delivery) { d.TransportStartedAt = earlier; d.Attempts = 9 }), false, outbox.DoGiveUp},
		{"5 started, lease over, owner alive", running(func(d *outbox.Delivery) { d.TransportStartedAt = earlier; d.LeaseExpiresAt = now }), true, outbox.DoGiveUp},
		{"6 count below zero", settled(outbox.Pending, -1, nil), true, outbox.DoNothing},
		{"6 running without a count", running(func(d *outbox.Delivery) { d.Attempts = 0 }), true, outbox.DoNothing},
		{"6 running without an id", running(func(d *outbox.Delivery) { d.AttemptID = "" }), true, outbox.DoNothing},
		{"7 exhausted", settled(outbox.Exhausted, 5, outcome(outbox.RetryableFailure)), true, outbox.DoStop},
		{"7 five failures, still pending", settled(outbox.Pending, 5, outcome(outbox.RetryableFailure)), true, outbox.DoStop},
		{"8 retryable failure", settled(outbox.Pending, 4, outcome(outbox.RetryableFailure)), true, outbox.DoRetry},
		{"8 retryable failure, unsettled", running(func(d *outbox.Delivery) { d.Outcome = outcome(outbox.RetryableFailure); d.TransportStartedAt = earlier }), false, outbox.DoRetry},
		{"9 never tried", settled(outbox.Pending, 0, nil), true, outbox.DoRetry},
		{"9 claimed, not started, owner gone", running(func(d *outbox.Delivery) {}), false, outbox.DoRetry},
		{"9 claimed the fifth time, not started, owner gone", running(func(d *outbox.Delivery) { d.Attempts = 5 }), false, outbox.DoRetry},
		{"10 running", running(func(d *outbox.Delivery) { d.TransportStartedAt = earlier }), true, outbox.DoWait},
		{"10 running the fifth time", running(func(d *outbox.Delivery) { d.TransportStartedAt = earlier; d.Attempts = 5 }), true, outbox.DoWait},
		{"11 claimed, not started, lease over", running(func(d *outbox.Delivery) { d.LeaseExpiresAt = now }), true, outbox.DoRetry},
	} {
		if got := outbox.Decide(c.d, now, c.alive); got != c.want {
			t.Errorf("%s: %s, want %s", c.row, got, c.want)
		}
	}
}

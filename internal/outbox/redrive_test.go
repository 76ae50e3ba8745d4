package outbox

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestOnlyWhatIsDeadIsRedrivenAndWhatMayHaveBeenHeardOnlyOnAPersonsWord(t *testing.T) {
	now := time.Unix(1000, 0)
	for status, want := range map[Status]fault.Code{
		Pending: fault.Conflict, Delivering: fault.Conflict, Delivered: fault.Conflict, Superseded: fault.Conflict, Discarded: fault.Conflict,
		Failed: "", Exhausted: "", Unproved: CodeNotChecked,
	} {
		d := New(Route{}, Source{Kind: SourceTurn, ID: "t"}, Event{ID: "m"}, now)
		d.Status, d.Attempts, d.Outcome = status, MaxAttempts, &Outcome{Kind: Uncertain}
		got, err := Redrive(d, false, now)
		if (err == nil) != (want == "") || (want != "" && !fault.Is(err, want)) {
			t.Errorf("%s: %v, want %q", status, err, want)
		}
		if err != nil && got.Status != status {
			t.Errorf("%s became %s though it was refused", status, got.Status)
		}
		checked, err := Redrive(d, true, now)
		if (err == nil) != status.Dead() {
			t.Errorf("%s checked: %v", status, err)
		}
		if err == nil {
			if Decide(checked, now, false) != DoRetry || checked.DeliveryID != d.DeliveryID || checked.IdempotencyKey != d.IdempotencyKey {
				t.Errorf("%s: %+v is %s", status, checked, Decide(checked, now, false))
			}
		}
		_, err = Discard(d, now)
		if wantDiscard := status == Pending || status.Dead(); (err == nil) != wantDiscard {
			t.Errorf("discard %s: %v", status, err)
		}
	}
}

// However often it is redriven and fails, one redrive is one attempt.
func TestARedriveIsOneAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		d := New(Route{}, Source{Kind: SourceTurn, ID: "t"}, Event{ID: "m"}, now)
		d.Attempts, d.Status = rapid.IntRange(1, MaxAttempts).Draw(t, "attempts"), Exhausted
		for range rapid.IntRange(1, 5).Draw(t, "redrives") {
			var err error
			if d, err = Redrive(d, true, now); err != nil {
				t.Fatal(err)
			}
			before := d.Attempts
			d = Begin(d, "a", now)
			d, _ = MarkStarted(d, "a", now)
			d, _ = Settle(d, "a", Outcome{Kind: rapid.SampledFrom([]OutcomeKind{RetryableFailure, PermanentFailure, Uncertain}).Draw(t, "outcome"), At: now}, now)
			if d.Attempts != before+1 {
				t.Fatalf("%d attempts after %d", d.Attempts, before)
			}
			if before == MaxAttempts-1 && !d.Status.Dead() {
				t.Fatalf("still %s", d.Status)
			}
			if !d.Status.Dead() {
				return // automatic attempts are left
			}
		}
	})
}

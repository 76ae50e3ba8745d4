package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
)

// Who waits for a Bridge must know which one, and what to do when it never comes.
func TestTheNextStepOfACallbackNamesWhoCanTakeIt(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		d    outbox.Delivery
		want []string
	}{
		"waiting":        {outbox.Delivery{Status: outbox.Pending}, []string{"Profile and session", "discard"}},
		"being sent":     {outbox.Delivery{Status: outbox.Delivering, LeaseExpiresAt: now.Add(time.Minute)}, []string{"wait for its outcome"}},
		"left by a dead": {outbox.Delivery{Status: outbox.Delivering, LeaseExpiresAt: now.Add(-time.Minute)}, []string{"Profile and session", "message id", "--i-have-checked", "discard"}},
	} {
		got := nextStep(c.d, now)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q names no %q", name, got, w)
			}
		}
	}
}

package doctor

import (
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
)

// CheckTestCallback is the row of a test callback that a person asked for.
const CheckTestCallback = "test_callback"

// TestCallback is what became of one clearly marked callback.
type TestCallback struct {
	DeliveryID     string `json:"delivery_id"`
	MessageID      string `json:"message_id"`
	Classification string `json:"classification"`
	ErrorCode      string `json:"error_code,omitempty"`
	AcceptanceID   string `json:"acceptance_id,omitempty"`
	ExitStatus     *int   `json:"exit_status,omitempty"`
	Signal         string `json:"signal,omitempty"`
	TookMs         int64  `json:"took_ms"`
}

// Delivered adds the outcome of a test callback to the report. err says that the callback
// program was not started, or that nobody knows.
func (r *Report) Delivered(d outbox.Delivery, o outbox.Outcome, took time.Duration, err error) {
	t := &TestCallback{DeliveryID: string(d.DeliveryID), MessageID: d.Event.ID, TookMs: took.Milliseconds()}
	r.TestCallback = t
	if err != nil {
		t.Classification = "not_started"
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Invalid) {
			t.Classification = string(outbox.Uncertain)
		}
		r.add(Check{Name: CheckTestCallback}, err)
		return
	}
	t.Classification, t.ErrorCode, t.AcceptanceID, t.ExitStatus, t.Signal = string(o.Kind), o.ErrorCode, o.AcceptanceID, o.ExitStatus, o.Signal
	if o.Kind == outbox.Accepted {
		r.add(Check{Name: CheckTestCallback, Detail: fmt.Sprintf("the Host accepted it in %v", took.Round(time.Millisecond))}, nil)
		return
	}
	r.add(Check{Name: CheckTestCallback}, fault.New("test_callback_not_accepted", "doctor.send_test", "the Host did not accept it: %s, %s", o.Kind, o.ErrorCode).
		WithHint("compare what the program prints and its exit status with the Profile's acknowledgement; a Host may show the message all the same"))
}

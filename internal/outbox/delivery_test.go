package outbox_test

import (
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
)

var (
	route  = outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "sha256:f", SessionDigest: "s"}
	source = outbox.Source{Kind: outbox.SourceTurn, ID: "turn-1"}
	event  = outbox.Event{ID: "msg-1", Type: "done", Kind: "completion", Body: []byte("done ${HOME}"), Metadata: map[string]string{"a": "1", "b": "2"}}
)

func TestTheIDsOfADeliveryAreAFunctionOfItsContent(t *testing.T) {
	d := outbox.New(route, source, event, now)
	if again := outbox.New(route, source, event, later); again.DeliveryID != d.DeliveryID || again.IdempotencyKey != d.IdempotencyKey {
		t.Error("the same event has other ids later")
	}
	if !regexp.MustCompile(`^callback-delivery-[0-9a-f]{64}$`).MatchString(string(d.DeliveryID)) ||
		!regexp.MustCompile(`^agent-knock-knock:[0-9a-f]{64}$`).MatchString(d.IdempotencyKey) {
		t.Errorf("ids %q, %q", d.DeliveryID, d.IdempotencyKey)
	}
	seen := map[ids.DeliveryID]string{d.DeliveryID: "original"}
	other := func(what string, edit func(r *outbox.Route, s *outbox.Source, e *outbox.Event)) {
		r, s, e := route, source, event
		e.Metadata = map[string]string{"a": "1", "b": "2"}
		edit(&r, &s, &e)
		id, key := outbox.Identify(r, s, e)
		if was, dup := seen[id]; dup || key == d.IdempotencyKey {
			t.Errorf("%s has the ids of %s", what, was)
		}
		seen[id] = what
	}
	other("another revision", func(r *outbox.Route, _ *outbox.Source, _ *outbox.Event) { r.ProfileRevision = "2" })
	other("another session", func(r *outbox.Route, _ *outbox.Source, _ *outbox.Event) { r.SessionDigest = "t" })
	other("another source", func(_ *outbox.Route, s *outbox.Source, _ *outbox.Event) { s.ID = "turn-2" })
	other("another message", func(_ *outbox.Route, _ *outbox.Source, e *outbox.Event) { e.ID = "msg-2" })
	other("another body", func(_ *outbox.Route, _ *outbox.Source, e *outbox.Event) { e.Body = []byte("done") })
	other("a response asked", func(_ *outbox.Route, _ *outbox.Source, e *outbox.Event) { e.RequiresResponse = true })
	other("another value", func(_ *outbox.Route, _ *outbox.Source, e *outbox.Event) { e.Metadata["b"] = "3" })
	other("shifted metadata", func(_ *outbox.Route, _ *outbox.Source, e *outbox.Event) {
		e.Metadata = map[string]string{"a": "1b", "": "2"}
	})
}

// Case 30.
func TestCase30RetryableFailuresWaitLongerAndThenStop(t *testing.T) {
	d, at := outbox.New(route, source, event, now), now
	var delays []time.Duration
	attempts := map[ids.AttemptID]bool{}
	for d.Status == outbox.Pending {
		d = outbox.Begin(d, ids.NewAttempt(), at)
		attempts[d.AttemptID] = true
		d, _ = outbox.MarkStarted(d, d.AttemptID, at)
		var ok bool
		if d, ok = outbox.Settle(d, d.AttemptID, outbox.Outcome{Kind: outbox.RetryableFailure, ErrorCode: "x", At: at}, at); !ok {
			t.Fatal("not settled")
		}
		if d.Status == outbox.Pending {
			delays = append(delays, d.NextAttemptAt.Sub(at))
			at = d.NextAttemptAt
		}
	}
	want := []time.Duration{5 * time.Second, 15 * time.Second, 60 * time.Second, 60 * time.Second}
	if len(delays) != len(want) || d.Status != outbox.Exhausted || d.Attempts != 5 || len(attempts) != 5 {
		t.Fatalf("delays %v, end %+v", delays, d)
	}
	for i := range want {
		if delays[i] != want[i] {
			t.Errorf("delay %d is %s, want %s", i+1, delays[i], want[i])
		}
	}
	if fresh := outbox.New(route, source, event, now); d.DeliveryID != fresh.DeliveryID || d.IdempotencyKey != fresh.IdempotencyKey {
		t.Error("the ids changed on the way")
	}
}

func TestAnAttemptThatDidNotBeginDoesNotCount(t *testing.T) {
	d := outbox.Begin(outbox.New(route, source, event, now), "a1", now)
	d, _ = outbox.MarkStarted(d, "a1", now)
	d, ok := outbox.Postpone(d, "a1", "worker_unavailable", now)
	if !ok || d.Attempts != 0 || d.Status != outbox.Pending || d.NextAttemptAt != now.Add(outbox.UnavailableDelay) {
		t.Errorf("got %+v", d)
	}
	d = outbox.Begin(d, "a2", now)
	if again := outbox.Begin(d, "a3", now); again.Attempts != 1 || again.AttemptID != "a3" {
		t.Errorf("a claim that never started was counted: %+v", again)
	}
}

// model walks one delivery through anything that processes and programs may do to it and
// checks what must hold in every state.
type model struct {
	d        outbox.Delivery
	now      time.Time
	alive    bool
	sends    int // programs that were started
	accepted bool
	maybe    bool // a program started and may have been heard
	final    outbox.Status
}

func (m *model) check(t *rapid.T) {
	first := outbox.New(route, source, event, now)
	if m.d.DeliveryID != first.DeliveryID || m.d.IdempotencyKey != first.IdempotencyKey || m.d.RouteID != first.RouteID {
		t.Fatal("an identity changed")
	}
	if m.d.Attempts > outbox.MaxAttempts || m.d.Attempts < 0 {
		t.Fatalf("%d attempts", m.d.Attempts)
	}
	if m.final != "" && m.d.Status != m.final {
		t.Fatalf("left the final status %s for %s", m.final, m.d.Status)
	}
	if !m.d.Status.Open() {
		m.final = m.d.Status
	}
	if (m.d.Status == outbox.Delivered) != !m.d.AcceptedAt.IsZero() {
		t.Fatalf("delivered without acceptance, or the reverse: %+v", m.d)
	}
	if m.d.Status == outbox.Pending && m.d.NextAttemptAt.IsZero() {
		t.Fatal("pending, and never due")
	}
}

func TestWhateverHappensNothingIsSentAgainThatMayHaveBeenHeard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{d: outbox.New(route, source, event, now), now: now, alive: true}
		kinds := rapid.SampledFrom([]outbox.OutcomeKind{outbox.Accepted, outbox.RetryableFailure, outbox.PermanentFailure, outbox.Uncertain, "odd"})
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			},
			"owner dies and a new one recovers": func(t *rapid.T) {
				m.alive = false
				switch outbox.Decide(m.d, m.now, m.alive) {
				case outbox.DoSettle, outbox.DoRefuse, outbox.DoLeave:
					if m.d.Status == outbox.Delivering {
						m.d, _ = outbox.Settle(m.d, m.d.AttemptID, *m.d.Outcome, m.now)
					}
				case outbox.DoGiveUp:
					m.d, _ = outbox.Settle(m.d, m.d.AttemptID, outbox.Lost(m.now), m.now)
				}
				m.alive = true
			},
			"try": func(t *rapid.T) {
				if outbox.Decide(m.d, m.now, m.alive) != outbox.DoRetry {
					return
				}
				if m.accepted || m.maybe {
					t.Fatalf("a retry is allowed after %d sends, accepted %v", m.sends, m.accepted)
				}
				m.d = outbox.Begin(m.d, ids.NewAttempt(), m.now)
			},
			"start": func(t *rapid.T) {
				d, ok := outbox.MarkStarted(m.d, m.d.AttemptID, m.now)
				if ok {
					m.d, m.sends, m.maybe = d, m.sends+1, true
				}
			},
			"evidence": func(t *rapid.T) { m.answer(t, kinds.Draw(t, "kind"), outbox.RecordOutcome) },
			"settle":   func(t *rapid.T) { m.answer(t, kinds.Draw(t, "kind"), outbox.Settle) },
			"a stranger settles": func(t *rapid.T) {
				before := m.d
				d, ok := outbox.Settle(m.d, "attempt-of-another", outbox.Outcome{Kind: outbox.RetryableFailure}, m.now)
				if ok || d.Status != before.Status {
					t.Fatal("a foreign attempt settled")
				}
			},
			"supersede": func(t *rapid.T) {
				if d, ok := outbox.Supersede(m.d, m.now); ok {
					m.d = d
				}
			},
		})
	})
}

// answer is what the running program said. Only an explicit "retry" makes a new send safe.
func (m *model) answer(t *rapid.T, kind outbox.OutcomeKind, apply func(outbox.Delivery, ids.AttemptID, outbox.Outcome, time.Time) (outbox.Delivery, bool)) {
	if m.d.TransportStartedAt.IsZero() {
		return
	}
	first := m.d.Outcome == nil
	d, ok := apply(m.d, m.d.AttemptID, outbox.Outcome{Kind: kind, At: m.now}, m.now)
	if !ok {
		return
	}
	m.d = d
	if first {
		m.maybe = kind != outbox.RetryableFailure
		m.accepted = kind == outbox.Accepted
	}
	if m.accepted && d.Status != outbox.Delivering && d.Status != outbox.Delivered {
		t.Fatalf("accepted, and then %s", d.Status)
	}
}

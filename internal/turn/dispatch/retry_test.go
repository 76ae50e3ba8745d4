package dispatch_test

import (
	"context"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// host answers callbacks as a test says.
type host struct {
	mu   sync.Mutex
	says func(delivery.Job) outbox.OutcomeKind
	jobs []delivery.Job
}

func (*host) Serving() bool               { return true }
func (*host) Ready(context.Context) error { return nil }
func (h *host) Deliver(_ context.Context, j delivery.Job) (outbox.Outcome, error) {
	h.mu.Lock()
	h.jobs = append(h.jobs, j)
	says := h.says
	h.mu.Unlock()
	return outbox.Outcome{Kind: says(j), ErrorCode: "said"}, nil
}

func (h *host) now(says outbox.OutcomeKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.says = func(delivery.Job) outbox.OutcomeKind { return says }
}

func (h *host) heard() []delivery.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]delivery.Job(nil), h.jobs...)
}

// delivering gives the rig a pump and a Host that answers so at first.
func (r *rig) delivering(says outbox.OutcomeKind) *host {
	r.t.Helper()
	h := &host{}
	h.now(says)
	p := delivery.New(delivery.Config{DB: r.db, Worker: h, Owner: r.Bridge, Live: r.Route})
	p.Start(r.t.Context())
	r.t.Cleanup(p.Stop)
	r.Callbacks, r.Enqueued = p, p.Kick
	return h
}

// settledAs waits until the newest delivery of the only Turn has the status.
func (r *rig) settledAs(status outbox.Status, attempts int) {
	r.t.Helper()
	faketmux.Wait(r.t, "a delivery that is "+string(status), func() bool {
		ds := deliveries(r.t, r)
		return len(ds) > 0 && ds[len(ds)-1].Status == status && ds[len(ds)-1].Attempts == attempts
	}, func() string { return "" })
}

func TestAFailedQuestionOutlivesACloseAndIsDeliveredByRetry(t *testing.T) { // spec case 35
	r := newRig(t)
	h := r.delivering(outbox.RetryableFailure)
	tn := r.accepted()
	r.observe(tn, prompt("a"))
	r.settledAs(outbox.Pending, 1)
	if now := r.only().Turn; now.Status != turn.WaitingForController {
		t.Errorf("a failed callback moved the Turn to %s", now.Status)
	}
	if _, err := r.Close(t.Context(), dispatch.CloseInput{TurnID: tn.ID}); err != nil {
		t.Fatal(err)
	}
	r.settledAs(outbox.Pending, 1)
	l, err := r.List(t.Context(), dispatch.ListInput{})
	if err != nil || l.Terminals[0].Actions["retry_callback"].Tool == "" {
		t.Errorf("%+v %v", l.Terminals, err)
	}
	h.now(outbox.Accepted)
	res, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID})
	if err != nil || res.Attempted != 1 || len(res.Callbacks) != 1 || res.Callbacks[0].Status != "delivered" || res.Callbacks[0].Disposition != outbox.DoRetry {
		t.Fatalf("%+v %v", res, err)
	}
	jobs := h.heard()
	if len(jobs) != 2 || jobs[0].DeliveryID != jobs[1].DeliveryID || jobs[0].IdempotencyKey != jobs[1].IdempotencyKey || jobs[0].AttemptID == jobs[1].AttemptID {
		t.Errorf("%+v", jobs)
	}
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID}); !fault.Is(err, fault.Conflict) {
		t.Errorf("what is delivered is sent again: %v", err)
	}
	if l, err := r.List(t.Context(), dispatch.ListInput{}); err != nil || l.Terminals[0].Actions["retry_callback"].Tool != "" {
		t.Errorf("%+v %v", l.Terminals, err)
	}
}

func TestEveryFailedCallbackOfATurnIsTriedOnceOldestFirst(t *testing.T) { // spec part 2.13
	r := newRig(t)
	h := r.delivering(outbox.RetryableFailure)
	tn := r.accepted()
	r.observe(tn, prompt("a"))
	r.settledAs(outbox.Pending, 1)
	r.update(func(tx *store.Tx) error { // it was told, so that the end does not take it back
		_, err := tx.Exec("UPDATE outbox SET attempts = 3")
		return err
	})
	if _, err := r.Close(t.Context(), dispatch.CloseInput{TurnID: tn.ID}); err != nil {
		t.Fatal(err)
	}
	r.update(func(tx *store.Tx) error { // a second one that failed too
		ds, err := outboxsql.BySource(tx, outbox.SourceTurn, string(tn.ID))
		if err != nil {
			return err
		}
		ev := ds[0].Event
		ev.ID, ev.Kind, ev.Body = "msg-2", "stalled", []byte("second")
		d := outbox.New(ds[0].Route, ds[0].Source, ev, tx.Now)
		d.Attempts, d.NextAttemptAt = 1, tx.Now.Add(1<<40)
		_, err = outboxsql.Enqueue(tx, d, r.Bridge)
		return err
	})
	h.now(outbox.Accepted)
	res, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID})
	if err != nil || res.Attempted != 2 || len(res.Callbacks) != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	jobs := h.heard()
	if len(jobs) != 3 || jobs[1].Event.Kind != "approval" || jobs[2].Event.Kind != "stalled" {
		t.Errorf("%+v", jobs)
	}
}

func TestOfTwoRetriesAtOnceOneSendsAndTheOtherSeesItInFlight(t *testing.T) { // spec case 33
	r := newRig(t)
	h := r.delivering(outbox.RetryableFailure)
	tn := r.accepted()
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n"})
	r.settledAs(outbox.Pending, 1)
	entered, release := make(chan struct{}), make(chan struct{})
	h.mu.Lock()
	h.says = func(delivery.Job) outbox.OutcomeKind { close(entered); <-release; return outbox.Accepted }
	h.mu.Unlock()
	first := make(chan dispatch.RetryResult, 1)
	go func() {
		res, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID})
		if err != nil {
			t.Error(err)
		}
		first <- res
	}()
	<-entered
	res, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID})
	close(release)
	if err != nil || res.Attempted != 0 || res.Callbacks[0].Disposition != outbox.DoWait || res.Callbacks[0].LeaseExpiresAt.IsZero() {
		t.Errorf("%+v %v", res, err)
	}
	if got := <-first; got.Attempted != 1 || got.Callbacks[0].Status != "delivered" {
		t.Errorf("%+v", got)
	}
	if n := len(h.heard()); n != 2 {
		t.Errorf("the Host was told %d times", n)
	}
}

func TestWhatTheHostMayHaveHeardOrRefusedIsNotSentAgain(t *testing.T) { // spec cases 31, 32, part 2.13
	for says, status := range map[outbox.OutcomeKind]outbox.Status{
		outbox.PermanentFailure: outbox.Failed, outbox.Uncertain: outbox.Unproved, outbox.Accepted: outbox.Delivered,
	} {
		t.Run(string(says), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			h := r.delivering(says)
			tn := r.accepted()
			r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n"})
			r.settledAs(status, 1)
			_, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID})
			if _, _, hint := fault.Public(err); !fault.Is(err, fault.Conflict) || hint == "" {
				t.Error(err)
			}
			if n := len(h.heard()); n != 1 {
				t.Errorf("the Host was told %d times", n)
			}
		})
	}
}

func TestARetryOfNothingSaysSo(t *testing.T) {
	r := newRig(t)
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{}); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: "x"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a pump: %v", err)
	}
	r.delivering(outbox.Accepted)
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: "x"}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	tn := r.accepted()
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{TurnID: tn.ID}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := r.Retry(t.Context(), dispatch.RetryInput{WatchID: "terminal-watch-x"}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

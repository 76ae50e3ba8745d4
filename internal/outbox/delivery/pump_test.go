package delivery_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/store"
)

func TestCase30TheFiveAttemptsAreMadeAtTheirTimesUnderOneIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me, w := openStore(t), ids.NewBridge(), always(outbox.RetryableFailure)
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		enqueue(t, db, me, "turn-1", "msg-1")
		start := time.Now()
		p.Kick()
		<-time.After(time.Hour) // of the bubble
		var offsets []time.Duration
		attempts := map[ids.AttemptID]bool{}
		for i, j := range w.seen() {
			offsets = append(offsets, w.at[i].Sub(start))
			attempts[j.AttemptID] = true
			if j.DeliveryID != w.jobs[0].DeliveryID || j.Attempt != i+1 || string(j.Event.Body) != "body of msg-1" {
				t.Errorf("attempt %d carries %+v", i+1, j)
			}
		}
		s := time.Second
		if want := []time.Duration{0, 5 * s, 20 * s, 80 * s, 140 * s}; !slices.Equal(offsets, want) || len(attempts) != 5 {
			t.Errorf("attempts at %v with %d ids, want %v", offsets, len(attempts), want)
		}
		if d := first(t, db, "turn-1"); d.Status != outbox.Exhausted || d.Attempts != 5 || d.LastError != "code_retryable_failure" {
			t.Errorf("at the end %+v", d)
		}
	})
}

func TestEveryOutcomeIsSettledAndOnlyRetryableComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		lost := fault.New("worker_lost", "test", "gone")
		rows := []struct {
			source string
			say    scripted
			status outbox.Status
			code   string
			sends  int
		}{
			{"accepted", always(outbox.Accepted).say, outbox.Delivered, "", 1},
			{"permanent", always(outbox.PermanentFailure).say, outbox.Failed, "code_permanent_failure", 1},
			{"uncertain", always(outbox.Uncertain).say, outbox.Unproved, "code_uncertain", 1},
			{"unknown kind", always("great").say, outbox.Unproved, "code_great", 1},
			{"worker lost", func(context.Context, delivery.Job) (outbox.Outcome, error) { return outbox.Outcome{}, lost }, outbox.Unproved, delivery.CodeWorkerLost, 1},
			{"uncoded error", func(context.Context, delivery.Job) (outbox.Outcome, error) { return outbox.Outcome{}, errors.New("x") }, outbox.Unproved, delivery.CodeWorkerLost, 1},
			{"bad job", func(context.Context, delivery.Job) (outbox.Outcome, error) {
				return outbox.Outcome{}, fault.New(fault.Invalid, "test", "no")
			}, outbox.Failed, delivery.CodeEnvelopeInvalid, 1},
			{"worker away at first", nil, outbox.Delivered, "", 21},
		}
		say := map[string]scripted{}
		for _, r := range rows {
			say[r.source] = r.say
		}
		away := 20 // more than MaxAttempts: what did not begin does not count
		say["worker away at first"] = func(context.Context, delivery.Job) (outbox.Outcome, error) {
			if away--; away >= 0 {
				return outbox.Outcome{}, fault.New([]fault.Code{fault.Unavailable, delivery.CodeProfileDrift}[away%2], "test", "not now")
			}
			return answer(outbox.Accepted), nil
		}
		w := &recorder{say: func(ctx context.Context, j delivery.Job) (outbox.Outcome, error) { return say[j.Source.ID](ctx, j) }}
		for _, r := range rows {
			enqueue(t, db, me, r.source, "msg-"+r.source)
		}
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		<-time.After(time.Hour)
		for _, r := range rows {
			sends := 0
			for _, j := range w.seen() {
				if j.Source.ID == r.source {
					sends++
				}
			}
			d := first(t, db, r.source)
			if d.Status != r.status || d.LastError != r.code || sends != r.sends || d.Attempts != 1 {
				t.Errorf("%s: %s %q after %d sends, %d attempts; want %s %q %d 1", r.source, d.Status, d.LastError, sends, d.Attempts, r.status, r.code, r.sends)
			}
		}
	})
}

func TestASlowCallbackHoldsBackOnlyItsOwnSource(t *testing.T) {
	db, me := openStore(t), ids.NewBridge()
	release := make(chan struct{})
	w := &recorder{say: func(ctx context.Context, j delivery.Job) (outbox.Outcome, error) {
		if j.Event.ID == "slow-1" {
			<-release
		}
		return answer(outbox.Accepted), nil
	}}
	enqueue(t, db, me, "slow", "slow-1", "slow-2", "slow-3")
	p := newPump(t, db, me, w)
	p.Start(t.Context())
	for _, source := range []string{"a", "b", "c", "d", "e", "f"} {
		enqueue(t, db, me, source, "msg-"+source)
		p.Kick()
		waitStatus(t, db, source, outbox.Delivered)
	}
	if d := first(t, db, "slow"); d.Status != outbox.Delivering || d.TransportStartedAt.IsZero() {
		t.Errorf("the slow one is %+v", d)
	}
	close(release)
	waitFor(t, "all delivered", func() bool { return len(w.seen()) == 9 })
	var order []string
	for _, j := range w.seen() {
		if j.Source.ID == "slow" {
			order = append(order, j.Event.ID)
		}
	}
	if !slices.Equal(order, []string{"slow-1", "slow-2", "slow-3"}) {
		t.Errorf("order %v", order)
	}
}

func TestNoMoreCallbacksRunAtOnceThanAllowed(t *testing.T) {
	db, me := openStore(t), ids.NewBridge()
	var now, peak atomic.Int32
	release := make(chan struct{})
	w := scripted(func(context.Context, delivery.Job) (outbox.Outcome, error) {
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		<-release
		now.Add(-1)
		return answer(outbox.Accepted), nil
	})
	sources := []string{"a", "b", "c", "d", "e", "f"}
	for _, s := range sources {
		enqueue(t, db, me, s, "msg-"+s)
	}
	p := delivery.New(delivery.Config{DB: db, Worker: w, Owner: me, Live: route, MaxConcurrent: 3})
	defer p.Stop()
	p.Start(t.Context())
	waitFor(t, "three run", func() bool { return now.Load() == 3 })
	p.Kick() // a step with no room
	close(release)
	for _, s := range sources {
		waitStatus(t, db, s, outbox.Delivered)
	}
	if peak.Load() != 3 {
		t.Errorf("%d ran at once, want 3", peak.Load())
	}
}

func TestTheAttemptIsStoredAsStartedBeforeTheWorkerHearsOfIt(t *testing.T) {
	db, me := openStore(t), ids.NewBridge()
	enqueue(t, db, me, "turn-1", "msg-1")
	stored := make(chan outbox.Delivery, 1)
	p := newPump(t, db, me, scripted(func(ctx context.Context, j delivery.Job) (outbox.Outcome, error) {
		stored <- first(t, db, "turn-1")
		return answer(outbox.Accepted), nil
	}))
	p.Start(t.Context())
	d := <-stored
	if d.TransportStartedAt.IsZero() || d.Status != outbox.Delivering || !d.LeaseExpiresAt.After(d.TransportStartedAt) {
		t.Errorf("the Store showed %+v while the worker ran", d)
	}
}

func TestStopWaitsForCallbacksAndEndsThoseThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		w := &recorder{say: func(ctx context.Context, j delivery.Job) (outbox.Outcome, error) {
			if j.Source.ID == "hangs" {
				<-ctx.Done()
				return answer(outbox.Uncertain), nil
			}
			<-time.After(2 * time.Second)
			return answer(outbox.Accepted), nil
		}}
		enqueue(t, db, me, "soon", "msg-soon", "msg-next")
		enqueue(t, db, me, "hangs", "msg-hangs")
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		synctest.Wait()
		begin := time.Now()
		p.Stop()
		p.Stop()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("Stop took %s", took)
		}
		if d := first(t, db, "soon"); d.Status != outbox.Delivered {
			t.Errorf("the one that came is %s", d.Status)
		}
		if d := first(t, db, "hangs"); d.Status != outbox.Unproved {
			t.Errorf("the one that hung is %s", d.Status)
		}
		if len(w.seen()) != 2 {
			t.Errorf("%d attempts, want 2: nothing new begins while stopping", len(w.seen()))
		}
	})
}

func TestAnOutcomeIsKeptUntilTheStoreTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		exec := func(sql string) {
			if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
				t.Error(err)
			}
		}
		w := &recorder{say: func(context.Context, delivery.Job) (outbox.Outcome, error) {
			exec(`CREATE TRIGGER sick BEFORE UPDATE ON outbox BEGIN SELECT RAISE(ABORT, 'disk sick'); END`)
			return answer(outbox.Accepted), nil
		}}
		enqueue(t, db, me, "turn-1", "msg-1")
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		<-time.After(time.Minute)
		if d := first(t, db, "turn-1"); d.Status != outbox.Delivering {
			t.Fatalf("settled although the Store refused: %s", d.Status)
		}
		exec(`DROP TRIGGER sick`)
		<-time.After(5 * time.Second)
		if d := first(t, db, "turn-1"); d.Status != outbox.Delivered || len(w.seen()) != 1 {
			t.Errorf("%s after %d sends", d.Status, len(w.seen()))
		}
	})
}

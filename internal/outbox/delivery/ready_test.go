package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
)

// starting is a worker that comes up, or does not, when the test says so.
type starting struct {
	*recorder
	serves atomic.Bool
	asked  atomic.Int32
	up     chan error // what Ready answers
}

func (w *starting) Serving() bool { return w.serves.Load() }

func (w *starting) Ready(ctx context.Context) error {
	w.asked.Add(1)
	select {
	case err := <-w.up:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// What counts as started is lost when the Bridge is killed: the Host may have heard it. So
// nothing counts as started while the worker still comes up.
func TestNothingIsStartedForAWorkerThatIsNotThere(t *testing.T) { // spec case 32
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		w := &starting{recorder: always(outbox.Accepted), up: make(chan error, 1)}
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		enqueue(t, db, me, "turn-1", "msg-1")
		p.Kick()
		synctest.Wait()
		p.Kick() // while it waits
		synctest.Wait()
		if d := first(t, db, "turn-1"); d.Status != outbox.Pending || d.Attempts != 0 || !d.TransportStartedAt.IsZero() || w.asked.Load() != 1 {
			t.Errorf("before the worker serves: %+v, asked %d times", d, w.asked.Load())
		}
		w.serves.Store(true)
		w.up <- nil
		synctest.Wait()
		if d := first(t, db, "turn-1"); d.Status != outbox.Delivered || d.Attempts != 1 {
			t.Errorf("%+v", d)
		}
	})
}

func TestAWorkerThatDoesNotComeUpIsNamedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		away := fault.New(fault.Unavailable, "test", "no worker")
		w := &starting{recorder: &recorder{say: func(context.Context, delivery.Job) (outbox.Outcome, error) { return outbox.Outcome{}, away }}, up: make(chan error, 1)}
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		enqueue(t, db, me, "turn-1", "msg-1")
		p.Kick()
		w.up <- away
		synctest.Wait()
		d := first(t, db, "turn-1")
		if d.Status != outbox.Pending || d.Attempts != 0 || d.LastError != delivery.CodeWorkerUnavailable || !d.NextAttemptAt.After(time.Now()) {
			t.Errorf("%+v", d)
		}
		w.serves.Store(true)
		w.say = always(outbox.Accepted).say
		<-time.After(time.Minute) // of the bubble
		if d := first(t, db, "turn-1"); d.Status != outbox.Delivered {
			t.Errorf("%+v", d)
		}
	})
}

func TestStopDoesNotWaitForAWorkerThatDoesNotComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		w := &starting{recorder: always(outbox.Accepted), up: make(chan error)}
		p := newPump(t, db, me, w)
		p.Start(t.Context())
		enqueue(t, db, me, "turn-1", "msg-1")
		p.Kick()
		synctest.Wait()
		start := time.Now()
		p.Stop()
		if d := time.Since(start); d > time.Second || w.asked.Load() != 1 {
			t.Errorf("Stop took %v", d)
		}
		if d := first(t, db, "turn-1"); d.Status != outbox.Pending || d.Attempts != 0 {
			t.Errorf("%+v", d)
		}
	})
}

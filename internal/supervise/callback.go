package supervise

import (
	"context"
	"sync"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// callbackSlot keeps the one akk-callback running from its first need on.
type callbackSlot struct {
	sup    *Supervisor
	record *record

	mu     sync.Mutex
	begun  bool
	worker *wire.Callback // nil while none serves
}

func newCallbackSlot(s *Supervisor) *callbackSlot {
	return &callbackSlot{sup: s, record: newRecord()}
}

// WarmCallback starts the callback worker, so that the first delivery does not wait for
// it. It does not wait itself.
func (s *Supervisor) WarmCallback() error { return s.callback.begin() }

// Deliver makes one attempt through the callback worker. [fault.Unavailable] and
// [fault.Invalid] prove that the callback program was not started; any other error means
// that it may have run.
func (s *Supervisor) Deliver(ctx context.Context, job wire.CallbackJob) (outbox.Outcome, error) {
	w, err := s.callback.serving(ctx)
	if err != nil {
		return outbox.Outcome{}, err
	}
	out, err := w.Deliver(ctx, job)
	if err == nil {
		s.callback.record.heard(s.clock.Now())
	}
	return out, err
}

// CallbackServing reports whether the callback worker serves now.
func (s *Supervisor) CallbackServing() bool {
	state, _, _ := s.callback.record.look()
	return state == StateServing
}

// AwaitCallback waits until the callback worker serves, at most ArmLimit. An error says
// that it does not, and why.
func (s *Supervisor) AwaitCallback(ctx context.Context) error {
	_, err := s.callback.serving(ctx)
	return err
}

func (c *callbackSlot) needed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

func (c *callbackSlot) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return nil
	}
	if err := c.sup.run(c.run); err != nil {
		return err
	}
	c.begun = true
	return nil
}

// serving returns the worker, waiting at most ArmLimit for one that starts. Every error
// says that nothing was started.
func (c *callbackSlot) serving(ctx context.Context) (*wire.Callback, error) {
	const op = "supervise.deliver"
	if err := c.begin(); err != nil {
		return nil, err
	}
	limit, stop := c.sup.clock.NewTimer(ArmLimit)
	defer stop()
	for {
		state, last, changed := c.record.look()
		if state == StateServing {
			c.mu.Lock()
			w := c.worker
			c.mu.Unlock()
			if w != nil {
				return w, nil
			}
		}
		if state == StateBackoff || state == StateEnded || state == StateUnhealthy {
			return nil, c.unavailable(last)
		}
		select {
		case <-changed:
		case <-limit:
			return nil, c.unavailable(last)
		case <-ctx.Done():
			return nil, fault.Wrap(ctx.Err(), fault.Unavailable, op, "the delivery was given up before its callback worker was ready")
		}
	}
}

func (c *callbackSlot) unavailable(last error) error {
	const op, msg = "supervise.deliver", "no callback worker is available; the callback program was not started"
	if last == nil {
		return fault.New(fault.Unavailable, op, msg).WithHint("it is started again, and the delivery is tried again")
	}
	_, why, hint := fault.Public(last)
	if hint == "" {
		hint = "it is started again, and the delivery is tried again"
	}
	return fault.Wrap(last, fault.Unavailable, op, "%s: %s", msg, why).WithHint("%s", hint)
}

// run is the life of the slot.
func (c *callbackSlot) run(ctx context.Context) {
	defer c.record.ended()
	var back backoff
	for {
		begin := c.sup.clock.Now()
		err := c.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		c.record.failed(err)
		c.sup.restarted(callbackName)
		d := back.next(c.sup.clock.Now().Sub(begin))
		c.sup.log.Warn("callback worker ended and is started again", "worker", callbackName, "after", d, "error", err)
		t, stop := c.sup.clock.NewTimer(d)
		select {
		case <-t:
		case <-ctx.Done():
		}
		stop()
	}
}

// attempt is the life of one worker.
func (c *callbackSlot) attempt(ctx context.Context) error {
	c.record.starting()
	w, err := wire.StartCallback(ctx, c.sup.options, c.sup.cfg.Handoff)
	if err != nil {
		return err
	}
	c.record.started(w.PID(), c.sup.clock.Now())
	c.set(w)
	c.record.serving()
	err = c.guard(ctx, w)
	c.record.unhealthy()
	c.set(nil)
	if ctx.Err() != nil {
		w.Stop()
	} else {
		w.Kill()
	}
	return err
}

func (c *callbackSlot) set(w *wire.Callback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worker = w
}

// guard returns when the worker ended, or was found not serving or silent twice in a row.
// It gets no work between the two.
func (c *callbackSlot) guard(ctx context.Context, w *wire.Callback) error {
	pause := checkEvery
	for {
		t, stop := c.sup.clock.NewTimer(pause)
		select {
		case <-t:
		case <-w.Exited():
			stop()
			return fault.New(wire.CodeLost, "supervise.callback", "the callback worker's process ended")
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		err := w.Healthy(ctx)
		switch {
		case err == nil:
			pause = checkEvery
			c.record.heard(c.sup.clock.Now())
			c.record.serving()
		case pause == checkAgain || ctx.Err() != nil:
			return err
		default:
			pause = checkAgain
			c.record.unhealthy()
		}
	}
}

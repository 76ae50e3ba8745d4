package supervise

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// errNotFinal says that a monitor's observations ended without an end of the turn.
var errNotFinal = errors.New("no end of the turn was observed")

// lateTimer is how late our own timer may be before it proves that this process itself
// did not run, so that a silent monitor is not to blame.
const lateTimer = 2 * time.Second

// read turns the stream into state and queue entries. It ends with the stream.
func (w *watch) read(m *wire.Monitor, queue chan<- wire.Event) error {
	sick := 0
	for {
		e, err := m.Next()
		if err != nil {
			return err
		}
		w.record.heard(w.sup.clock.Now())
		switch e.Kind {
		case wire.EventArmed:
			w.record.serving()
		case wire.EventHeartbeat:
			if sick++; e.Serving {
				sick = 0
			}
			if sick == 2 {
				return fault.New(wire.CodeNotServing, "supervise.monitor", "the monitor says that it is not serving")
			}
		case wire.EventObservation:
			select {
			case queue <- e:
			default: // it may not send more than this ahead
				return fault.New(wire.CodeLost, "supervise.monitor", "the monitor does not wait for acknowledgements")
			}
		}
	}
}

// guard returns when the monitor must be ended: its stream broke, everything is applied
// (nil), it is silent for too long, or the watch ended.
func (w *watch) guard(m *wire.Monitor, read <-chan error, applied chan error) error {
	c := w.sup.clock
	for {
		now := c.Now()
		wait := HangAfter - now.Sub(w.record.lastHeard())
		if read == nil {
			wait = HangAfter // it has nothing more to say
		}
		if wait <= 0 {
			return fault.New(fault.Timeout, "supervise.monitor", "the monitor was silent for %v", HangAfter)
		}
		t, stop := c.NewTimer(wait)
		select {
		case err := <-read:
			stop()
			if !errors.Is(err, io.EOF) {
				return err
			}
			read = nil // in order: what is queued still is applied and acknowledged
		case err := <-applied:
			stop()
			applied <- err // for serve
			return nil
		case <-m.Exited():
			stop()
			return fault.New(wire.CodeLost, "supervise.monitor", "the monitor's process ended")
		case <-w.ctx.Done():
			stop()
			return context.Cause(w.ctx)
		case <-t:
			if c.Now().Sub(now) > wait+lateTimer {
				w.record.heard(c.Now()) // we were stopped, or the machine slept
			}
		}
	}
}

// apply gives queue to the Sink, in order, and acknowledges what it took. nil means that
// nothing more is to be watched: a final observation is stored, or nobody wants to hear.
func (w *watch) apply(m *wire.Monitor, queue <-chan wire.Event) error {
	for e := range queue {
		crashpoint.Of(crashpoint.Observed, string(e.Observation.Kind))
		err := w.store(e.Observation)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		crashpoint.Of(crashpoint.ObserveStored, string(e.Observation.Kind))
		w.learn(e.Observation)
		if err := m.Acknowledge(w.ctx, e.Number); err != nil && w.ctx.Err() == nil {
			// A monitor that is not told waits; if it is dead, its stream says so.
			w.log.Debug("observation not acknowledged", "worker", monitorName, "number", e.Number, "error", err)
		}
		crashpoint.Of(crashpoint.ObserveAcked, string(e.Observation.Kind))
		if e.Observation.Kind.Final() {
			return nil
		}
	}
	return errNotFinal
}

// store tries until the Sink took the observation or the watch ended.
func (w *watch) store(o turn.Observation) error {
	for wait := sinkRetryMin; ; wait = min(2*wait, sinkRetryMax) {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		err := w.sup.cfg.Sink.Observe(w.ctx, w.subject, o)
		if err == nil || fault.Is(err, fault.NotFound) {
			return err
		}
		w.log.Warn("observation not stored, tried again", "worker", monitorName, "kind", string(o.Kind), "after", wait, "error", err)
		t, stop := w.sup.clock.NewTimer(wait)
		select {
		case <-t:
		case <-w.ctx.Done():
		}
		stop()
	}
}

// learn keeps what the next monitor must know.
func (w *watch) learn(o turn.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o.Kind {
	case turn.ObsAccepted:
		w.spec.Accepted = true
	case turn.ObsPrompt:
		if o.Prompt != nil {
			w.spec.OpenPrompt = o.Prompt.Fingerprint
		}
	case turn.ObsPromptCleared:
		w.spec.OpenPrompt = ""
	}
}

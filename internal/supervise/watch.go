package supervise

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// watch keeps one Turn or Terminal Watch watched, through as many monitors as it takes.
type watch struct {
	sup     *Supervisor
	subject ids.SubjectID
	log     *slog.Logger // names the Turn or the Watch
	record  *record
	ctx     context.Context // ends with the watch
	cancel  context.CancelFunc

	mu      sync.Mutex
	spec    wire.MonitorSpec // grows with what is stored, for the next monitor
	monitor *wire.Monitor    // nil while none runs
}

func newWatch(s *Supervisor, spec wire.MonitorSpec) *watch {
	ctx, cancel := context.WithCancel(s.group.Context())
	return &watch{sup: s, subject: spec.Subject(), log: about(s.log, spec.Subject()), record: newRecord(), ctx: ctx, cancel: cancel, spec: spec}
}

// about is a log whose lines name what a monitor serves, as everybody else's do.
func about(log *slog.Logger, subject ids.SubjectID) *slog.Logger {
	return log.With(subject.Kind(), string(subject))
}

// keep reports whether this watch serves spec, and takes what spec knows better.
func (w *watch) keep(spec wire.MonitorSpec) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.ctx.Err() == nil && w.spec.MessageID == spec.MessageID && w.spec.Mode == spec.Mode && w.spec.Ref.Process == spec.Ref.Process &&
		w.spec.Ref.Endpoint.Key() == spec.Ref.Endpoint.Key() && reflect.DeepEqual(w.spec.Anchor, spec.Anchor)
	if same {
		if !spec.EnteredAt.IsZero() {
			w.spec.EnteredAt = spec.EnteredAt
		}
		w.spec.Accepted = w.spec.Accepted || spec.Accepted
	}
	return same
}

func (w *watch) entered(ctx context.Context, at time.Time) error {
	w.mu.Lock()
	w.spec.EnteredAt = at
	m := w.monitor
	w.mu.Unlock()
	if m == nil {
		return nil // the next one starts with it
	}
	return m.MarkEntered(ctx, at)
}

// answered: a monitor that starts later must not take the prompt for one that is told.
func (w *watch) answered(ctx context.Context, fingerprint string) error {
	w.mu.Lock()
	if w.spec.OpenPrompt == fingerprint {
		w.spec.OpenPrompt = ""
	}
	m := w.monitor
	w.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.MarkAnswered(ctx, fingerprint)
}

// waitArmed waits for an armed monitor. A failure that another start will not mend is
// returned at once.
func (w *watch) waitArmed(ctx context.Context) error {
	const op = "supervise.watch"
	limit, stop := w.sup.clock.NewTimer(ArmLimit)
	defer stop()
	for {
		state, last, changed := w.record.look()
		switch {
		case state == StateServing || state == StateEnded:
			return nil
		case state == StateBackoff && hopeless(last):
			return last
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return fault.New(fault.Unavailable, op, "the watch of %s was ended", w.subject)
		case <-limit:
			if last == nil {
				last = fault.New(fault.Timeout, op, "the monitor was not armed in time")
			}
			return fault.Wrap(last, fault.Unavailable, op, "no monitor could be armed for %s", w.subject).
				WithHint("nothing was typed; see doctor for the workers, then try again")
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, op, "the caller did not wait for the monitor of %s", w.subject)
		}
	}
}

// hopeless failures need a person.
func hopeless(err error) bool {
	switch fault.CodeOf(err) {
	case wire.CodeBinary, wire.CodeVersion, wire.CodeFingerprint, fault.Invalid:
		return true
	}
	return false
}

// run is the life of a watch.
func (w *watch) run(context.Context) {
	defer w.cancel()
	defer w.record.ended()
	defer w.sup.drop(w)
	var back backoff
	for {
		begin := w.sup.clock.Now()
		err := w.attempt()
		if err == nil || w.ctx.Err() != nil {
			return
		}
		w.record.failed(err)
		w.sup.restarted(monitorName)
		d := back.next(w.sup.clock.Now().Sub(begin))
		w.log.Warn("monitor ended and is started again", "worker", monitorName, "after", d, "error", err)
		t, stop := w.sup.clock.NewTimer(d)
		select {
		case <-t:
		case <-w.ctx.Done():
		}
		stop()
	}
}

// attempt is the life of one monitor. nil means that nothing more is to be watched.
func (w *watch) attempt() error {
	w.record.starting()
	release, err := w.sup.startSlot(w.ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	spec := w.spec
	w.mu.Unlock()
	options := w.sup.options
	options.Log = w.log // what the worker itself says is about the same
	m, err := wire.StartMonitor(w.ctx, options, w.sup.monitorHandoff(), spec)
	release()
	if err != nil {
		return err
	}
	w.record.started(m.PID(), w.sup.clock.Now())
	w.mu.Lock()
	w.monitor = m
	late, open := w.spec.EnteredAt, w.spec.OpenPrompt
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.monitor = nil
		w.mu.Unlock()
		m.Stop()
	}()
	if !late.Equal(spec.EnteredAt) { // Enter was pressed while it started
		if err := m.MarkEntered(w.ctx, late); err != nil {
			return err
		}
	}
	if open != spec.OpenPrompt { // it was answered while it started
		if err := m.MarkAnswered(w.ctx, spec.OpenPrompt); err != nil {
			return err
		}
	}
	return w.serve(m)
}

// monitorHandoff leaves out what only the callback worker may know.
func (s *Supervisor) monitorHandoff() wire.Handoff {
	h := s.cfg.Handoff
	h.Environment, h.ControllerSession = nil, ""
	return h
}

// serve reads and applies until the monitor ends or hangs. What was read is applied
// before serve returns, unless the watch itself is ended. nil means that nothing more is
// to be watched.
func (w *watch) serve(m *wire.Monitor) error {
	queue := make(chan wire.Event, wire.MaxUnacknowledged)
	read, applied := make(chan error, 1), make(chan error, 1)
	var both sync.WaitGroup
	both.Go(func() { defer close(queue); read <- w.read(m, queue) })
	both.Go(func() { applied <- w.apply(m, queue) })
	err := w.guard(m, read, applied)
	if err != nil && w.ctx.Err() == nil {
		w.record.unhealthy()
		m.Kill()
	} else {
		m.Stop()
	}
	both.Wait() // the end of the monitor broke the stream, which closed the queue
	if <-applied == nil {
		return nil // the end of the turn is stored; how the monitor ended does not matter
	}
	if err == nil {
		return errNotFinal
	}
	return err
}

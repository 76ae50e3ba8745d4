// Package supervise turns desired state into worker processes: one akk-monitor for each
// Turn or Terminal Watch that is watched and one akk-callback for the Bridge. What dies is started again
// with back-off, what hangs is found, killed and replaced, and no worker can hold up
// another one or the Bridge's end.
//
// It knows what a worker serves and nothing of why: observations go to a [Sink] and are
// acknowledged when that took them. It holds no Turn rule, no Store and no retry of a
// delivery.
package supervise

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// The bounds of this package.
const (
	ArmLimit = 5 * time.Second // Watch: from the call to the armed monitor
	// HangAfter is how long a monitor may be silent; its heartbeats come every 4 s.
	HangAfter = 9 * time.Second
	// checkEvery is the pace of health checks of the callback worker. Two that fail, one
	// after another, make it a hung one; with their own bound that is under 10 s.
	checkEvery = 2 * time.Second
	checkAgain = time.Second

	backoffMin   = time.Second
	backoffMax   = 60 * time.Second
	provedAfter  = 60 * time.Second       // a worker that lived this long starts its back-off anew
	sinkRetryMin = 100 * time.Millisecond // between two tries of the Sink
	sinkRetryMax = 5 * time.Second
	stopLimit    = 4500 * time.Millisecond // Stop, whatever hangs

	startsAtOnce = 4               // processes being started at the same time
	startHold    = 2 * time.Second // after that a slow start no longer counts as one
)

// The names of workers in logs, counts and states.
const (
	monitorName  = "akk-monitor"
	callbackName = "akk-callback"
)

// Sink takes what monitors see. Observe applies one observation of one Turn or Watch in one
// transaction; only after it returned nil is the observation acknowledged. An error is
// not acknowledged and tried again, in order, but [fault.NotFound] says that nobody
// wants to hear of it any more. The same observation may come again after a
// monitor was replaced.
type Sink interface {
	Observe(ctx context.Context, subject ids.SubjectID, o turn.Observation) error
}

// Config is what a Supervisor works with. All but Clock and Env are required; Spawner and
// RunDir belong to the caller and outlive the Supervisor.
type Config struct {
	Spawner  *proc.Spawner
	Binaries wire.Binaries
	RunDir   *wire.RunDir
	Handoff  wire.Handoff
	Sink     Sink
	Log      *slog.Logger
	Clock    clock.Clock // nil: the system's
	Env      []string    // added to the workers' environment; never a secret
	// Restarted, when set, hears the name of each worker that ended and is started again. It
	// must not block.
	Restarted func(worker string)
}

// Supervisor owns the workers of one Bridge.
type Supervisor struct {
	cfg      Config
	options  wire.Options
	clock    clock.Clock
	log      *slog.Logger
	lifeline *proc.Lifeline
	group    *lifecycle.Group
	starts   chan struct{}
	callback *callbackSlot

	mu      sync.Mutex // guards closed, watches and starting goroutines after Stop
	closed  bool
	watches map[ids.SubjectID]*watch
}

// New returns a Supervisor without workers. It ends by Stop; the end of ctx cancels its
// work too but waits for nothing.
func New(ctx context.Context, cfg Config) (*Supervisor, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	lifeline, err := proc.NewLifeline()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		cfg: cfg, clock: cfg.Clock, log: cfg.Log, lifeline: lifeline, group: lifecycle.NewGroup(ctx),
		starts: make(chan struct{}, startsAtOnce), watches: map[ids.SubjectID]*watch{},
		options: wire.Options{
			Spawner: cfg.Spawner, Lifeline: lifeline, Binaries: cfg.Binaries, RunDir: cfg.RunDir, Log: cfg.Log, Env: cfg.Env,
		},
	}
	s.callback = newCallbackSlot(s)
	return s, nil
}

// run starts f in the group unless the Supervisor is stopping.
func (s *Supervisor) run(f func(context.Context)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runLocked(f)
}

func (s *Supervisor) runLocked(f func(context.Context)) error {
	if s.closed {
		return fault.New(fault.Unavailable, "supervise.run", "the Bridge is stopping").WithHint("try again with the next Bridge")
	}
	s.group.Go(f)
	return nil
}

// startSlot bounds how many processes are being started at once: a Bridge that resumes a
// hundred Turns would otherwise starve itself. A start that hangs gives its slot back.
func (s *Supervisor) startSlot(ctx context.Context) (release func(), err error) {
	select {
	case s.starts <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	once := sync.OnceFunc(func() { <-s.starts })
	t := time.AfterFunc(startHold, once)
	return func() { t.Stop(); once() }, nil
}

// Watch starts a monitor for the Turn or Terminal Watch, or keeps the one that watches the same request,
// and returns when it is armed, at most ArmLimit later. After an error it is still
// wanted and its monitor is started again with back-off until Forget.
func (s *Supervisor) Watch(ctx context.Context, spec wire.MonitorSpec) error {
	s.mu.Lock()
	w := s.watches[spec.Subject()]
	if w == nil || !w.keep(spec) {
		if w != nil {
			w.cancel()
		}
		w = newWatch(s, spec)
		if err := s.runLocked(w.run); err != nil {
			s.mu.Unlock()
			return err
		}
		s.watches[spec.Subject()] = w
	}
	s.mu.Unlock()
	return w.waitArmed(ctx)
}

// Entered tells the Turn's monitor when Enter was pressed; from then on it may prove that
// the request was not accepted. A monitor that is being replaced hears of it when it
// starts.
func (s *Supervisor) Entered(ctx context.Context, turnID ids.TurnID, at time.Time) error {
	s.mu.Lock()
	w := s.watches[ids.SubjectID(turnID)]
	s.mu.Unlock()
	if w == nil {
		return fault.New(fault.NotFound, "supervise.entered", "no monitor watches %s", turnID)
	}
	return w.entered(ctx, at)
}

// Answered tells the Turn's monitor that a prompt was answered and then seen gone: the same
// prompt again is another question, and may come back before the monitor looks.
func (s *Supervisor) Answered(ctx context.Context, turnID ids.TurnID, fingerprint string) error {
	s.mu.Lock()
	w := s.watches[ids.SubjectID(turnID)]
	s.mu.Unlock()
	if w == nil {
		return fault.New(fault.NotFound, "supervise.answered", "no monitor watches %s", turnID)
	}
	return w.answered(ctx, fingerprint)
}

// Forget ends the subject's monitor and does not wait for that. Forgetting what is not
// watched is no error.
func (s *Supervisor) Forget(subject ids.SubjectID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[subject]; w != nil {
		delete(s.watches, subject)
		w.cancel()
	}
}

// restarted tells that a worker is started again.
func (s *Supervisor) restarted(worker string) {
	if s.cfg.Restarted != nil {
		s.cfg.Restarted(worker)
	}
}

// drop removes a watch that ended by itself.
func (s *Supervisor) drop(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[w.subject] == w {
		delete(s.watches, w.subject)
	}
}

// State is what a worker does now.
type State string

// The states of a worker.
const (
	StateStarting  State = "starting"
	StateServing   State = "serving"
	StateUnhealthy State = "unhealthy" // it says NOT_SERVING, or does not answer
	StateBackoff   State = "backoff"   // it ended and is started again later
	StateEnded     State = "ended"
)

// WorkerStatus is one worker as doctor shows it. It holds no secret.
type WorkerStatus struct {
	Name          string // "akk-monitor", "akk-callback"
	Serves        string // the Turn or Watch, or "callbacks"
	PID           int    // 0 while none runs
	Age           time.Duration
	LastHeartbeat time.Time
	Restarts      int
	Fingerprint   string // of the profile that it proved to serve
	State         State
	LastError     string // one line: why the last one ended, "" if none did
}

// Status reports every worker, the callback worker first if it was ever needed, monitors
// in the order of their Turns.
func (s *Supervisor) Status() []WorkerStatus {
	s.mu.Lock()
	watches := make([]*watch, 0, len(s.watches))
	for _, w := range s.watches {
		watches = append(watches, w)
	}
	s.mu.Unlock()
	var out []WorkerStatus
	for _, w := range watches {
		out = append(out, w.record.status(monitorName, string(w.subject), s.clock.Now(), s.cfg.Handoff.Fingerprint))
	}
	slices.SortFunc(out, func(a, b WorkerStatus) int { return strings.Compare(a.Serves, b.Serves) })
	if s.callback.needed() {
		cb := s.callback.record.status(callbackName, "callbacks", s.clock.Now(), s.cfg.Handoff.Fingerprint)
		out = append([]WorkerStatus{cb}, out...)
	}
	return out
}

// Stop ends every worker and returns when all are gone, at most 5 s later whatever hangs.
// An error says that something did not end; its processes end with the Spawner at the
// latest. Stop may be called twice.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.group.Cancel()
	done := make(chan struct{})
	go func() { s.group.Stop(); close(done) }()
	t := time.NewTimer(stopLimit) // a bound of real time, whatever the injected clock does
	defer t.Stop()
	var err error
	select {
	case <-done:
	case <-t.C:
		err = fault.New(fault.Timeout, "supervise.stop", "not every worker ended in time")
	case <-ctx.Done():
		err = fault.Wrap(ctx.Err(), fault.Timeout, "supervise.stop", "not every worker ended in time")
	}
	s.lifeline.Close() // whoever still listens ends now
	return err
}

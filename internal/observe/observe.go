// Package observe is the loop of one monitor: it lets the agent's adapter follow the
// agent's own records, watches the process for its end, and looks at the screen for the
// two things that only a screen says: that the agent waits for a decision, and that a
// request is still an unsent draft.
//
// It reports evidence and decides nothing: no Turn rule, no Store, no transport. It types
// nothing. When nothing happens it costs nothing but a look at the screen every few
// seconds.
package observe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	captureLimit               = 3 * time.Second           // one look
	followGrace                = 2 * time.Second           // for the adapter to end when it is told to
	acceptWait                 = 5 * time.Second           // from Enter until a draft may prove that it failed
	draftGap                   = 50 * time.Millisecond     // between the two captures of that proof, at least 30 ms
	activityGap                = 5 * time.Second           // between two equal activity observations of records
	questionLooks, questionGap = 8, 100 * time.Millisecond // for a question that the server reported

	screenGap = 60 * time.Second // between two activity observations of the screen
)

// CodeScreen is the code of [turn.ObsTrouble] when the screen cannot be read. Records are
// still followed.
const CodeScreen = "screen_unreadable"

// blindAfter is how many looks must fail, one after another, before that is said.
const blindAfter = 5

// Spec is what is watched.
type Spec struct {
	Ref    agent.Ref
	Anchor turn.Anchor
	// Pasted is the text as typed; "" on a machine channel, where no draft can be.
	Pasted string
	// EnteredAt is when Enter was pressed; zero while it was not.
	EnteredAt time.Time
	// Accepted and OpenPrompt are what is known already, from before this monitor.
	Accepted   bool
	OpenPrompt string
}

// Screen captures a pane. [tmux.Server] is one.
type Screen interface {
	Capture(ctx context.Context, paneID string, o tmux.CaptureOptions) (tmux.Capture, error)
}

// Config is what the loop works with. Screen is required.
type Config struct {
	Screen Screen
	Clock  clock.Clock // nil: the system's
	// Exit watches a process for its end; nil: [procinfo.Watch].
	Exit func(turn.Incarnation) (gone <-chan struct{}, stop func(), err error)
	// Entered receives when Enter was pressed, if the Spec did not know it.
	Entered <-chan time.Time
	// Answered receives the fingerprint of a prompt that was answered and then seen gone.
	Answered <-chan string
	// Beat is called whenever the loop has made progress, and once for each receive from
	// Tick: a loop that hangs, or looks for longer than twice captureLimit, does not answer.
	// The one who asks sets the pace, so that a silent watch wakes for nothing of its own
	// but a look.
	Beat func()
	Tick <-chan struct{}
}

// Run watches until the native turn ended (nil), ctx ended, or evidence could not be
// followed (an error; the caller may start again with the same Spec). Observations are
// emitted one at a time; an error of emit ends the watch.
func Run(ctx context.Context, c Config, s Spec, a agent.Adapter, emit func(turn.Observation) error) error {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Exit == nil {
		c.Exit = procinfo.Watch
	}
	if c.Beat == nil {
		c.Beat = func() {}
	}
	gone, stop, err := c.Exit(s.Ref.Process)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "observe.run", "cannot watch process %d", s.Ref.Process.PID)
	}
	defer stop()
	w := &watch{
		Config: c, spec: s, adapter: a, out: emit, wake: make(chan struct{}, 1),
		facts: facts{served: served(a, s.Anchor), accepted: s.Accepted, enteredAt: s.EnteredAt, prompt: s.OpenPrompt, pasted: s.Pasted},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan error, 1)
	go func() {
		followed <- a.Follow(ctx, s.Ref, s.Anchor, gone, func(o turn.Observation) error { return w.fromRecords(ctx, o) })
	}()
	err, ended := w.loop(ctx, followed)
	if ended {
		return err
	}
	// The loop failed or was told to end; Follow is told too and gets its moment.
	cancel()
	t, stopTimer := c.Clock.NewTimer(followGrace)
	defer stopTimer()
	select {
	case <-followed:
	case <-t:
	}
	return err
}

// watch is one Run.
type watch struct {
	Config
	spec    Spec
	adapter agent.Adapter
	out     func(turn.Observation) error
	wake    chan struct{} // the records said something
	soon    atomic.Bool   // and the agent may ask something now

	mu    sync.Mutex // one observation at a time, and facts
	facts facts
}

// emit passes an observation on unless it says nothing new.
func (w *watch) emit(o turn.Observation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.At.IsZero() {
		o.At = w.Clock.Now()
	}
	if !w.facts.admit(o) {
		return nil
	}
	return w.out(o)
}

// fromRecords takes what the adapter saw, and has the screen looked at soon.
func (w *watch) fromRecords(ctx context.Context, o turn.Observation) error {
	if agent.MayAsk(o) || o.Kind == turn.ObsAccepted || o.Kind == turn.ObsActivity && o.Source == sourceStatus && w.know().prompt != "" {
		w.soon.Store(true)
	}
	if o.Code == agent.CodeMayAsk {
		o.Code = ""
	}
	var err error
	if o.Kind == turn.ObsPrompt && o.Prompt != nil && o.Prompt.Kind == turn.PromptQuestion {
		err = w.asked(ctx, o)
	} else {
		err = w.emit(o)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return err
}

// served reports whether the agent has a server that tells what it asks.
func served(a agent.Adapter, anc turn.Anchor) bool {
	r, ok := a.(agent.Reporter)
	return ok && r.Reports(anc)
}

// know reads the facts that the loop decides on.
func (w *watch) know() facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.facts
}

// loop looks at the screen until Follow ended (ended is true and err is its answer), ctx
// ended or emit failed.
func (w *watch) loop(ctx context.Context, followed <-chan error) (err error, ended bool) {
	pace := newPace(w.Clock.Now())
	entered := w.Entered
	for {
		w.Beat()
		timer, stop := w.Clock.NewTimer(max(0, pace.due.Sub(w.Clock.Now())))
		select {
		case <-w.Tick:
		case err := <-followed:
			stop()
			return w.finish(err), true
		case <-ctx.Done():
			stop()
			return context.Cause(ctx), false
		case at := <-entered:
			entered = nil // Enter is pressed once
			w.mu.Lock()
			w.facts.enteredAt = at
			w.mu.Unlock()
			pace.news()
		case fp := <-w.Answered:
			w.mu.Lock()
			w.facts.taken(fp, w.Clock.Now())
			w.mu.Unlock()
			pace.news()
		case <-w.wake:
			if w.soon.Swap(false) {
				pace.soon(w.Clock.Now())
			} else {
				pace.news()
			}
		case <-timer:
			now := w.Clock.Now()
			news, err := w.look(ctx)
			if err != nil {
				stop()
				return err, false
			}
			f := w.know()
			pace.looked(now, news || f.awaitsAcceptance(), f.prompt != "")
		}
		stop()
	}
}

// finish judges the end of Follow.
func (w *watch) finish(err error) error {
	if err == nil && !w.know().final {
		return fault.New(fault.Internal, "observe.run", "the records of the agent ended without an end of its turn")
	}
	return err
}

// Package feed is the Bridge's side of telemetry: it hears that a task or a callback
// changed, reads the stored facts, and writes them to the program akk-telemetry, which it
// starts, watches and starts again.
//
// Nobody waits for it: a change is a name in a bounded queue, and what does not fit is
// counted and dropped. It decides nothing, writes nothing to the Store and links no
// OpenTelemetry. A program that is missing or of another release is one line in the log.
package feed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// StopLimit bounds Stop: what waits is written, the program flushes, and is killed.
	StopLimit = 2500 * time.Millisecond
	// drainLimit is the part of it in which what waits is written.
	drainLimit = 500 * time.Millisecond
	// maxWaiting is how many changed tasks and Watches may wait to be told.
	maxWaiting = 1024
	// levelsEvery is the pace of the gauges.
	levelsEvery = 10 * time.Second
	readLimit   = 2 * time.Second // of the Store, for one fact
	// hangAfter is how long the program may be silent; it gives a sign of life every 4 s.
	hangAfter = 15 * time.Second
	// retell is how far before its start a program tells spans again that another one may
	// have taken with it when it was killed.
	retell      = 30 * time.Second
	backoffMin  = time.Second
	backoffMax  = 60 * time.Second
	provedAfter = 60 * time.Second // a program that lived this long starts its back-off anew
)

// Config is what a Feed works with. All are required but Parent; Spawner and DB belong to
// the caller and outlive the Feed.
type Config struct {
	Program string // absolute
	Release string
	Bridge  ids.BridgeID
	Wanted  telemetry.Wanted
	Environ []string // of this process: the program gets the few that it needs
	DB      *store.DB
	Spawner *proc.Spawner
	Parent  string // a W3C traceparent of the Host, or ""
	Log     *slog.Logger
}

// Feed is telemetry that is on. A nil Feed is telemetry that is off: all its methods may be
// called and do nothing. They are safe for concurrent use and never block.
type Feed struct {
	cfg     Config
	started time.Time
	group   *lifecycle.Group
	closing chan struct{} // closed by Stop
	ended   chan struct{} // closed when nothing runs any more
	stop    sync.Once
	wake    chan struct{}

	mu       sync.Mutex
	off      bool // it will never be told again
	waiting  []outbox.Source
	queued   map[outbox.Source]struct{}
	writing  bool
	dropped  int64
	restarts map[string]int64
	worker   supervise.WorkerStatus
	since    time.Time // of this process
}

// New returns a Feed that queues; Start begins to tell.
func New(cfg Config) *Feed {
	return &Feed{cfg: cfg, started: time.Now(), closing: make(chan struct{}), ended: make(chan struct{}), wake: make(chan struct{}, 1), queued: map[outbox.Source]struct{}{},
		restarts: map[string]int64{}, worker: supervise.WorkerStatus{Name: telemetry.Program, Serves: "telemetry", State: supervise.StateStarting}}
}

// Start begins to tell. It ends by Stop.
func (f *Feed) Start(ctx context.Context) {
	if f == nil {
		return
	}
	f.group = lifecycle.NewGroup(ctx)
	f.group.Go(func(ctx context.Context) {
		defer close(f.ended)
		f.run(ctx)
	})
}

// Stop tells what waits and ends the program, within StopLimit.
func (f *Feed) Stop() {
	if f == nil || f.group == nil {
		return
	}
	f.stop.Do(func() { close(f.closing) })
	t := time.NewTimer(StopLimit)
	defer t.Stop()
	select {
	case <-f.ended:
	case <-t.C: // the program is killed with its group's end
	}
	f.group.Stop()
}

// Turn hears of a plan that was committed.
func (f *Feed) Turn(p turn.Plan) {
	if f != nil && telemetry.Tells(p) {
		f.put(outbox.Source{Kind: outbox.SourceTurn, ID: string(p.Turn.ID)})
	}
}

// Callback hears that an attempt of a callback of source ended.
func (f *Feed) Callback(source outbox.Source) {
	if f != nil && (source.Kind == outbox.SourceTurn || source.Kind == outbox.SourceWatch) {
		f.put(source)
	}
}

// Restarted hears that a worker ended and is started again.
func (f *Feed) Restarted(worker string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restarts[worker]++
}

func (f *Feed) put(s outbox.Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off {
		return
	}
	if _, ok := f.queued[s]; ok {
		return // it is read when its turn comes, with this change
	}
	if len(f.waiting) >= maxWaiting {
		f.dropped++
		return
	}
	f.waiting = append(f.waiting, s)
	f.queued[s] = struct{}{}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Feed) take() (outbox.Source, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return outbox.Source{}, false
	}
	s := f.waiting[0]
	f.waiting = f.waiting[1:]
	delete(f.queued, s)
	return s, true
}

func (f *Feed) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped++
}

// Status is the program as doctor shows it; ok is false when telemetry is off.
func (f *Feed) Status() (_ supervise.WorkerStatus, ok bool) {
	if f == nil {
		return supervise.WorkerStatus{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.worker
	if w.PID != 0 {
		w.Age = time.Since(f.since)
	}
	return w, true
}

func (f *Feed) change(how func(*supervise.WorkerStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how(&f.worker)
}

// giveUp ends telemetry for good: nothing is queued any more.
func (f *Feed) giveUp(err error) {
	_, msg, hint := fault.Public(err)
	f.cfg.Log.Warn("telemetry is off", "reason", msg, "hint", hint)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off, f.waiting, f.queued = true, nil, nil
	f.worker.State, f.worker.PID, f.worker.LastError = supervise.StateEnded, 0, msg
}

func (f *Feed) isClosing() bool {
	select {
	case <-f.closing:
		return true
	default:
		return false
	}
}

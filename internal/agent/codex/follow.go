package codex

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// safetyTick is the pause after which files are looked at without an event: while
	// something is due, or where file events cannot be had.
	safetyTick = time.Second
	// quietTick is the same while an accepted turn is followed by file events and nothing
	// is due: a hundred silent Turns must cost next to nothing.
	quietTick = 5 * time.Second
	// activityGrain is the shortest pause between two activity observations.
	activityGrain = 5 * time.Second
	// lostTicks is how many ticks a turn may have no end after its server said idle, or
	// its server may be away after the pane's process ended.
	lostTicks = 5
	// maxFollowed bounds the rollouts that are read at once.
	maxFollowed = 32
	// sinceSlack covers the rounding of record times for a thread that had no id.
	sinceSlack = time.Second
)

// follower is one run of Follow.
type follower struct {
	a    *Adapter
	ref  agent.Ref
	anc  turn.Anchor
	emit func(turn.Observation) error
	t    *tracker

	tails   []*rollout.Tail
	known   map[string]bool // paths that have a tail or were rejected
	watcher *fsnotify.Watcher
	watched map[string]bool
	blind   bool // a path could not be watched

	sock      chan serverEvent
	connected bool
	status    string // of the thread, as the server said last
	gone      bool
	ticks     int // since something became due, see lostTicks
	lost      bool
	heard     bool                // the server said something of the thread
	called    bool                // a tool was called since the last step
	asked     asked               // the open requests of the server
	edits     edits               // what the agent is about to change
	early     []appserver.Message // what came before the acceptance was known
	ticked    bool
	active    time.Time // of the last activity observation
}

// Reports implements [agent.Reporter].
func (*Adapter) Reports(anc turn.Anchor) bool {
	return anc.Extra[extraSocket] != "" && anc.ThreadID != ""
}

// Follow implements [agent.Adapter]. The rollout is the witness in every mode; with a
// server its events are one too, and the approvals, which no file shows, come from it.
// Whichever proves a step first is reported, the other is not.
//
// When the pane's process is gone and the turn runs on a server, the turn goes on: Follow
// keeps following it until it ends or the server is away as well.
func (a *Adapter) Follow(ctx context.Context, ref agent.Ref, anc turn.Anchor, gone <-chan struct{}, emit func(turn.Observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{a: a, ref: ref, anc: anc, emit: emit, t: newTracker(anc),
		known: map[string]bool{}, watched: map[string]bool{}}
	var events chan fsnotify.Event
	var lost chan error
	if w, err := fsnotify.NewWatcher(); err == nil { // without it the tick does the work
		f.watcher, events, lost = w, w.Events, w.Errors
	}
	var stopped chan struct{}
	defer func() {
		cancel()
		if stopped != nil {
			<-stopped
		}
		if f.watcher != nil {
			f.watcher.Close()
		}
		for _, t := range f.tails {
			t.Close()
		}
	}()
	f.locate(ctx)
	if err := f.send(turn.Observation{Kind: turn.ObsArmed, ThreadID: anc.ThreadID, Source: sourceRollout, Log: anc.Log}); err != nil {
		return err
	}
	if socket := anc.Extra[extraSocket]; socket != "" && anc.ThreadID != "" {
		f.sock, stopped = make(chan serverEvent, 64), make(chan struct{})
		go func() {
			defer close(stopped)
			a.subscribe(ctx, socket, anc.ThreadID, f.sock)
		}()
	}
	pace := safetyTick
	tick, stopTick := a.clock.NewTimer(pace)
	defer func() { stopTick() }()
	for {
		if done, err := f.step(ctx); done || err != nil {
			return err
		}
		if p := f.pace(); f.ticked || p < pace {
			stopTick()
			pace = p
			tick, stopTick = a.clock.NewTimer(pace)
		}
		f.ticked = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
			drainEvents(events)
		case <-lost: // an overflow: the next step reads anyway
		case e := <-f.sock:
			f.server(e)
		case <-tick:
			f.ticked = true
		case <-gone:
			f.gone, gone = true, nil
		}
	}
}

// pace is the pause to the next look without an event.
func (f *follower) pace() time.Duration {
	due := f.t.acc == nil || f.t.bare != nil || f.ticks > 0 || f.gone
	if due || f.watcher == nil || f.blind {
		return safetyTick
	}
	return quietTick
}

func drainEvents(c <-chan fsnotify.Event) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

func (f *follower) send(o turn.Observation) error {
	if o.At.IsZero() {
		o.At = f.a.clock.Now()
	}
	return f.emit(o)
}

// step reads what is there, reports it, and says whether the native turn is over.
func (f *follower) step(ctx context.Context) (done bool, err error) {
	f.locate(ctx)
	moved := f.read(ctx) || f.heard
	f.heard = false
	if f.t.acc != nil {
		for _, m := range f.early {
			f.notice(m)
		}
		f.early = nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	for _, o := range f.t.out {
		if err := f.send(o); err != nil {
			return false, err
		}
		moved = false // something better than activity was said
	}
	f.t.out = f.t.out[:0]
	if f.t.end == nil && f.ticked && f.t.bare != nil && !f.t.clash {
		f.t.end = f.t.bare // the file did not bring the text within a tick
	}
	if f.t.end != nil {
		return true, f.send(*f.t.end)
	}
	if now := f.a.clock.Now(); moved && now.Sub(f.active) >= activityGrain {
		f.active = now
		if err := f.send(f.observation(turn.ObsActivity, sourceRollout)); err != nil {
			return false, err
		}
	}
	if f.called {
		f.called = false
		if f.t.acc != nil {
			o := f.observation(turn.ObsActivity, sourceRollout)
			o.Code = agent.CodeMayAsk
			if err := f.send(o); err != nil {
				return false, err
			}
		}
	}
	if f.gone && !f.runsOn() {
		o := f.observation(turn.ObsGone, sourceProcess)
		o.Detail = "the agent's process ended; its records, read to the end, hold no end of the turn"
		return true, f.send(o)
	}
	return false, f.checkLost()
}

func (f *follower) observation(k turn.ObservationKind, source string) turn.Observation {
	o := turn.Observation{Kind: k}
	f.t.stamp(&o, source, nil)
	return o
}

// runsOn reports whether the accepted turn goes on without the pane's process.
func (f *follower) runsOn() bool {
	if f.sock == nil || f.t.acc == nil {
		return false
	}
	if f.connected {
		return f.status == known.StatusActive
	}
	if f.ticked {
		f.ticks++
	}
	return f.ticks < lostTicks
}

// checkLost reports once that a running turn cannot end any more: its server says that
// the thread is idle and the file, read to the end for some ticks, has no end.
func (f *follower) checkLost() error {
	if f.lost || f.gone || !f.ticked {
		return nil
	}
	if !f.connected || f.status == known.StatusActive || f.status == "" || f.t.acc == nil {
		f.ticks = 0
		return nil
	}
	if f.ticks++; f.ticks < lostTicks {
		return nil
	}
	f.lost = true
	o := f.observation(turn.ObsTrouble, sourceSocket)
	o.Code, o.Detail = string(CodeTurnLost), "the agent's server says that the thread is "+f.status+", and the turn has no end"
	return f.send(o)
}

// read drains all files into the tracker and reports whether there was anything.
func (f *follower) read(ctx context.Context) (moved bool) {
	stop := func() bool { return ctx.Err() != nil }
	for n, t := range f.tails {
		if f.t.file(n).poisoned {
			continue
		}
		err := t.Drain(stop, func(line []byte, at turn.LogMark) bool {
			moved = true
			r, err := rollout.Parse(line)
			if err != nil {
				f.t.distrust(n, fault.CodeOf(err), publicText(err), &at)
				return false
			}
			f.called = f.called || r.Kind == rollout.Call
			f.t.feed(n, r, at)
			return true
		})
		if err == nil && f.ticked {
			err = t.Same()
		}
		if err != nil {
			at := t.Mark
			f.t.distrust(n, fault.CodeOf(err), publicText(err), &at)
		}
	}
	return moved
}

func publicText(err error) string {
	_, msg, _ := fault.Public(err)
	return msg
}

// locate opens the files that the anchor means and that exist now, and sets watches where
// the missing ones will appear.
func (f *follower) locate(ctx context.Context) {
	home := f.anc.Extra[extraHome]
	switch {
	case f.anc.Log != nil:
		f.open(*f.anc.Log)
	case len(f.anc.Candidates) > 0:
		for _, m := range f.anc.Candidates {
			f.open(m)
		}
	case f.anc.ThreadID != "":
		if len(f.tails) > 0 {
			return
		}
		path := f.anc.Extra[extraRollout]
		if _, err := os.Stat(path); path == "" || err != nil {
			path = rollout.Find(home, f.anc.ThreadID)
		}
		if path != "" {
			f.open(turn.LogMark{Path: path})
			return
		}
		for _, dir := range rollout.DayDirs(home, f.anc.ThreadID) {
			f.watchUp(home, dir)
		}
	default:
		f.locateByProcess(ctx, home)
	}
}

// locateByProcess takes a rollout that exactly our process opened and that began after
// the anchor. An older one, as after a resume by hand, is not ours.
func (f *follower) locateByProcess(ctx context.Context, home string) {
	if len(f.tails) > 0 {
		return
	}
	now := f.a.clock.Now().Local()
	for d := range 2 {
		f.watchUp(home, filepath.Join(home, known.SessionsDir, now.AddDate(0, 0, d).Format("2006/01/02")))
	}
	since, err := time.Parse(time.RFC3339Nano, f.anc.Extra[extraSince])
	if err != nil {
		return
	}
	files, err := f.a.openFiles(ctx, f.ref.Process.PID)
	if err != nil {
		return
	}
	for _, file := range files {
		name := filepath.Base(file.Path)
		if !known.RolloutName.MatchString(name) || !strings.HasPrefix(file.Path, home+"/"+known.SessionsDir+"/") || f.known[file.Path] {
			continue
		}
		m, written := rollout.ReadFirst(file.Path)
		if written.IsZero() {
			continue // the first line is not complete yet
		}
		if m.Sub || written.Before(since.Add(-sinceSlack)) {
			f.known[file.Path] = true
			continue
		}
		f.open(turn.LogMark{Path: file.Path, Device: file.Device, Inode: file.Inode})
	}
}

func (f *follower) open(m turn.LogMark) {
	if f.known[m.Path] || len(f.tails) >= maxFollowed {
		return
	}
	f.watch(m.Path)
	t, err := rollout.OpenTail(m)
	f.known[m.Path] = true
	if err != nil {
		// The number is past all tails, so that no later file is distrusted for it.
		f.t.distrust(maxFollowed+len(f.known), fault.CodeOf(err), publicText(err), &m)
		return
	}
	f.tails = append(f.tails, t)
}

// watchUp watches dir, or the nearest folder above it that exists, down from home.
func (f *follower) watchUp(home, dir string) {
	for ; strings.HasPrefix(dir, home); dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			f.watch(dir)
			return
		}
	}
}

func (f *follower) watch(path string) {
	if f.watcher == nil || f.watched[path] {
		return
	}
	if f.watcher.Add(path) != nil {
		f.blind = true
		return
	}
	f.watched[path] = true
}

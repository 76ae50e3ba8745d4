package claude

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The sources of observations.
const (
	sourceStatus  = "status_file"
	sourceProcess = "process"
)

// Follow reads the transcript from the anchor on and the status file, and reports what
// they prove, until the turn has one final observation.
//
//   - Accepted: exactly one prompt record with our text, wherever it came from: typed,
//     queued while the agent was busy, or absorbed into a running turn (that Code is set,
//     and the end of the running turn is then the end of ours).
//   - Completed, failed, interrupted: records of the turn by parentUuid, never by time.
//   - It never reports ObsNotAccepted: Esc before the first byte leaves the prompt in the
//     composer and no end in the file, so that only the screen can prove it. Follow then
//     reports trouble with the code idle_without_record or idle_without_end.
//   - A session that a person changes meanwhile does not matter: the anchored transcript
//     remains the one of our turn.
//
// It returns nil after a final observation, the context's error, or the error of emit.
func (a *Adapter) Follow(ctx context.Context, ref agent.Ref, an turn.Anchor, gone <-chan struct{}, emit func(turn.Observation) error) error {
	f, err := newFollower(a, ref, an, emit)
	if err != nil {
		return err
	}
	f.watch = newFileWatch(an.Extra[extraConfigDir], f.directories()...)
	defer f.watch.close()
	if err := f.send(turn.Observation{Kind: turn.ObsArmed, Source: transcript.Source, ThreadID: an.ThreadID, Log: an.Log}); err != nil {
		return err
	}
	return f.loop(ctx, gone)
}

// stream is one transcript that may hold our turn.
type stream struct {
	tail  transcript.Tail
	chain *transcript.Chain
}

// follower is one call of Follow.
type follower struct {
	a       *Adapter
	ref     agent.Ref
	anchor  turn.Anchor
	emit    func(turn.Observation) error
	watch   *fileWatch
	want    transcript.Wanted
	streams []*stream
	bound   bool // exactly one stream is ours
	known   map[string]bool
	done    bool // a final observation was emitted

	status    statusView
	hooks     hookView
	lastGrow  time.Time
	lastNoise time.Time // of the last activity observation of the transcript
	noise     bool      // there is activity that was not reported yet
}

func newFollower(a *Adapter, ref agent.Ref, an turn.Anchor, emit func(turn.Observation) error) (*follower, error) {
	const op = "claude.follow"
	if an.Agent != known.Kind {
		return nil, fault.New(fault.Invalid, op, "the anchor is not one of Claude Code")
	}
	f := &follower{
		a: a, ref: ref, anchor: an, emit: emit, known: map[string]bool{},
		want: wantedOf(an),
	}
	f.lastGrow = a.clock.Now()
	switch {
	case an.Log != nil:
		f.add(*an.Log, true)
	case an.ThreadID != "" && an.Extra[extraTranscript] != "":
		f.add(turn.LogMark{Path: an.Extra[extraTranscript]}, false)
	case an.Extra[extraProjectDir] != "":
		for _, m := range an.Candidates {
			f.add(m, true)
		}
		return f, nil
	default:
		return nil, fault.New(fault.Invalid, op, "the anchor names no transcript").WithHint("take the anchor again")
	}
	f.bound = true
	return f, nil
}

func (f *follower) add(m turn.LogMark, known bool) {
	f.known[m.Path] = true
	f.streams = append(f.streams, &stream{
		tail: transcript.Tail{Mark: m, Known: known && m.Inode != 0}, chain: transcript.New(f.want),
	})
}

// directories lists what is watched.
func (f *follower) directories() []string {
	var out []string
	for _, s := range f.streams {
		out = append(out, filepath.Dir(s.tail.Mark.Path))
	}
	if !f.bound {
		out = append(out, f.anchor.Extra[extraProjectDir])
	}
	for _, key := range []string{extraStatus, extraEvents} {
		if p := f.anchor.Extra[key]; p != "" {
			out = append(out, filepath.Dir(p))
		}
	}
	return out
}

func (f *follower) loop(ctx context.Context, gone <-chan struct{}) error {
	for {
		if err := f.scan(); err != nil || f.done {
			return err
		}
		tick, stop := f.a.clock.NewTimer(f.pace())
		over, err := f.wait(ctx, tick, gone)
		stop()
		if err != nil {
			return err
		}
		if over {
			return f.finish()
		}
		f.watch.extend()
	}
}

// pace is the pause to the next look without an event. Whatever is drawn from silence is
// due as long as the agent says that it is idle.
func (f *follower) pace() time.Duration {
	followed := f.bound && len(f.streams) == 1 && f.watch.complete()
	if !followed || f.noise || !f.status.idleSince.IsZero() {
		return known.SafetyTick
	}
	if c := f.streams[0].chain; !c.Accepted() || c.Superseded() {
		return known.SafetyTick
	}
	return known.QuietTick
}

// wait returns when something may have changed; over says that the process is gone.
func (f *follower) wait(ctx context.Context, tick <-chan time.Time, gone <-chan struct{}) (over bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-gone:
			return true, nil
		case <-tick:
			return false, nil
		case _, ok := <-f.watch.errors():
			if !ok {
				f.watch.w = nil
			}
			return false, nil // events were lost: look at everything
		case e, ok := <-f.watch.events():
			if !ok {
				f.watch.w = nil
				continue
			}
			if f.concerns(e) {
				f.drain()
				return false, nil
			}
		}
	}
}

// drain drops the events that are already waiting: one scan serves them all.
func (f *follower) drain() {
	for {
		select {
		case e, ok := <-f.watch.events():
			if !ok {
				f.watch.w = nil
				return
			}
			f.concerns(e)
		default:
			return
		}
	}
}

// concerns reports whether an event may be about our files. Other panes of the project
// write to the same directories.
func (f *follower) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	if e.Op.Has(fsnotify.Remove) || e.Op.Has(fsnotify.Rename) {
		f.watch.forget(e.Name)
	}
	if f.known[e.Name] || e.Name == f.anchor.Extra[extraStatus] || e.Name == f.anchor.Extra[extraEvents] {
		return true
	}
	if e.Op.Has(fsnotify.Create) && filepath.Ext(e.Name) == "" {
		return true // perhaps a directory on the way to ours
	}
	return !f.bound && strings.HasSuffix(e.Name, known.TranscriptExt)
}

// scan reads everything that is new and says what it proves.
func (f *follower) scan() error {
	if err := f.scanStatus(); err != nil {
		return err
	}
	if err := f.scanHooks(); err != nil {
		return err
	}
	if err := f.scanStreams(); err != nil || f.done {
		return err
	}
	now := f.a.clock.Now()
	if err := f.quiet(now); err != nil || f.done {
		return err
	}
	if f.noise && now.Sub(f.lastNoise) >= known.ActivityRate {
		f.noise, f.lastNoise = false, now
		return f.send(turn.Observation{Kind: turn.ObsActivity, Source: transcript.Source, ThreadID: f.anchor.ThreadID})
	}
	return nil
}

// scanStreams reads the transcripts. While the thread is not known, the first transcript
// that accepts the request becomes ours; two at once prove nothing.
func (f *follower) scanStreams() error {
	f.discover()
	f.relocate()
	var out []turn.Observation
	var accepted []*stream
	for _, s := range f.streams {
		before := s.chain.Accepted()
		got, grew := f.read(s)
		if grew && (f.bound || s.chain.Accepted()) {
			f.lastGrow, f.noise = f.a.clock.Now(), true
		}
		if !f.bound && s.chain.Accepted() && !before {
			accepted = append(accepted, s)
		}
		if f.bound || s.chain.Accepted() {
			out = append(out, got...)
		}
	}
	switch len(accepted) {
	case 0:
	case 1:
		f.streams, f.bound = accepted, true
	default:
		out = nil
		f.streams, f.bound = accepted[:1], true
		out = append(out, accepted[0].chain.Poison(turn.LogMark{}, transcript.CodeTwoMatches, "the request stands in two transcripts"))
	}
	for _, o := range out {
		if err := f.send(o); err != nil || f.done {
			return err
		}
	}
	return nil
}

// read feeds the new lines of one transcript to its chain.
func (f *follower) read(s *stream) (out []turn.Observation, grew bool) {
	grew, err := s.tail.Read(func(line []byte, at turn.LogMark) bool {
		r, err := transcript.ParseRecord(line)
		if err != nil {
			if s.chain.Open() {
				out = append(out, s.chain.Poison(at, transcript.CodeBroken, "a complete line of the transcript is not a record"))
			}
			return false
		}
		out = append(out, s.chain.Feed(r, at)...)
		return s.chain.Open()
	})
	if err != nil && s.chain.Open() {
		_, msg, _ := fault.Public(err)
		out = append(out, s.chain.Poison(s.tail.Mark, string(fault.CodeOf(err)), msg))
	}
	return out, grew
}

// discover adds transcripts that appeared after the anchor while the thread is not known.
func (f *follower) discover() {
	if f.bound || len(f.anchor.Candidates) >= known.MaxCandidates {
		return // with a cut list, an unknown file is not proved to be new
	}
	for _, p := range candidates(f.anchor.Extra[extraProjectDir]) {
		if !f.known[p] && len(f.streams) < 2*known.MaxCandidates {
			f.add(turn.LogMark{Path: p}, false)
		}
	}
}

// relocate finds the transcript of a virgin session that was not written where it was
// expected.
func (f *follower) relocate() {
	if f.anchor.Log != nil || f.anchor.ThreadID == "" || len(f.streams) != 1 {
		return
	}
	t := &f.streams[0].tail
	if t.Known || isRegular(t.Mark.Path) || f.anchor.Extra[extraConfigDir] == "" {
		return
	}
	p, ok := findTranscript(f.anchor.Extra[extraConfigDir], f.ref.Cwd, f.anchor.ThreadID)
	if !ok || p == t.Mark.Path {
		return
	}
	t.Mark.Path = p
	f.known[p] = true
	f.watch.wanted = append(f.watch.wanted, filepath.Dir(p))
}

// finish is called when the process is gone: what it wrote is all there will be.
func (f *follower) finish() error {
	if err := f.scanStreams(); err != nil || f.done {
		return err
	}
	o := turn.Observation{Kind: turn.ObsGone, Source: sourceProcess, ThreadID: f.anchor.ThreadID}
	if f.bound && len(f.streams) == 1 {
		c := f.streams[0].chain
		o.NativeTurnID = c.Prompt()
		if end, ok := c.EndByAnswer(transcript.CodeEndAtExit); ok {
			return f.send(end)
		}
		if out := c.Settle(); len(out) > 0 {
			return f.send(out[0])
		}
		if c.Accepted() && !c.Open() {
			o.Detail = "the records of the turn could not be read to their end"
		}
	}
	return f.send(o)
}

// send stamps and emits one observation.
func (f *follower) send(o turn.Observation) error {
	o.At = f.a.clock.Now()
	if o.Kind.Final() {
		f.done = true
	}
	return f.emit(o)
}

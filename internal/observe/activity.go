package observe

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The pace of looks at a terminal whose task is not known: no record wakes this loop.
const (
	activityMin = 2 * time.Second
	activityMax = 10 * time.Second
)

// SourceTerminal marks what screen and records of a terminal say together.
const SourceTerminal = "screen and records"

// RunActivity waits until the terminal was seen active ([turn.ObsAccepted]) and then idle
// in two looks in a row, at least five seconds apart, by its screen AND by the agent's
// records ([turn.ObsCompleted] without a text). It is best effort and proves no task.
// Spec.Accepted says that activity was seen before. Like [Run] it reports prompts, and the
// end of the process, and returns nil after a final observation.
func RunActivity(ctx context.Context, c Config, s Spec, a agent.Adapter, emit func(turn.Observation) error) error {
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
		return fault.Wrap(err, fault.Unavailable, "observe.activity", "cannot watch process %d", s.Ref.Process.PID)
	}
	defer stop()
	w := &watch{Config: c, spec: s, adapter: a, out: emit, facts: facts{accepted: s.Accepted, prompt: s.OpenPrompt}}
	if err := w.emit(turn.Observation{Kind: turn.ObsArmed, Source: SourceTerminal, ThreadID: s.Anchor.ThreadID}); err != nil {
		return err
	}
	return (&activity{watch: w}).loop(ctx, gone)
}

// activity is one RunActivity.
type activity struct {
	*watch
	idleSince time.Time // of looks in a row; zero when the last one was not idle
}

func (w *activity) loop(ctx context.Context, gone <-chan struct{}) error {
	pace, last := activityMin, time.Time{}
	for {
		w.Beat()
		timer, stop := w.Clock.NewTimer(max(0, pace-w.Clock.Now().Sub(last)))
		select {
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		case <-gone:
			stop()
			return w.emit(turn.Observation{Kind: turn.ObsGone, Source: "process", Detail: "the agent's process ended"})
		case <-w.Tick:
			stop()
			continue // only to beat
		case <-timer:
		}
		stop()
		last = w.Clock.Now()
		news, done, err := w.check(ctx)
		if done || err != nil {
			return err
		}
		if pace = min(2*pace, activityMax); news {
			pace = activityMin
		}
		if !w.idleSince.IsZero() {
			pace = idleGap
		}
	}
}

// check looks once. news is true when something changed, done after the final
// observation.
func (w *activity) check(ctx context.Context) (news, done bool, err error) {
	c, s, err := w.capture(ctx)
	if err != nil {
		w.idleSince = time.Time{}
		return false, false, w.blind(ctx, err)
	}
	now := w.Clock.Now()
	w.mu.Lock()
	w.facts.blind = 0
	before := w.facts.accepted
	prompts := w.facts.seen(s, "", now)
	w.mu.Unlock()
	for _, o := range prompts {
		news = news || o.Kind != turn.ObsActivity
		if err := w.emit(o); err != nil {
			return false, false, err
		}
	}
	native := agent.ActivityUnknown
	if s.State != agent.ScreenApproval && s.State != agent.ScreenDialog { // a dialog is activity whatever the records say
		native = w.records(ctx, c.Pane.Title)
	}
	busy := s.State != agent.ScreenIdle && s.State != agent.ScreenUnknown || native == agent.ActivityWorking || native == agent.ActivityWaiting
	idle := s.State == agent.ScreenIdle && native == agent.ActivityIdle
	switch {
	case busy && !before:
		w.idleSince = time.Time{}
		return true, false, w.emit(turn.Observation{Kind: turn.ObsAccepted, Source: SourceTerminal, ThreadID: w.spec.Anchor.ThreadID, Detail: "activity was seen"})
	case !idle || !before: // unknown is never idle
		news, w.idleSince = news || !w.idleSince.IsZero(), time.Time{}
		return news, false, nil
	case w.idleSince.IsZero():
		w.idleSince = now
		return true, false, nil
	case now.Sub(w.idleSince) < idleGap:
		return false, false, nil
	}
	return true, true, w.emit(turn.Observation{Kind: turn.ObsCompleted, Source: SourceTerminal, ThreadID: w.spec.Anchor.ThreadID,
		Detail: "the terminal was active and is idle now"})
}

// records asks the agent's own evidence.
func (w *activity) records(ctx context.Context, title string) agent.Activity {
	ctx, cancel := context.WithTimeout(ctx, identifyLimit)
	defer cancel()
	ref := w.spec.Ref
	ref.Title = title
	n, err := w.adapter.Identify(ctx, ref)
	if err != nil {
		return agent.ActivityUnknown
	}
	return n.Activity
}

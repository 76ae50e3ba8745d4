package observe

import (
	"context"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// idleGap is the least time between two looks that together prove something of an idle
// screen. The records of an end may be that late.
const idleGap = 5 * time.Second

// identifyLimit bounds one question for an agent's own evidence.
const identifyLimit = 2 * time.Second

// RunTask is [Run] for a task that a person started. In addition it says when the
// terminal has gone on to another thread while the records hold no end of the task. It is
// asked only of an idle screen: while something runs, that may be the task.
func RunTask(ctx context.Context, c Config, s Spec, a agent.Adapter, emit func(turn.Observation) error) error {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	g := &guard{screen: c.Screen, clock: c.Clock, spec: s, adapter: a, out: emit}
	c.Screen = g
	return Run(ctx, c, s, a, g.emit)
}

// guard looks over the shoulder of a watch: it sees each capture and each observation.
type guard struct {
	screen  Screen
	clock   clock.Clock
	spec    Spec
	adapter agent.Adapter

	mu    sync.Mutex // one observation at a time
	out   func(turn.Observation) error
	ended bool
	moved bool

	other time.Time // when an idle screen showed another thread first; zero when it does not
}

func (g *guard) emit(o turn.Observation) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil
	}
	g.ended = o.Kind.Final()
	return g.out(o)
}

// Capture implements [Screen]. Looks do not overlap.
func (g *guard) Capture(ctx context.Context, paneID string, o tmux.CaptureOptions) (tmux.Capture, error) {
	c, err := g.screen.Capture(ctx, paneID, o)
	if err != nil || g.moved || g.spec.Anchor.ThreadID == "" {
		return c, err
	}
	if g.adapter.Screen(c).State != agent.ScreenIdle {
		g.other = time.Time{}
		return c, nil
	}
	return c, g.compare(ctx, c)
}

// compare asks which thread an idle terminal shows. What cannot be told is no change.
func (g *guard) compare(ctx context.Context, c tmux.Capture) error {
	ctx, cancel := context.WithTimeout(ctx, identifyLimit)
	defer cancel()
	ref := g.spec.Ref
	ref.Title = c.Pane.Title
	n, err := g.adapter.Identify(ctx, ref)
	if err != nil || n.Thread != agent.ThreadResolved || n.ThreadID == g.spec.Anchor.ThreadID {
		g.other = time.Time{}
		return nil
	}
	now := g.clock.Now()
	if g.other.IsZero() {
		g.other = now
	}
	if now.Sub(g.other) < idleGap {
		return nil
	}
	g.moved = true
	return g.emit(turn.Observation{Kind: turn.ObsTrouble, At: now, Source: sourceScreen, ThreadID: n.ThreadID, Code: agent.CodeThreadChanged,
		Detail: "the terminal is idle and shows another thread, and the records hold no end of the task"})
}

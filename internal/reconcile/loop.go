// Package reconcile runs the Bridge's upkeep: one startup pass after the Host connected,
// then sweeps that never overlap. Each phase of a pass has its own error boundary, so that
// one failing phase suppresses no other.
//
// It knows no Turn and no callback: phases are functions that their owners hand in.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
)

const (
	// DefaultInterval lies between the END of one pass and the start of the next: a slow
	// pass delays the next one and never catches up in a burst.
	DefaultInterval = 5 * time.Second
	// phaseLimit bounds one phase. What it could not do waits for the next pass.
	phaseLimit = 60 * time.Second
	// stopGrace is how long Stop lets the pass in flight go on before it is cancelled: an
	// upkeep that waits for something must not hold the Bridge open.
	stopGrace = 4 * time.Second
)

// Phase is one kind of upkeep. Startup is run in the first pass, Sweep in all later ones;
// either may be nil.
type Phase struct {
	Name    string
	Startup func(context.Context) error
	Sweep   func(context.Context) error
}

// Loop runs the phases. Make one with [New]; Start it once.
type Loop struct {
	phases   []Phase
	interval time.Duration
	clock    clock.Clock
	log      *slog.Logger
	group    *lifecycle.Group
}

// New returns a loop. An interval of 0 means DefaultInterval.
func New(c clock.Clock, log *slog.Logger, interval time.Duration, phases ...Phase) *Loop {
	if interval <= 0 {
		interval = DefaultInterval
	}
	return &Loop{phases: phases, interval: interval, clock: c, log: log}
}

// Start begins the startup pass and returns.
func (l *Loop) Start(ctx context.Context) {
	l.group = lifecycle.NewGroup(ctx)
	l.group.Go(l.run)
}

// Stop cancels future passes and waits for the one in flight, which is cancelled when it
// takes longer than stopGrace. It may be called before Start and more than once.
func (l *Loop) Stop() {
	if l.group != nil {
		l.group.Stop()
	}
}

func (l *Loop) run(ctx context.Context) {
	// A pass in flight is finished, not cut, as long as it is quick.
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	context.AfterFunc(ctx, func() { l.cutLater(work, cut) })
	first := true
	for ctx.Err() == nil {
		for _, p := range l.phases {
			if ctx.Err() != nil {
				return
			}
			l.runPhase(work, p, first)
		}
		first = false
		timer, stop := l.clock.NewTimer(l.interval)
		select {
		case <-timer:
		case <-ctx.Done():
		}
		stop()
	}
}

// cutLater ends work after the grace, unless it ended by itself before.
func (l *Loop) cutLater(work context.Context, cut context.CancelFunc) {
	timer, stop := l.clock.NewTimer(stopGrace)
	defer stop()
	select {
	case <-timer:
		cut()
	case <-work.Done():
	}
}

func (l *Loop) runPhase(ctx context.Context, p Phase, startup bool) {
	f := p.Sweep
	if startup {
		f = p.Startup
	}
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, phaseLimit)
	defer cancel()
	if err := guarded(ctx, f); err != nil {
		l.log.Warn("upkeep failed; it is tried again in the next pass", "phase", p.Name, "startup", startup, "err", err)
	}
}

// guarded turns a panic into an error: one broken record must not end the Bridge.
func guarded(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f(ctx)
}

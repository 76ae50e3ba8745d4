package claude

import (
	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/screen"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Options are what an Adapter asks of the world. The zero value uses this machine.
type Options struct {
	// Clock paces the safety tick and stamps observations.
	Clock clock.Clock
	// Env reads one variable of a process's environment.
	Env func(pid int, name string) (string, bool, error)
	// Alive reports whether exactly this start of a process runs.
	Alive func(turn.Incarnation) (bool, error)
	// Process reads one process; it is asked for the executable's path and the arguments.
	Process func(pid int) (procinfo.Process, error)
}

// Adapter implements [agent.Adapter] for Claude Code. It holds no state between calls and
// is safe for concurrent use.
type Adapter struct {
	clock   clock.Clock
	env     func(pid int, name string) (string, bool, error)
	alive   func(turn.Incarnation) (bool, error)
	process func(pid int) (procinfo.Process, error)
}

var _ agent.Adapter = (*Adapter)(nil)

// New returns an Adapter.
func New(o Options) *Adapter {
	a := &Adapter{clock: o.Clock, env: o.Env, alive: o.Alive, process: o.Process}
	if a.clock == nil {
		a.clock = clock.System{}
	}
	if a.env == nil {
		a.env = procinfo.Env
	}
	if a.alive == nil {
		a.alive = procinfo.Alive
	}
	if a.process == nil {
		a.process = procinfo.Read
	}
	return a
}

// Kind returns "claude".
func (*Adapter) Kind() string { return known.Kind }

// Screen classifies a capture; see [screen.Classify].
func (*Adapter) Screen(c tmux.Capture) agent.Screen { return screen.Classify(c) }

// Literal makes text a plain prompt or refuses it; see [screen.Literal].
func (*Adapter) Literal(text string) (string, error) { return screen.Literal(text) }

// DraftMatches compares the composer with what was pasted; see [screen.DraftMatches].
func (*Adapter) DraftMatches(s agent.Screen, pasted string) agent.Match {
	return screen.DraftMatches(s, pasted)
}

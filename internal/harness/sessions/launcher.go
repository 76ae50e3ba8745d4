package sessions

import (
	"context"
	"io"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/launch"
)

// Launcher starts the programs of agents, wherever they run.
type Launcher interface {
	Start(ctx context.Context, spec launch.Spec) (Program, error)
	// StartTerminal starts one in a terminal, for a login.
	StartTerminal(ctx context.Context, spec launch.Spec) (Program, error)
}

// Program is a started program. Whoever started it closes it.
type Program interface {
	Started() (pid int, at time.Time)
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser // ends when nothing of the program is left
	StderrTail() []string
	// Close ends it with all that it started; the end of ctx takes its time to end by itself.
	Close(ctx context.Context) launch.Exit
}

// Starter is a Launcher with programs of its own type.
type Starter[P Program] interface {
	Start(ctx context.Context, spec launch.Spec) (P, error)
	StartTerminal(ctx context.Context, spec launch.Spec) (P, error)
}

// On makes a Launcher of a place where programs start, such as [launch.Local].
func On[P Program](place Starter[P]) Launcher { return on[P]{place} }

type on[P Program] struct{ place Starter[P] }

func (o on[P]) Start(ctx context.Context, spec launch.Spec) (Program, error) {
	return program(o.place.Start(ctx, spec))
}

func (o on[P]) StartTerminal(ctx context.Context, spec launch.Spec) (Program, error) {
	return program(o.place.StartTerminal(ctx, spec))
}

// program makes no interface of a program that is not there.
func program[P Program](p P, err error) (Program, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

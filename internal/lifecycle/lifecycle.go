// Package lifecycle is the contract for things that run: who starts a goroutine waits
// for its end, and a stop is told apart from a failure by its cause.
package lifecycle

import (
	"context"
	"errors"
	"sync"
)

// ErrStop is the cancellation cause of an orderly stop.
var ErrStop = errors.New("stopped in order")

// Group owns goroutines. The zero value is not usable; call [NewGroup].
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// NewGroup returns a group whose context ends with ctx or by [Group.Stop].
func NewGroup(ctx context.Context) *Group {
	c, cancel := context.WithCancelCause(ctx)
	return &Group{ctx: c, cancel: cancel}
}

// Context ends when the group is asked to stop.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs f in a goroutine that Stop waits for. Calling Go after Stop returned is a
// programming error.
func (g *Group) Go(f func(ctx context.Context)) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		f(g.ctx)
	}()
}

// Cancel asks every goroutine to end and does not wait.
func (g *Group) Cancel() { g.cancel(ErrStop) }

// Stop asks every goroutine to end and waits until all did. It may be called twice.
func (g *Group) Stop() {
	g.cancel(ErrStop)
	g.wg.Wait()
}

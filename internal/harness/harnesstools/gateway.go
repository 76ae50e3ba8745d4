package harnesstools

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/autostart"
	"github.com/agent-knock-knock/akk/internal/harness/client"
)

// Caller posts one operation.
type Caller interface {
	Call(ctx context.Context, op string, params any, extra time.Duration) (json.RawMessage, error)
}

// Finder returns the server that answers, and may start one.
type Finder interface {
	Ensure(ctx context.Context) (autostart.Found, error)
}

// gateway is the way to the server. The server is looked for at the first call, not at the
// start of the proxy: a Host that never calls starts nothing.
type gateway struct {
	caller Caller
	finder Finder
	turn   chan struct{} // one look at a time
	found  atomic.Pointer[autostart.Found]
}

func newGateway(c Caller, f Finder) *gateway {
	return &gateway{caller: c, finder: f, turn: make(chan struct{}, 1)}
}

// find returns the server, from memory unless again is set.
func (g *gateway) find(ctx context.Context, again bool) (autostart.Found, error) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return autostart.Found{}, harness.Fail(context.Cause(ctx), client.Cancelled, "the call was not waited for")
	}
	defer func() { <-g.turn }()
	if known := g.found.Load(); known != nil && !again {
		return *known, nil
	}
	g.found.Store(nil)
	found, err := g.finder.Ensure(ctx)
	if err != nil {
		return autostart.Found{}, err
	}
	g.found.Store(&found)
	return found, nil
}

// features are what the server that was found has beyond the common operations. A server of
// another maker names none.
func (g *gateway) features() []string {
	f := g.found.Load()
	if f == nil {
		return nil
	}
	var pong struct {
		Features []string `json:"features"`
	}
	_ = json.Unmarshal(f.Data, &pong) // a server without the field has no features
	return pong.Features
}

// unclear reports whether a call failed in a way that leaves open what the server did.
func unclear(err error) bool {
	switch fault.CodeOf(err) {
	case client.HTTPTimeout, client.ServerUnreachable, client.InvalidReply:
		return !client.Unsent(err)
	}
	return false
}

// call posts an operation. A request that provably reached nobody is posted once more, after
// a new look for the server; nothing else is repeated.
func (g *gateway) call(ctx context.Context, op string, params any, extra time.Duration) (json.RawMessage, error) {
	if _, err := g.find(ctx, false); err != nil {
		return nil, err
	}
	data, err := g.caller.Call(ctx, op, params, extra)
	if !client.Unsent(err) || fault.Is(err, client.Cancelled) {
		return data, err
	}
	if _, err := g.find(ctx, true); err != nil {
		return nil, err
	}
	return g.caller.Call(ctx, op, params, extra)
}

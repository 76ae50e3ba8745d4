package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/agent-knock-knock/akk/internal/fault"
)

type request struct {
	JSONRPC string `json:"jsonrpc"`
	ID      *int64 `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

func newRequest(id *int64, method string, params any) request {
	return request{JSONRPC: "2.0", ID: id, Method: method, Params: params}
}

// call is one request of ours. result and err are written before done is closed.
type call struct {
	id     int64
	method string
	turn   *Turn  // of a prompt
	loads  string // the session that this call loads

	abandoned bool // guarded by Conn.mu: nobody waits any more
	result    json.RawMessage
	err       error
	done      chan struct{}
}

func (k *call) finish() { close(k.done) }

func (k *call) wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-k.done:
		return k.result, k.err
	default:
	}
	select {
	case <-k.done:
		return k.result, k.err
	case <-ctx.Done():
		return nil, fault.Wrap(context.Cause(ctx), fault.Timeout, "acp.call", "the agent did not answer %s in time", clip(k.method, 80))
	}
}

// register gives the call its id; with mu held.
func (c *Conn) register(k *call) error {
	if c.err != nil {
		return c.err
	}
	c.nextID++
	k.id, k.done = c.nextID, make(chan struct{})
	c.calls[k.id] = k
	return nil
}

// begin registers k and sends it. check runs under the lock before anything is changed.
func (c *Conn) begin(k *call, params any, check func() error) error {
	c.mu.Lock()
	if check != nil {
		if err := check(); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if err := c.register(k); err != nil {
		c.mu.Unlock()
		return err
	}
	// Before a byte is written: the agent's first update may come at once.
	if k.turn != nil {
		k.turn.seq = k.id
		c.turns[k.turn.SessionID] = k.turn
	}
	if k.loads != "" {
		c.loads[k.loads]++
	}
	c.mu.Unlock()

	if err := c.send(newRequest(&k.id, k.method, params)); err != nil {
		c.mu.Lock()
		c.settle(k)
		c.mu.Unlock()
		return err
	}
	return nil
}

// settle takes the call out of all tables and reports whether it was in; with mu held.
func (c *Conn) settle(k *call) bool {
	if c.calls[k.id] != k {
		return false
	}
	delete(c.calls, k.id)
	if k.turn != nil && c.turns[k.turn.SessionID] == k.turn {
		delete(c.turns, k.turn.SessionID)
	}
	if k.loads != "" {
		c.unload(k.loads)
	}
	return true
}

// do makes a call and waits. When ctx ends first the agent is told that nobody waits.
func (c *Conn) do(ctx context.Context, method string, params any, check func(*call) error) (json.RawMessage, error) {
	k := &call{method: method}
	var checked func() error
	if check != nil {
		checked = func() error { return check(k) }
	}
	if err := c.begin(k, params, checked); err != nil {
		return nil, err
	}
	result, err := k.wait(ctx)
	if fault.Is(err, fault.Timeout) && ctx.Err() != nil {
		c.mu.Lock()
		k.abandoned = true
		_, open := c.calls[k.id]
		c.mu.Unlock()
		if open {
			_ = c.send(newRequest(nil, methodWithdraw, map[string]any{"requestId": k.id})) // best effort: the Conn may be dead
		}
	}
	return result, err
}

func (c *Conn) reopen(ctx context.Context, method, id string, p SessionParams) (Session, error) {
	history := false
	raw, err := c.do(ctx, method, sessionParams(id, p), func(k *call) error {
		if c.turns[id] != nil {
			return fault.New(Busy, "acp.reopen", "a prompt of this session is open").WithHint("wait for it or cancel it first")
		}
		if method == methodLoad {
			k.loads, history = id, true
			c.loads[id]++ // until its history is over, which may be after the answer
		}
		return nil
	})
	if history {
		c.awaitHistory(ctx, id, err == nil)
	}
	if err != nil {
		return Session{}, err
	}
	s := decodeSession(raw)
	s.ID = id
	return s, nil
}

func (c *Conn) startTurn(sessionID, label string, blocks []json.RawMessage) (*Turn, error) {
	const op = "acp.StartPrompt"
	if sessionID == "" || label == "" {
		return nil, fault.New(fault.Invalid, op, "a prompt needs a session and a label")
	}
	t := &Turn{SessionID: sessionID, Label: label}
	t.call = &call{method: methodPrompt, turn: t}
	params := map[string]any{"sessionId": sessionID, "prompt": blocks}
	err := c.begin(t.call, params, func() error {
		if c.turns[sessionID] != nil {
			return fault.New(Busy, op, "a prompt of this session is open").WithHint("wait for it or cancel it first")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// acceptResponse finds the call of a response. An id that is not exactly one of ours in
// use belongs to nothing.
func (c *Conn) acceptResponse(f frame, line []byte, odd func(OddKind) []item) []item {
	id, err := strconv.ParseInt(string(bytes.TrimSpace(f.id)), 10, 64)
	if err != nil {
		return odd(OddUnknownID)
	}
	c.mu.Lock()
	k := c.calls[id]
	if k == nil {
		c.mu.Unlock()
		return odd(OddUnknownID)
	}
	c.settle(k)
	abandoned := k.abandoned
	c.mu.Unlock()
	switch {
	case f.err != nil:
		f.err.Method = k.method
		k.err = rpcFault(f.err)
	default:
		k.result = f.result
	}
	it := item{call: k, size: len(line)}
	switch {
	case k.turn != nil:
		s := &Settled{SessionID: k.turn.SessionID, Turn: k.turn.Label, Err: k.err}
		if k.err == nil {
			s.Result = decodePrompt(k.result)
		}
		it.event = s
	case abandoned:
		return append(odd(OddLateAnswer), it)
	}
	return []item{it}
}

func rpcFault(e *RPCError) error {
	if e.Code == CodeAuthRequired {
		return fault.Wrap(e, AuthRequired, "acp.call", "the agent wants a login").WithHint("authenticate this session, then try again")
	}
	return fault.Wrap(e, RPCFailed, "acp.call", "the agent refused %s with error %d", clip(e.Method, 80), e.Code)
}

// abandonAll empties the tables when nothing can be answered any more, and returns the
// open calls in the order in which they were made.
func (c *Conn) abandonAll() ([]*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		open = append(open, k)
	}
	slices.SortFunc(open, func(a, b *call) int { return int(a.id - b.id) })
	for _, k := range open {
		c.settle(k)
	}
	clear(c.questions)
	clear(c.refs)
	return open, c.err
}

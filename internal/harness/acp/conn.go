package acp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// drainGrace is how long the agent's output is still read after its input broke: what it
// wrote before it died is worth more than a quick end.
const drainGrace = time.Second

// Conn is the connection to one agent. All methods may be called from any goroutine.
type Conn struct {
	in      io.ReadCloser
	out     io.WriteCloser
	handler Handler
	limits  Limits
	tap     Tap
	closing chan struct{} // closed by fail: everything stops
	// finished is closed when all goroutines but the writer's last Write have ended.
	finished chan struct{}

	mu        sync.Mutex
	err       error // what ended the Conn; the first counts
	caps      ClientCaps
	nextID    int64
	calls     map[int64]*call
	turns     map[string]*Turn     // by session: the open one
	loads     map[string]int       // by session: session/load whose history may still come
	replayed  map[string]time.Time // when some of that came last
	nextRef   Ref
	questions map[Ref]*question
	refs      map[string]Ref // by the agent's raw id, of open questions

	incoming incoming
	outgoing outgoing
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	set(&l.LineBytes, 100<<20)
	set(&l.QueueBytes, 64<<20)
	set(&l.OutBytes, 64<<20)
	set(&l.StrayBytes, 1<<20)
	set(&l.StrayLines, 1000)
	set(&l.OpenQuestions, 1024)
	return l
}

// Open starts to talk: in is the agent's stdout, out its stdin; the Conn owns both and
// closes them at its end. A Read of in must return when in is closed, as one of a pipe
// does. When ctx ends the Conn ends. The caller must call [Conn.Close].
func Open(ctx context.Context, in io.ReadCloser, out io.WriteCloser, h Handler, o Options) *Conn {
	c := &Conn{
		in: in, out: out, handler: h, limits: o.Limits.withDefaults(), tap: o.Tap,
		closing: make(chan struct{}), finished: make(chan struct{}),
		calls: make(map[int64]*call), turns: make(map[string]*Turn), loads: make(map[string]int), replayed: make(map[string]time.Time),
		questions: make(map[Ref]*question), refs: make(map[string]Ref),
	}
	c.incoming.wake = make(chan struct{}, 1)
	c.outgoing.wake = make(chan struct{}, 1)

	stop := context.AfterFunc(ctx, func() {
		c.fail(fault.Wrap(context.Cause(ctx), ClosedByUs, "acp.Open", "the owner of the connection stopped"))
	})
	var parts sync.WaitGroup
	parts.Go(c.write)
	parts.Go(func() {
		c.read()
		c.incoming.end()
	})
	go func() {
		c.dispatch()
		parts.Wait()
		stop()
		close(c.finished)
	}()
	return c
}

// fail ends the Conn for the first reason.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.closing)
	_ = c.in.Close()
	_ = c.out.Close()
}

// read is the reader's goroutine: it attributes every frame while it reads it, so that a
// slow Handler never changes what a frame belongs to.
func (c *Conn) read() {
	source := newLines(c.in, c.limits.LineBytes)
	strayLines, strayBytes := 0, 0
	for {
		line, err := source.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fault.New(Transport, "acp.read", "the agent closed its output")
			} else if fault.CodeOf(err) == fault.Internal {
				err = fault.Wrap(err, Transport, "acp.read", "the agent's output cannot be read")
			}
			c.fail(err)
			return
		}
		if c.tap != nil {
			c.tap(true, line)
		}
		f := readFrame(line)
		if f.kind == frameStray {
			strayLines, strayBytes = strayLines+1, strayBytes+len(line)
			if strayLines > c.limits.StrayLines || strayBytes > c.limits.StrayBytes {
				c.fail(fault.New(Garbage, "acp.read", "the agent wrote %d lines, %d bytes, that are not JSON", strayLines, strayBytes))
				return
			}
		}
		for _, item := range c.accept(f, line) {
			item.size += itemOverhead
			if !c.incoming.push(item, c.limits.QueueBytes) {
				c.fail(fault.New(OutputLimit, "acp.read", "the agent wrote more than %d bytes that were not handled yet", c.limits.QueueBytes))
				return
			}
		}
	}
}

// accept turns a frame into what has to be dispatched.
func (c *Conn) accept(f frame, line []byte) []item {
	one := func(e Event) []item { return []item{{event: e, size: len(line)}} }
	odd := func(kind OddKind) []item {
		return one(&Odd{Kind: kind, Method: f.method, Raw: clip(string(line), oddPreviewLength)})
	}
	switch f.kind {
	case frameBlank:
		return nil
	case frameStray:
		return []item{{event: &Stray{Text: clip(string(line), oddPreviewLength), Bytes: len(line)}, size: min(len(line), oddPreviewLength)}}
	case frameResponse:
		return c.acceptResponse(f, line, odd)
	case frameRequest:
		return c.acceptRequest(f, line, odd)
	case frameNotification:
		return c.acceptNotification(f, one, odd)
	}
	if asObject(line) == nil {
		return odd(OddNotObject)
	}
	return odd(OddShape)
}

func (c *Conn) acceptNotification(f frame, one func(Event) []item, odd func(OddKind) []item) []item {
	switch f.method {
	case methodUpdate:
		params := asObject(f.params)
		u := &Update{SessionID: params.str("sessionId"), Raw: params["update"]}
		if u.SessionID == "" {
			return odd(OddUpdateNoID)
		}
		decodeUpdate(u)
		c.mu.Lock()
		u.Turn, u.Replay = c.turnLabel(u.SessionID), c.loads[u.SessionID] > 0
		if u.Replay {
			c.replayed[u.SessionID] = time.Now()
		}
		c.mu.Unlock()
		return one(u)
	case methodWithdraw:
		if w := c.withdraw(asObject(f.params)["requestId"]); w != nil {
			return one(w)
		}
	case methodElicited:
		if id := asObject(f.params).str("elicitationId"); id != "" {
			return one(&Completed{ElicitationID: id})
		}
	}
	return one(&Notification{Method: f.method, Params: f.params})
}

// turnLabel is called with mu held.
func (c *Conn) turnLabel(sessionID string) string {
	if t := c.turns[sessionID]; t != nil {
		return t.Label
	}
	return ""
}

// dispatch hands out everything in order until the reader has ended, and then settles what
// is still open.
func (c *Conn) dispatch() {
	for {
		it, ok := c.incoming.pop()
		if !ok {
			break
		}
		if it.event != nil {
			c.handler.Handle(it.event)
		}
		if it.call != nil {
			it.call.finish()
		}
	}
	open, err := c.abandonAll()
	for _, call := range open {
		call.err = err
		if call.turn != nil {
			c.handler.Handle(&Settled{SessionID: call.turn.SessionID, Turn: call.turn.Label, Err: err})
		}
		call.finish()
	}
	c.handler.Handle(&Closed{Err: err})
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	// DrainLimit is how long requests that arrived may take after the end of input.
	DrainLimit = 12 * time.Second
	// CancelGrace is what handlers get after DrainLimit, with their contexts ended.
	CancelGrace = 2 * time.Second
	// lastWrites bounds the wait for replies that are still queued after DrainLimit.
	lastWrites = time.Second

	// DrainExceeded is the code of a session whose requests did not end in time.
	DrainExceeded fault.Code = "drain_exceeded"
)

// The methods that a Host may call. Everything else is answered with -32601.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"

	noteInitialized = "notifications/initialized"
	noteCancelled   = "notifications/cancelled"
	noteProgress    = "notifications/progress"
)

// ticketHeader carries the internal id of a tools/call from Read to the handler, in the
// SDK's side channel for transports. A Host cannot write there.
const ticketHeader = "Akk-Request"

// conn is the mcp.Connection of one session. Read is called by one goroutine of the SDK,
// Write by many.
type conn struct {
	base    context.Context // of waits at the end: it has values and never ends
	log     *slog.Logger
	calls   *toolkit.Session
	in      source
	frames  *frameReader
	out     *writer
	pending *inflight
	asks    *asks
	stopped <-chan struct{} // closed when nothing more is admitted

	resources   bool // there are any: see Config
	refused     int  // messages, counted by the reader
	initialized atomic.Bool
	// handshake is set while initialize is in flight and after it succeeded: the SDK
	// would let a later server/discover replace the identity.
	handshake atomic.Bool
	finished  chan struct{} // closed when the drain is over
	result    error         // of the session; set before finished closes
}

// Connect implements mcp.Transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection: stdio has none.
func (c *conn) SessionID() string { return "" }

// Close implements mcp.Connection. The session ends by its input; Serve closes the output.
func (c *conn) Close() error {
	c.in.stop()
	return nil
}

// Read returns the next message for the SDK. It answers by itself whatever the SDK need
// not see, and returns an error only when the session is over and drained.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.finished:
		return nil, io.EOF
	default:
	}
	for {
		frame, err := c.frames.next()
		switch {
		case errors.Is(err, errLongFrame):
			c.refuse(&refusal{id: c.unused(recoverID(frame)), code: jsonrpc.CodeInvalidRequest,
				reason: fmt.Sprintf("the message is longer than %d bytes", MaxFrame)})
		case err != nil:
			return nil, c.finish(err)
		default:
			if msg := c.accept(frame); msg != nil {
				return msg, nil
			}
		}
	}
}

// accept reads one frame and returns what the SDK must see of it, or nil.
func (c *conn) accept(frame []byte) jsonrpc.Message {
	e, no := parse(frame)
	switch {
	case no != nil:
		no.id = c.unused(no.id)
		c.refuse(no)
		return nil
	case e.kind == response:
		if !c.asks.deliver(e) {
			c.log.Debug("a response was dropped: nothing was asked", "line", c.frames.line)
		}
		return nil
	case e.kind == notification:
		return c.notified(e)
	}
	return c.admit(e, len(frame))
}

// unused returns the id, or nil when a request in flight has it: a refusal with that id
// would look like the answer to the other request.
func (c *conn) unused(id json.RawMessage) json.RawMessage {
	if id == nil || c.pending.uses(id) {
		return nil
	}
	return id
}

func (c *conn) notified(e envelope) jsonrpc.Message {
	switch e.method {
	case noteInitialized:
		return &jsonrpc.Request{Method: e.method, Params: e.params}
	case noteCancelled:
		c.cancel(e.params)
	default:
		c.log.Debug("a notification was dropped", "method", clip(e.method), "line", c.frames.line)
	}
	return nil
}

func (c *conn) cancel(params json.RawMessage) {
	var id json.RawMessage
	if params != nil {
		m, _ := members(params)
		id = m["requestId"]
	}
	if !isID(id) {
		c.log.Warn("a cancellation without a request id was dropped", "line", c.frames.line)
		return
	}
	if entry := c.pending.silence(id); entry != nil && entry.ticket != nil {
		entry.ticket.Cancel()
	}
}

// admit enters a request among those in flight, or refuses it.
func (c *conn) admit(e envelope, size int) jsonrpc.Message {
	switch e.method {
	case methodInitialize, methodDiscover, methodPing, methodListTools, methodCallTool:
	default:
		if c.resources && readsResources(e.method) {
			break
		}
		c.refuse(&refusal{id: c.unused(e.id), code: jsonrpc.CodeMethodNotFound,
			reason: fmt.Sprintf("method %q is not supported", clip(e.method))})
		return nil
	}
	if e.method == methodDiscover && c.handshake.Load() {
		c.refuse(&refusal{id: c.unused(e.id), code: jsonrpc.CodeInvalidRequest,
			reason: "the session was opened by initialize: the first identity is kept"})
		return nil
	}
	var call toolCall
	if e.method == methodCallTool {
		var why string
		if call, why = parseToolCall(e.params); why != "" {
			c.refuse(&refusal{id: c.unused(e.id), code: jsonrpc.CodeInvalidParams, reason: why})
			return nil
		}
	}
	for c.pending.full(size) && !c.isStopped() {
		select {
		case <-c.pending.freed:
		case <-c.stopped:
		}
	}
	if c.isStopped() {
		c.refuse(&refusal{id: c.unused(e.id), code: codeStopping, reason: "the Bridge is stopping: this request was not carried out"})
		return nil
	}
	entry := c.pending.add(e.id, e.method, size)
	if entry == nil {
		c.refuse(&refusal{code: jsonrpc.CodeInvalidRequest,
			reason: fmt.Sprintf("id %s is in use by a request in flight: the second request was not carried out", clip(string(e.id)))})
		return nil
	}
	id, err := jsonrpc.MakeID(entry.internal)
	if err != nil { // a string is always an id
		c.pending.remove(entry)
		c.refuse(&refusal{id: e.id, code: jsonrpc.CodeInternalError, reason: "internal error"})
		return nil
	}
	if e.method == methodInitialize {
		c.handshake.Store(true)
	}
	msg := &jsonrpc.Request{ID: id, Method: e.method, Params: e.params}
	if e.method == methodCallTool {
		entry.args = call.args
		entry.ticket = c.calls.Arrive(toolkit.Arrival{ID: e.id, Tool: call.name, Progress: c.progress(entry, call.progress)})
		msg.Extra = &mcp.RequestExtra{Header: http.Header{ticketHeader: {entry.internal}}}
	}
	return msg
}

func (c *conn) isStopped() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// progress returns the reporter of a call, nil when the Host gave no token.
func (c *conn) progress(e *entry, token json.RawMessage) func(done, total float64, note string) {
	if token == nil {
		return nil
	}
	return func(done, total float64, note string) {
		params := struct {
			Token    json.RawMessage `json:"progressToken"`
			Progress float64         `json:"progress"`
			Total    float64         `json:"total,omitempty"`
			Message  string          `json:"message,omitempty"`
		}{token, done, total, clip(note)}
		frame, err := json.Marshal(struct {
			Version string `json:"jsonrpc"`
			Method  string `json:"method"`
			Params  any    `json:"params"`
		}{"2.0", noteProgress, params})
		if err == nil && c.pending.live(e) { // a NaN is no progress
			c.out.offer(frame)
		}
	}
}

// maxWarnings is how many refused messages are logged above debug level: a Host that
// sends rubbish and does not read stderr must not stop us by a full pipe.
const maxWarnings = 50

// refuse answers a frame that is not served. Only the reader calls it.
func (c *conn) refuse(r *refusal) {
	level := slog.LevelWarn
	if c.refused++; c.refused > maxWarnings {
		level = slog.LevelDebug
	}
	c.log.Log(c.base, level, "a message was refused", "line", c.frames.line, "code", r.code, "reason", r.reason)
	if c.refused == maxWarnings {
		c.log.Warn("further refused messages are logged at debug level only")
	}
	c.send(encodeError(r.id, &jsonrpc.Error{Code: r.code, Message: r.reason}))
}

// send queues a frame. A writer that has failed ends the session by itself.
func (c *conn) send(frame []byte) {
	if err := c.out.send(frame); err != nil {
		c.log.Debug("a reply was lost", "error", err)
	}
}

// Write implements mcp.Connection. It never fails: a failed write would make the SDK
// cancel every handler, and what they do must stand on its own.
func (c *conn) Write(_ context.Context, msg jsonrpc.Message) error {
	r, ok := msg.(*jsonrpc.Response)
	if !ok {
		c.log.Error("the SDK wanted to send something other than a reply; it was dropped")
		return nil
	}
	internal, _ := r.ID.Raw().(string)
	e, answer := c.pending.claim(internal)
	if e == nil {
		return nil
	}
	defer c.pending.remove(e)
	if e.ticket != nil {
		e.ticket.Release()
	}
	if e.method == methodInitialize && r.Error != nil && !c.initialized.Load() {
		c.handshake.Store(false)
	}
	if !answer {
		return nil
	}
	if r.Error != nil {
		c.send(encodeError(e.id, c.restate(e.method, r.Error)))
		return nil
	}
	if e.method == methodInitialize || e.method == methodDiscover {
		c.initialized.Store(true)
	}
	c.send(encodeResult(e.id, r.Result))
	return nil
}

// finish ends the admission, waits for what is in flight, and returns the error that ends
// the SDK's read loop: io.EOF only after everything was answered and written.
func (c *conn) finish(cause error) error {
	defer close(c.finished)
	if !errors.Is(cause, io.EOF) && !errors.Is(cause, errStopped) {
		c.log.Error("reading from the Host failed", "error", cause)
	}
	c.asks.close()
	c.calls.End()
	until := time.Now().Add(DrainLimit)
	if err := c.drain(until); err != nil {
		c.abandon()
		c.result = err
		if err := c.out.flush(lastWrites); err != nil {
			c.log.Error("the last replies were not read", "error", err)
		}
		return err
	}
	if err := c.out.flush(time.Until(until)); err != nil {
		c.result = err
		return err
	}
	return io.EOF
}

// drain waits until nothing is in flight and no handler runs.
func (c *conn) drain(until time.Time) error {
	ctx, cancel := context.WithDeadline(c.base, until)
	defer cancel()
	for !c.pending.empty() {
		select {
		case <-c.pending.freed:
		case <-ctx.Done():
			return fault.New(DrainExceeded, "mcpserver.drain", "%d requests did not end within %s", len(c.pending.all()), DrainLimit).
				WithHint("look with status what they did before repeating them")
		}
	}
	if err := c.calls.Drain(ctx); err != nil {
		return fault.New(DrainExceeded, "mcpserver.drain", "a tool that was answered for did not end within %s", DrainLimit).
			WithHint("look with status what it did before repeating it")
	}
	return nil
}

// abandon answers everything that is still in flight.
func (c *conn) abandon() {
	for _, e := range c.pending.all() {
		if _, answer := c.pending.claim(e.internal); answer {
			c.send(encodeError(e.id, &jsonrpc.Error{Code: codeStopping,
				Message: "the Bridge stopped before this request ended: its outcome is unknown, look before repeating it"}))
		}
	}
}

package acp

import (
	"context"
	"encoding/json"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Initialize announces us and asks for protocol version 1. An agent that answers with
// another version gets WrongVersion; the caller then ends it. What caps does not name is
// refused on this Conn from now on.
func (c *Conn) Initialize(ctx context.Context, us Info, caps ClientCaps) (Initialized, error) {
	c.mu.Lock()
	c.caps = caps
	c.mu.Unlock()
	raw, err := c.do(ctx, "initialize", map[string]any{
		"protocolVersion":    ProtocolVersion,
		"clientCapabilities": capsOf(caps),
		"clientInfo":         us,
	}, nil)
	if err != nil {
		return Initialized{}, err
	}
	return decodeInitialized(raw)
}

// NewSession opens a session.
func (c *Conn) NewSession(ctx context.Context, p SessionParams) (Session, error) {
	raw, err := c.do(ctx, "session/new", sessionParams("", p), nil)
	if err != nil {
		return Session{}, err
	}
	s := decodeSession(raw)
	if s.ID == "" {
		return Session{}, fault.New(Garbage, "acp.NewSession", "the agent answered session/new without a session id")
	}
	return s, nil
}

// LoadSession opens session id again. The agent replays its history before the answer, or
// right after it: those events have Replay set. It returns when nothing of it came for a
// fifth of a second. It is refused with Busy while a prompt of that session is
// open, because agents lose the way to cancel it.
func (c *Conn) LoadSession(ctx context.Context, id string, p SessionParams) (Session, error) {
	return c.reopen(ctx, methodLoad, id, p)
}

// ResumeSession opens session id again without a replay. Busy is as in LoadSession.
func (c *Conn) ResumeSession(ctx context.Context, id string, p SessionParams) (Session, error) {
	return c.reopen(ctx, "session/resume", id, p)
}

// CloseSession asks the agent to let go of a session. Many agents do not know the method.
func (c *Conn) CloseSession(ctx context.Context, id string) error {
	_, err := c.do(ctx, "session/close", map[string]any{"sessionId": id}, nil)
	return err
}

// SetMode chooses one of [Session.Modes].
func (c *Conn) SetMode(ctx context.Context, sessionID, modeID string) error {
	_, err := c.do(ctx, "session/set_mode", map[string]any{"sessionId": sessionID, "modeId": modeID}, nil)
	return err
}

// SetModel is the older way to choose a model; it is not part of the protocol any more.
func (c *Conn) SetModel(ctx context.Context, sessionID, modelID string) error {
	_, err := c.do(ctx, "session/set_model", map[string]any{"sessionId": sessionID, "modelId": modelID}, nil)
	return err
}

// SetConfigOption changes one of [Session.Config] and returns all of them as the agent has
// them now; nil when its answer names none. value is a string or a bool. The caller
// compares the result: agents may keep the old value without an error.
func (c *Conn) SetConfigOption(ctx context.Context, sessionID, configID string, value any) ([]ConfigOption, error) {
	params := map[string]any{"sessionId": sessionID, "configId": configID, "value": value}
	if _, ok := value.(bool); ok {
		params["type"] = "boolean"
	}
	raw, err := c.do(ctx, "session/set_config_option", params, nil)
	if err != nil {
		return nil, err
	}
	return decodeConfig(asObject(raw)["configOptions"]), nil
}

// Authenticate starts a login. Its success proves nothing: some agents answer without
// logging anyone in. meta is sent as _meta when not empty; it may hold a secret, which the
// Tap then sees.
func (c *Conn) Authenticate(ctx context.Context, methodID string, meta json.RawMessage) error {
	params := map[string]any{"methodId": methodID}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	_, err := c.do(ctx, "authenticate", params, nil)
	return err
}

// Call makes any other call, such as a vendor's, and returns its result.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.do(ctx, method, params, nil)
}

// Text makes a prompt of one text block.
func Text(text string) []json.RawMessage {
	block, _ := json.Marshal(map[string]string{"type": "text", "text": text}) // two strings always marshal
	return []json.RawMessage{block}
}

// Turn is one prompt from its writing to its answer.
type Turn struct {
	SessionID string
	Label     string

	call       *call
	seq        int64
	cancelling bool // guarded by Conn.mu
}

// StartPrompt sends a prompt and returns when it is on its way. label names the turn in
// events and must not be empty. While the turn is open another one on the same session is
// refused with Busy, and nothing is sent. An error means that the agent got nothing.
func (c *Conn) StartPrompt(sessionID, label string, blocks []json.RawMessage) (*Turn, error) {
	return c.startTurn(sessionID, label, blocks)
}

// Prompt is StartPrompt and Wait.
func (c *Conn) Prompt(ctx context.Context, sessionID, label string, blocks []json.RawMessage) (PromptResult, error) {
	t, err := c.StartPrompt(sessionID, label, blocks)
	if err != nil {
		return PromptResult{}, err
	}
	return t.Wait(ctx)
}

// Wait returns when the agent answered the prompt and the Handler saw everything before
// the answer. The turn stays open when ctx ends first (code Timeout); Wait may be called
// again. Other errors settle it: an [RPCError] inside, or what ended the Conn.
func (t *Turn) Wait(ctx context.Context) (PromptResult, error) {
	raw, err := t.call.wait(ctx)
	if err != nil {
		return PromptResult{}, err
	}
	return decodePrompt(raw), nil
}

// Settled is closed when Wait no longer waits.
func (t *Turn) Settled() <-chan struct{} { return t.call.done }

// Cancel answers every open question of the session with `cancelled`, then sends
// session/cancel, and returns what it answered. Questions that come before the turn has
// settled are answered the same way. It does not wait for the turn to settle: the caller
// waits on the Turn with its own limit.
func (c *Conn) Cancel(sessionID string) ([]Ref, error) { return c.cancel(sessionID) }

// Reply answers a question and returns how the answer was routed: selected, cancelled,
// accept, decline, cancel, answered or refused. It fails with NoPending when the question
// was answered, withdrawn or never asked, and with InvalidOption when the answer does not
// fit the question; then the question stays open.
func (c *Conn) Reply(ref Ref, a Answer) (routed string, err error) { return c.reply(ref, a) }

// Pending returns the open questions of a session in the order in which they were asked.
func (c *Conn) Pending(sessionID string) []Ref { return c.pending(sessionID) }

// Done is closed after the Handler saw [Closed].
func (c *Conn) Done() <-chan struct{} { return c.finished }

// Err returns what ended the Conn, nil while it works.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Abort ends the Conn with err as its reason and does not wait. The first reason counts.
func (c *Conn) Abort(err error) { c.fail(err) }

// Close ends the Conn, waits until the Handler saw everything that was read, and Closed.
// Both pipes are closed. It may be called twice.
func (c *Conn) Close() {
	c.fail(fault.New(ClosedByUs, "acp.Close", "the connection to the agent was closed"))
	<-c.finished
}

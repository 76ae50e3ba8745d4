package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	methodElicit    = "elicitation/create"
	noteElicited    = "notifications/elicitation/complete"
	firstInline     = "2026-07-28" // the Host takes no requests from here on
	firstTitled     = "2025-11-25"
	maxAsks         = 32 // open questions to one Host
	elicitFormMode  = "form"
	elicitURLMode   = "url"
	actionAccept    = "accept"
	actionDecline   = "decline"
	actionCancelled = "cancel"
)

// asks are our own requests to the Host that wait for a response.
type asks struct {
	mu     sync.Mutex
	next   uint64
	open   map[string]chan envelope
	closed bool
	gone   chan struct{} // closed with closed
}

func newAsks() *asks { return &asks{open: make(map[string]chan envelope), gone: make(chan struct{})} }

// add enters a request; it fails when the session has ended or too many are open.
func (a *asks) add() (id string, reply <-chan envelope, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.open) >= maxAsks {
		return "", nil, false
	}
	a.next++
	id = strconv.Quote("akk-" + strconv.FormatUint(a.next, 10))
	c := make(chan envelope, 1)
	a.open[id] = c
	return id, c, true
}

func (a *asks) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// deliver hands a response to who asked; it reports whether anybody did.
func (a *asks) deliver(e envelope) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.open[string(e.id)]
	if c == nil {
		return false
	}
	delete(a.open, string(e.id))
	c <- e
	return true
}

func (a *asks) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		close(a.gone)
	}
}

// ask sends a request to the Host and waits for its response, at most until ctx ends;
// then the Host is told that nobody waits any more.
func (c *conn) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	id, reply, ok := c.asks.add()
	if !ok {
		return nil, toolkit.ErrHostSilent
	}
	defer c.asks.remove(id)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, body)
	c.send(b.Bytes())
	select {
	case e := <-reply:
		if e.failed {
			return nil, toolkit.ErrHostSilent
		}
		return e.result, nil
	case <-c.asks.gone:
		return nil, toolkit.ErrHostSilent
	case <-ctx.Done():
		c.out.offer(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"requestId":%s,"reason":"the question is no longer open"}}`, noteCancelled, id))
		return nil, context.Cause(ctx)
	}
}

// face is the Host of one call.
type face struct {
	c                    *conn
	form, url            bool
	titled, inlineResult bool
}

// faceOf reads what the Host can do from the call itself, or from its handshake.
func (c *conn) faceOf(req *mcp.CallToolRequest) *face {
	f := &face{c: c}
	version := ""
	if p := req.Session.InitializeParams(); p != nil {
		version = p.ProtocolVersion
		if p.Capabilities != nil && p.Capabilities.Elicitation != nil {
			f.url = p.Capabilities.Elicitation.URL != nil
			f.form = p.Capabilities.Elicitation.Form != nil || !f.url
		}
	}
	if v, ok := req.Params.Meta[mcp.MetaKeyProtocolVersion].(string); ok {
		version = v
		caps, _ := req.Params.Meta[mcp.MetaKeyClientCapabilities].(map[string]any)
		elicitation, given := caps["elicitation"].(map[string]any)
		_, f.url = elicitation[elicitURLMode]
		_, f.form = elicitation[elicitFormMode]
		f.form = given && (f.form || !f.url)
	}
	f.inlineResult = version >= firstInline
	f.titled = version >= firstTitled
	return f
}

func (f *face) Forms() bool  { return f.form }
func (f *face) URLs() bool   { return f.url }
func (f *face) Titled() bool { return f.titled }
func (f *face) Inline() bool { return f.inlineResult }

// Elicit implements toolkit.Host.
func (f *face) Elicit(ctx context.Context, q toolkit.Elicitation) (toolkit.Answer, error) {
	if f.inlineResult {
		return toolkit.Answer{}, toolkit.ErrHostSilent
	}
	raw, err := f.c.ask(ctx, methodElicit, elicitParams(q, f.titled))
	if err != nil {
		return toolkit.Answer{}, err
	}
	var a struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &a) != nil || !isAction(a.Action) {
		return toolkit.Answer{}, toolkit.ErrHostSilent
	}
	return toolkit.Answer{Action: a.Action, Content: a.Content}, nil
}

func isAction(s string) bool { return s == actionAccept || s == actionDecline || s == actionCancelled }

// Elicited implements toolkit.Host.
func (f *face) Elicited(id string) {
	if f.inlineResult || !f.url {
		return
	}
	f.c.out.offer(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"elicitationId":%s}}`, noteElicited, quoteJSON(id)))
}

func quoteJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return []byte(`""`)
	}
	return b
}

// elicitParams are the params of a question. Hosts before the mode existed get none: to
// them a form is the only kind.
func elicitParams(q toolkit.Elicitation, titled bool) map[string]any {
	if q.URL != "" {
		return map[string]any{"mode": elicitURLMode, "message": q.Message, "url": q.URL, "elicitationId": q.ID}
	}
	out := map[string]any{"message": q.Message, "requestedSchema": q.Schema}
	if titled {
		out["mode"] = elicitFormMode
	}
	return out
}

// inputRequired renders a result that asks.
func inputRequired(in *toolkit.InputNeeded) *mcp.CallToolResult {
	requests := mcp.InputRequestMap{}
	for id, q := range in.Questions {
		p := &mcp.ElicitParams{Message: q.Message, Mode: elicitFormMode, RequestedSchema: q.Schema}
		if q.URL != "" {
			p = &mcp.ElicitParams{Message: q.Message, Mode: elicitURLMode, URL: q.URL, ElicitationID: q.ID}
		}
		requests[id] = p
	}
	return &mcp.CallToolResult{InputRequests: requests, RequestState: in.State}
}

// resumed reads the answers that a Host sends with a repeated call; nil without any.
func resumed(p *mcp.CallToolParamsRaw) *toolkit.Resumed {
	if p.RequestState == "" && len(p.InputResponses) == 0 {
		return nil
	}
	out := &toolkit.Resumed{State: p.RequestState, Answers: map[string]toolkit.Answer{}}
	for id, r := range p.InputResponses {
		e, ok := r.(*mcp.ElicitResult)
		if !ok || !isAction(e.Action) {
			continue
		}
		content, err := json.Marshal(e.Content)
		if err != nil || e.Content == nil {
			content = nil
		}
		out.Answers[id] = toolkit.Answer{Action: e.Action, Content: content}
	}
	return out
}

var _ toolkit.Host = (*face)(nil)

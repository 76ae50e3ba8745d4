// Package ledgerserver speaks MCP for the coordination ledger: one JSON-RPC message in,
// at most one out, and the stdio loop around that.
//
// It owns framing, the order of replies, cancellation and the protocol's own errors. What
// a tool or a resource is belongs to ledgertools. Messages of one connection are served
// one after the other, in the order of arrival: a read sees every earlier write, and a
// burst takes no more memory than its queue.
package ledgerserver

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
)

// The JSON-RPC errors.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeResource = -32002 // of MCP: there is no such resource
)

// Latest is the protocol version that is offered to a client that asks for an unknown one.
const Latest = "2025-11-25"

var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", Latest}

// UIExtension is the protocol extension of the app views.
const UIExtension = "io.modelcontextprotocol/ui"

// Name is how the server introduces itself.
const Name = "agent-knock-knock-coordination"

// Server answers the messages of MCP clients. It is safe for concurrent use.
type Server struct {
	tools   func() (*ledgertools.Tools, error) // waits while the ledger is opened
	version string

	mu         sync.Mutex
	extensions map[string]any
	offer      *ledgertools.Offer // nil: everything
}

// New returns a server of a ledger.
func New(s *coord.Service, version string) *Server {
	return Opening(func() (*coord.Service, error) { return s, nil }, version)
}

// Opening returns a server of a ledger that open brings up, once, while the client is
// greeted already: initialize, ping and tools/list need no ledger, everything else waits
// for it. When open fails, [Server.Serve] answers what waits with that and ends with it.
func Opening(open func() (*coord.Service, error), version string) *Server {
	return &Server{version: version,
		tools: sync.OnceValues(func() (*ledgertools.Tools, error) {
			s, err := open()
			if err != nil {
				return nil, err
			}
			return ledgertools.New(s, Name, version), nil
		}),
		extensions: map[string]any{UIExtension: map[string]any{"mimeTypes": []string{ledgertools.ViewType}}}}
}

// DeclareExtension advertises an extension in initialize. A nil config is sent as {}.
func (s *Server) DeclareExtension(id string, config any) {
	if config == nil {
		if id == UIExtension {
			return // it is declared already, with its media type
		}
		config = struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extensions[id] = config
}

// Restrict leaves of the tools and the view what a policy leaves, instead of what the last
// call did; before the first, everything is left. Call it before the first message: a client
// is not told that its tools change. A policy that is refused changes nothing.
func (s *Server) Restrict(p ledgertools.Policy) error {
	offer, err := p.Offer()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer = offer
	return nil
}

func (s *Server) offered() *ledgertools.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}

// left waits for the ledger and returns what the host leaves of its tools.
func (s *Server) left() (*ledgertools.Tools, error) {
	tools, err := s.tools()
	if err != nil {
		return nil, err
	}
	return tools.With(s.offered()), nil
}

// message is a JSON-RPC message as far as it is looked at.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

func (m message) notification() bool {
	return len(m.ID) == 0 || bytes.Equal(m.ID, []byte("null"))
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

var null = json.RawMessage("null")

// HandleMessage serves one JSON-RPC message and returns the encoded reply; ok is false
// when there is none: for notifications, and for replies to questions that nobody asked.
// A tools/call without an id is carried out in silence.
func (s *Server) HandleMessage(ctx context.Context, raw []byte) (out []byte, ok bool) {
	m, refused := parse(raw)
	if refused != nil {
		return encode(*refused), true
	}
	return s.serve(ctx, m)
}

// parse reads a message or returns the reply that refuses it.
func parse(raw []byte) (m message, refused *reply) {
	refuse := func(id json.RawMessage, code int, text string) (message, *reply) {
		if len(id) == 0 {
			id = null
		}
		return message{}, &reply{Version: "2.0", ID: id, Error: &rpcError{code, text}}
	}
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || !json.Valid(trimmed) {
		return refuse(nil, codeParse, "parse error: the line is not one JSON value")
	}
	if trimmed[0] == '[' {
		return refuse(nil, codeRequest, "batches are not supported: send every message on its own line")
	}
	if trimmed[0] != '{' {
		return refuse(nil, codeRequest, "the message is not a JSON object")
	}
	if err := json.Unmarshal(trimmed, &m); err != nil {
		var id struct{ ID json.RawMessage }
		_ = json.Unmarshal(trimmed, &id) // the message is valid JSON: at worst there is no id
		return refuse(id.ID, codeRequest, "the message is not a JSON-RPC request")
	}
	switch {
	case m.Version != "2.0":
		return refuse(m.ID, codeRequest, `"jsonrpc" must be "2.0"`)
	case m.Method == nil && m.Result == nil && m.Error == nil:
		return refuse(m.ID, codeRequest, `"method" is missing`)
	}
	return m, nil
}

func encode(r reply) []byte {
	b, err := ledgertools.Marshal(r)
	if err != nil {
		r.Result, r.Error = nil, &rpcError{codeInternal, "the result cannot be encoded"}
		b, _ = ledgertools.Marshal(r) // strings and a valid id
	}
	return b
}

func (s *Server) serve(ctx context.Context, m message) ([]byte, bool) {
	if m.Method == nil { // a reply: nothing was asked
		return nil, false
	}
	if m.notification() {
		if *m.Method == "tools/call" {
			s.dispatch(ctx, m)
		}
		return nil, false
	}
	result, refused := s.dispatch(ctx, m)
	if refused != nil {
		return encode(reply{Version: "2.0", ID: m.ID, Error: refused}), true
	}
	return encode(reply{Version: "2.0", ID: m.ID, Result: result}), true
}

func (s *Server) dispatch(ctx context.Context, m message) (result any, refused *rpcError) {
	defer func() {
		if p := recover(); p != nil {
			result, refused = nil, panicked(p, *m.Method)
		}
	}()
	switch *m.Method {
	case "initialize":
		return s.initialize(m.Params)
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return struct {
			Tools json.RawMessage `json:"tools"`
		}{s.offered().Catalogue()}, nil
	case "tools/call":
		return s.call(ctx, m.Params)
	case "resources/list":
		return s.listResources(ctx, m.Params)
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": ledgertools.Templates}, nil
	case "resources/read":
		return s.readResource(ctx, m.Params)
	}
	return nil, &rpcError{codeMethod, "method is not supported"}
}

// params decodes parameters; missing ones are none.
func params(raw json.RawMessage, into any) *rpcError {
	if len(raw) == 0 || bytes.Equal(raw, null) {
		return nil
	}
	if raw[0] != '{' || json.Unmarshal(raw, into) != nil {
		return &rpcError{codeParams, "params do not fit the method"}
	}
	return nil
}

type serverInfo struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

func (s *Server) initialize(raw json.RawMessage) (any, *rpcError) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	version := p.ProtocolVersion
	if !slices.Contains(versions, version) {
		version = Latest
	}
	s.mu.Lock()
	extensions, offer := maps.Clone(s.extensions), s.offer
	s.mu.Unlock()
	if !offer.View() {
		delete(extensions, UIExtension)
	}
	return map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{"tools": struct{}{}, "resources": struct{}{}, "extensions": extensions},
		"serverInfo":      serverInfo{Name, "Coordination ledger", s.version, "Who should do what, who holds it, and what proof exists. It runs nothing."},
		"instructions":    instructions(offer),
	}, nil
}

// instructions name the tools that take work, when all of them are left.
func instructions(offer *ledgertools.Offer) string {
	toTake := []string{"assignments.next", "assignments.claim", "assignments.context", "evidence.record", "assignments.complete"}
	const first = "coordination.capabilities"
	if off := func(tool string) bool { return !offer.Has(tool) }; off(first) || slices.ContainsFunc(toTake, off) {
		return "The host has switched some tools of this ledger off: tools/list names those that are left."
	}
	return "Read " + first + " once. To take work: " + strings.Join(toTake, ", ") + "; keep claim.id."
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type callResult struct {
	Content    []content `json:"content"`
	Structured any       `json:"structuredContent,omitempty"`
	IsError    bool      `json:"isError,omitempty"`
}

func (s *Server) call(ctx context.Context, raw json.RawMessage) (any, *rpcError) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	if !ledgertools.Known(p.Name) {
		return nil, &rpcError{codeParams, "unknown tool"}
	}
	if !s.offered().Has(p.Name) { // to a client it is as good as unknown; its user may wonder why
		return nil, &rpcError{codeParams, "the host has switched off " + p.Name}
	}
	tools, err := s.left()
	if err != nil {
		return nil, notOpened(err)
	}
	out := callTool(ctx, tools, p.Name, p.Arguments)
	return callResult{[]content{{"text", out.Text}}, out.Value, out.IsError}, nil
}

// callTool calls a tool; one that panics costs its own call, not the session.
func callTool(ctx context.Context, tools *ledgertools.Tools, name string, args json.RawMessage) (out ledgertools.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			refused := panicked(p, name)
			out = ledgertools.Failed(fault.New(fault.Internal, "ledgerserver.call", "%s", refused.Message), nil)
		}
	}()
	return tools.Call(ctx, name, args)
}

// panicked logs a defect where the operator looks for it and returns what the client is
// told of it. The Store has rolled the call back. The log is slog's default, which writes to
// stderr: an embedding host may have it write elsewhere.
func panicked(p any, what string) *rpcError {
	slog.Error("the ledger panicked", "call", what, "panic", p, "stack", string(debug.Stack()))
	return &rpcError{codeInternal, what + " failed unexpectedly; see the server's log on stderr"}
}

func (s *Server) listResources(ctx context.Context, raw json.RawMessage) (any, *rpcError) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	tools, err := s.left()
	if err != nil {
		return nil, notOpened(err)
	}
	list, next, err := tools.Resources(ctx, p.Cursor)
	if err != nil {
		return nil, resourceError(err)
	}
	return struct {
		Resources []ledgertools.Resource `json:"resources"`
		Next      string                 `json:"nextCursor,omitempty"`
	}{list, next}, nil
}

func (s *Server) readResource(ctx context.Context, raw json.RawMessage) (any, *rpcError) {
	var p struct {
		URI string `json:"uri"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	if p.URI == "" {
		return nil, &rpcError{codeParams, "uri is required"}
	}
	tools, err := s.left()
	if err != nil {
		return nil, notOpened(err)
	}
	c, err := tools.ReadResource(ctx, p.URI)
	if err != nil {
		return nil, resourceError(err)
	}
	return map[string]any{"contents": []ledgertools.Contents{c}}, nil
}

// notOpened tells the client why there is no ledger, and what would help.
func notOpened(err error) *rpcError {
	_, msg, hint := fault.Public(err)
	if hint != "" {
		msg += ": " + hint
	}
	return &rpcError{codeInternal, msg}
}

func resourceError(err error) *rpcError {
	_, msg, _ := fault.Public(err)
	switch coord.Classify(err) {
	case fault.NotFound:
		return &rpcError{codeResource, msg}
	case fault.Invalid:
		return &rpcError{codeParams, msg}
	}
	return &rpcError{codeInternal, msg}
}

package acp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// question is an open request of the agent.
type question struct {
	id  json.RawMessage // as the agent wrote it
	req *Request
}

// Answer is what to reply. Make it with the functions below.
type Answer struct {
	verb    answerVerb
	option  string
	content json.RawMessage
	code    int
	message string
}

type answerVerb int

const (
	_ answerVerb = iota
	verbSelect
	verbAccept
	verbReject
	verbDismiss
	verbResult
	verbRefuse
)

// Select chooses the offered option with exactly this id. Permission only.
func Select(optionID string) Answer { return Answer{verb: verbSelect, option: optionID} }

// Accept answers a form or a plain question with content, a JSON object, and a URL question
// with none.
func Accept(content json.RawMessage) Answer { return Answer{verb: verbAccept, content: content} }

// Reject says no: the first reject_once option of a permission, else its first
// reject_always option, else `cancelled`; decline for an elicitation. A plain question
// knows no refusal: it gets an error, and the caller should cancel the turn.
func Reject() Answer { return Answer{verb: verbReject} }

// Dismiss says that nobody decided: `cancelled` for a permission, never an option; cancel
// for an elicitation; an error for everything else.
func Dismiss() Answer { return Answer{verb: verbDismiss} }

// Result answers a file or terminal request.
func Result(result json.RawMessage) Answer { return Answer{verb: verbResult, content: result} }

// Refuse answers any request with a JSON-RPC error.
func Refuse(code int, message string) Answer {
	return Answer{verb: verbRefuse, code: code, message: message}
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *responseError  `json:"error,omitempty"`
}

type responseError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type outcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

type action struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// respond makes the response that a means for q, and how it is routed.
func respond(q *question, a Answer) (r response, routed string, err error) {
	r = response{JSONRPC: "2.0", ID: q.id}
	unfit := func(format string, args ...any) (response, string, error) {
		return response{}, "", fault.New(InvalidOption, "acp.Reply", format, args...).WithHint("the question is still open")
	}
	refuse := func(code int, message, routed string) (response, string, error) {
		r.Error = &responseError{Code: code, Message: message}
		return r, routed, nil
	}
	if a.verb == verbRefuse {
		return refuse(a.code, a.message, "refused")
	}
	switch q.req.Kind {
	case KindPermission:
		choice := outcome{Outcome: "cancelled"}
		switch a.verb {
		case verbSelect:
			if !slices.ContainsFunc(q.req.Permission.Options, func(o Option) bool { return o.ID == a.option }) {
				return unfit("the agent did not offer this option")
			}
			choice = outcome{Outcome: "selected", OptionID: a.option}
		case verbReject:
			if id, ok := rejection(q.req.Permission.Options); ok {
				choice = outcome{Outcome: "selected", OptionID: id}
			}
		case verbDismiss:
		default:
			return unfit("a permission is answered with one of its options")
		}
		r.Result = map[string]outcome{"outcome": choice}
		return r, choice.Outcome, nil
	case KindForm, KindURL:
		var do action
		switch a.verb {
		case verbAccept:
			do = action{Action: "accept", Content: notNull(a.content)}
			if q.req.Kind == KindForm && asObject(a.content) == nil {
				return unfit("a form is answered with a JSON object")
			}
		case verbReject:
			do.Action = "decline"
		case verbDismiss:
			do.Action = "cancel"
		default:
			return unfit("this question is answered with accept, decline or cancel")
		}
		r.Result = do
		return r, do.Action, nil
	case KindInformation:
		switch a.verb {
		case verbAccept:
			if asObject(a.content) == nil {
				return unfit("this question is answered with a JSON object")
			}
			r.Result = map[string]json.RawMessage{"content": a.content}
			return r, "accept", nil
		case verbReject, verbDismiss:
			return refuse(CodeCancelled, "nobody answered", "cancelled")
		}
	case KindFile, KindTerminal:
		switch a.verb {
		case verbResult:
			r.Result = a.content
			if isNull(a.content) {
				r.Result = struct{}{}
			}
			return r, "answered", nil
		case verbReject, verbDismiss:
			return refuse(CodeCancelled, "cancelled", "cancelled")
		}
	}
	return unfit("this answer does not fit the question")
}

func rejection(options []Option) (id string, ok bool) {
	for _, kind := range []string{"reject_once", "reject_always"} {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID, true
			}
		}
	}
	return "", false
}

func (c *Conn) reply(ref Ref, a Answer) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.questions[ref]
	if q == nil {
		return "", fault.New(NoPending, "acp.Reply", "this question is not open any more")
	}
	r, routed, err := respond(q, a)
	if err != nil {
		return "", err
	}
	if err := c.send(r); err != nil {
		return "", err
	}
	c.forget(ref, q)
	return routed, nil
}

// forget is called with mu held.
func (c *Conn) forget(ref Ref, q *question) {
	delete(c.questions, ref)
	delete(c.refs, string(q.id))
}

func (c *Conn) pending(sessionID string) []Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pendingLocked(sessionID)
}

func (c *Conn) pendingLocked(sessionID string) []Ref {
	var refs []Ref
	for ref, q := range c.questions {
		if q.req.SessionID == sessionID {
			refs = append(refs, ref)
		}
	}
	slices.Sort(refs)
	return refs
}

func (c *Conn) cancel(sessionID string) ([]Ref, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if t := c.turns[sessionID]; t != nil {
		t.cancelling = true
	}
	refs := c.pendingLocked(sessionID)
	for _, ref := range refs {
		q := c.questions[ref]
		r, _, err := respond(q, Dismiss())
		if err == nil {
			err = c.send(r)
		}
		if err != nil {
			return nil, err
		}
		c.forget(ref, q)
	}
	return refs, c.send(newRequest(nil, methodCancel, map[string]any{"sessionId": sessionID}))
}

// withdraw closes the question that the agent takes back. The protocol wants an answer
// even then.
func (c *Conn) withdraw(id json.RawMessage) *Withdrawn {
	c.mu.Lock()
	defer c.mu.Unlock()
	ref, ok := c.refs[string(bytes.TrimSpace(id))]
	if !ok {
		return nil
	}
	q := c.questions[ref]
	r := response{JSONRPC: "2.0", ID: q.id, Error: &responseError{Code: CodeCancelled, Message: "request cancelled"}}
	_ = c.send(r) // the question is gone either way
	c.forget(ref, q)
	return &Withdrawn{Ref: ref, SessionID: q.req.SessionID}
}

// acceptRequest opens a question, or answers at once what nobody can be asked. No request
// stays without an answer: agents wait for ever.
func (c *Conn) acceptRequest(f frame, line []byte, odd func(OddKind) []item) []item {
	id := bytes.TrimSpace(f.id)
	if isNull(id) || id[0] == '{' || id[0] == '[' {
		return odd(OddCannotAnswer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.refs[string(id)]; taken {
		return odd(OddDuplicateID) // an answer to it would be taken for the other's
	}
	refuse := func(code int, message string) []item {
		_ = c.send(response{JSONRPC: "2.0", ID: id, Error: &responseError{Code: code, Message: message}})
		return odd(OddRefused)
	}
	req, bad := c.readRequest(f)
	if bad != nil {
		return refuse(bad.Code, bad.Message)
	}
	if len(c.questions) >= c.limits.OpenQuestions {
		return refuse(CodeInternal, "too many open requests")
	}
	c.nextRef++
	req.Ref, req.Turn = c.nextRef, c.turnLabel(req.SessionID)
	q := &question{id: id, req: req}
	if t := c.turns[req.SessionID]; t != nil && t.cancelling {
		if r, _, err := respond(q, Dismiss()); err == nil {
			_ = c.send(r)
		}
		req.Answered = true
	} else {
		c.questions[req.Ref], c.refs[string(id)] = q, req.Ref
	}
	return []item{{event: req, size: len(line)}}
}

// readRequest is called with mu held.
func (c *Conn) readRequest(f frame) (*Request, *responseError) {
	o := asObject(f.params)
	req := &Request{SessionID: o.str("sessionId"), Method: f.method, Params: f.params}
	unknown := &responseError{Code: CodeNoMethod, Message: "Method not found: " + clip(f.method, 200)}
	offered := func(yes bool, kind RequestKind) (*Request, *responseError) {
		if !yes {
			return nil, unknown
		}
		req.Kind = kind
		return req, nil
	}
	switch f.method {
	case methodPermission:
		options, ok := asList(o["options"])
		if !ok {
			return nil, &responseError{Code: CodeInvalidParams, Message: "options must be an array"}
		}
		req.Kind, req.Permission = KindPermission, &Permission{Tool: decodeTool(o.sub("toolCall"))}
		for _, item := range options {
			p := asObject(item)
			if id := p.strPtr("optionId"); id != nil {
				req.Permission.Options = append(req.Permission.Options, Option{ID: *id, Name: p.str("name"), Kind: p.str("kind")})
			}
		}
		return req, nil
	case methodElicit:
		req.Elicitation = &Elicitation{
			ID: o.str("elicitationId"), Message: o.str("message"), Schema: notNull(o["requestedSchema"]),
			URL: o.str("url"), ToolCallID: o.str("toolCallId"),
		}
		switch mode := o.str("mode"); {
		case mode == "form" || mode == "":
			return offered(c.caps.ElicitForm, KindForm)
		case mode == "url" && c.caps.ElicitURL:
			return offered(true, KindURL)
		}
		return nil, &responseError{Code: CodeInvalidParams, Message: "this elicitation mode is not supported"}
	case "session/request_input", "session/request_information", "session/request_user_input":
		message := o.str("message")
		for _, key := range []string{"prompt", "question"} {
			if message == "" {
				message = o.str(key)
			}
		}
		schema := notNull(o["schema"])
		if schema == nil {
			schema = notNull(o["requestedSchema"])
		}
		req.Information = &Information{Title: o.str("title"), Message: message, Schema: schema}
		return offered(true, KindInformation)
	case "fs/read_text_file":
		return offered(c.caps.ReadFile, KindFile)
	case "fs/write_text_file":
		return offered(c.caps.WriteFile, KindFile)
	case "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return offered(c.caps.Terminal, KindTerminal)
	}
	return nil, unknown
}

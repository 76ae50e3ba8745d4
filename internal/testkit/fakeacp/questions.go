package fakeacp

import (
	"encoding/json"
	"fmt"
	"time"
)

// withdrawAfter is how long WITHDRAW's question stands.
const withdrawAfter = 100 * time.Millisecond

var usualOptions = []object{
	{"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
	{"optionId": "deny_once", "name": "Deny", "kind": "reject_once"},
}

var everyOption = []object{
	{"optionId": "allow_always", "name": "Always allow", "kind": "allow_always"},
	{"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
	{"optionId": "deny_always", "name": "Never", "kind": "reject_always"},
	{"optionId": "deny_once", "name": "Deny", "kind": "reject_once"},
}

// permissions asks n questions at once and says the answers in the order of the questions.
func (t *turn) permissions(n int, options []object) {
	replies := make([]<-chan frame, n)
	for i := range n {
		call := fmt.Sprintf("perm-%d", i+1)
		t.update(t.s, object{"sessionUpdate": "tool_call", "toolCallId": call, "title": "rm -rf build", "kind": "execute", "status": "pending"})
		_, replies[i] = t.ask("session/request_permission", object{"sessionId": t.s.id, "options": options,
			"toolCall": object{"toolCallId": call, "title": "rm -rf build", "kind": "execute", "rawInput": object{"command": "rm -rf build", "n": i + 1}}})
	}
	for i := range n {
		say(t, t.permissionAnswer(replies[i]))
	}
}

// permissionNamed asks under an id that is the same each time, and says the answer if it
// waits for one.
func (t *turn) permissionNamed(wait bool) {
	answer := make(chan frame, 1)
	t.mu.Lock()
	t.waiting[`"p1"`] = answer
	t.mu.Unlock()
	t.send(object{"jsonrpc": "2.0", "id": "p1", "method": "session/request_permission", "params": object{"sessionId": t.s.id, "options": usualOptions,
		"toolCall": object{"toolCallId": "named", "title": "a named one"}}})
	if wait {
		say(t, t.permissionAnswer(answer))
	}
}

func (t *turn) await(reply <-chan frame) (frame, bool) {
	select {
	case f := <-reply:
		return f, true
	case <-t.agent.ctx.Done(): // not the turn's: every question must be answered
		return frame{}, false
	}
}

func (t *turn) permissionAnswer(reply <-chan frame) string {
	f, ok := t.await(reply)
	if !ok {
		return ""
	}
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(f.Result, &r)
	switch {
	case f.Error != nil:
		return fmt.Sprintf("[error:%d]", f.Error.Code)
	case r.Outcome.Outcome != "selected":
		return "[" + r.Outcome.Outcome + "]"
	case r.Outcome.OptionID == "allow_once" || r.Outcome.OptionID == "allow_always":
		return "[allowed:" + r.Outcome.OptionID + "]"
	}
	return "[denied:" + r.Outcome.OptionID + "]"
}

// query makes a request and says what came back.
func (t *turn) query(name, method string, params object) {
	params["sessionId"] = t.s.id
	_, reply := t.ask(method, params)
	f, ok := t.await(reply)
	switch {
	case !ok:
	case f.Error != nil:
		say(t, fmt.Sprintf("[%s:%d]", name, f.Error.Code))
	default:
		say(t, fmt.Sprintf("[%s:%s]", name, f.Result))
	}
}

func information(t *turn, _ string) {
	_, reply := t.ask("session/request_information", object{"sessionId": t.s.id, "title": "A name", "message": "What is the name?",
		"schema": object{"type": "object", "properties": object{"value": object{"type": "string"}}, "required": []string{"value"}}})
	f, ok := t.await(reply)
	switch {
	case !ok:
	case f.Error != nil:
		say(t, fmt.Sprintf("[error:%d]", f.Error.Code))
	default:
		var r struct{ Content raw }
		_ = json.Unmarshal(f.Result, &r)
		say(t, "[content:"+string(r.Content)+"]")
	}
}

func (t *turn) elicit(params object) {
	params["sessionId"] = t.s.id
	_, reply := t.ask("elicitation/create", params)
	f, ok := t.await(reply)
	if !ok {
		return
	}
	var r struct {
		Action  string
		Content raw
	}
	_ = json.Unmarshal(f.Result, &r)
	switch {
	case f.Error != nil:
		say(t, fmt.Sprintf("[error:%d]", f.Error.Code))
	case r.Action == "accept" && r.Content != nil:
		say(t, "[accept:"+string(r.Content)+"]")
	default:
		say(t, "["+r.Action+"]")
	}
}

func elicitForm(t *turn, _ string) {
	t.elicit(object{"mode": "form", "message": "Which colour?", "requestedSchema": object{"type": "object",
		"properties": object{
			"value": object{"type": "string", "title": "Colour", "oneOf": []object{{"const": "red", "title": "Red"}, {"const": "blue", "title": "Blue"}}},
			"note":  object{"type": "string", "title": "Note"},
		}, "required": []string{"value"}}})
}

func elicitURL(t *turn, _ string) {
	t.elicit(object{"mode": "url", "elicitationId": "el-1", "url": loginPage, "message": "Open the page"})
	t.notify("elicitation/complete", object{"elicitationId": "el-1"})
}

func withdraw(t *turn, _ string) {
	id, reply := t.ask("session/request_permission", object{"sessionId": t.s.id, "options": usualOptions,
		"toolCall": object{"toolCallId": "gone", "title": "never mind", "kind": "other"}})
	if !pause(t.ctx, withdrawAfter) {
		_, _ = t.await(reply)
		return
	}
	t.notify("$/cancel_request", object{"requestId": id})
	say(t, "withdrawn "+t.permissionAnswer(reply))
}

package fakemodel

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const limit = 15 * time.Second

// post sends a request and returns the status and the events or the body.
func post(t *testing.T, s *Server, path string, body obj) (int, []obj) {
	t.Helper()
	resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(encode(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out []obj
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				var o obj
				if err := json.Unmarshal([]byte(data), &o); err != nil {
					t.Fatal(err)
				}
				out = append(out, o)
			}
		}
		return resp.StatusCode, out
	}
	var o obj
	b, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return resp.StatusCode, []obj{o}
}

func userItem(text string) obj {
	return obj{"type": "message", "role": "user", "content": []any{obj{"type": "input_text", "text": text}}}
}

var codexTools = []any{
	obj{"type": "function", "name": "exec_command"},
	obj{"type": "namespace", "name": "mcp__akk", "tools": []any{obj{"type": "function", "name": "list"}}},
}

func kindsOf(events []obj) []string {
	var out []string
	for _, e := range events {
		out = append(out, str(e["type"]))
	}
	return out
}

func TestResponsesStreamEndsWithTheScriptedText(t *testing.T) {
	s := Start(t)
	status, events := post(t, s, "/v1/responses", obj{"model": "m", "stream": true,
		"input": []any{userItem("<environment_context>x"), userItem("STREAM:2@1 ;; SAY:end"), userItem("<turn_aborted>")}})
	if status != 200 {
		t.Fatal(status)
	}
	if kinds := kindsOf(events); kinds[0] != "response.created" || kinds[len(kinds)-1] != "response.completed" {
		t.Error(kinds)
	}
	text := ""
	for _, e := range events {
		if e["type"] == "response.output_text.delta" {
			text += str(e["delta"])
		}
	}
	if text != "chunk 1 of 2. chunk 2 of 2. \n\nend" {
		t.Errorf("%q", text)
	}
	r := s.Requests()[0]
	if r.User != "STREAM:2@1 ;; SAY:end" || r.Outcome != "final" || r.Final.IsZero() || r.Kind != "main" {
		t.Errorf("%+v", r)
	}
}

func TestCallsComeOneARoundTripAndThenTheText(t *testing.T) {
	s := Start(t)
	input := []any{userItem(`RUN:ls ;; TOOL:list {"a":1} ;; SAY:done`)}
	var got []string
	for range 3 {
		_, events := post(t, s, "/v1/responses", obj{"model": "m", "tools": codexTools, "input": input})
		for _, e := range events {
			if e["type"] != "response.output_item.done" {
				continue
			}
			it := dict(e["item"])
			got = append(got, strings.Join([]string{str(it["type"]), str(it["namespace"]), str(it["name"]), str(it["arguments"])}, "|"))
			input = append(input, it, obj{"type": "function_call_output", "call_id": it["call_id"], "output": "result"})
		}
	}
	want := []string{`function_call||exec_command|{"cmd":"ls","justification":"Run ls?","sandbox_permissions":"require_escalated"}`, `function_call|mcp__akk|list|{"a":1}`, "message|||"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStructuredOutputGetsAnObjectOfItsSchema(t *testing.T) {
	s := Start(t)
	schema := obj{"type": "object", "properties": obj{"title": obj{"type": "string"}, "kind": obj{"enum": []any{"a", "b"}},
		"n": obj{"type": []any{"integer", "null"}}, "sub": obj{"type": "object", "properties": obj{"ok": obj{"type": "boolean"}}}}}
	post(t, s, "/v1/responses", obj{"input": "FAIL:500", "text": obj{"format": obj{"type": "json_schema", "schema": schema}}})
	if r := s.Requests()[0]; r.Kind != "schema" || r.Reply != `text {"kind":"a","n":0,"sub":{"ok":false},"title":"fake title"}` {
		t.Errorf("%+v", r)
	}
}

func TestFailuresComeAsStatusEventOrCut(t *testing.T) {
	s := Start(t)
	if status, body := post(t, s, "/v1/responses", obj{"input": "FAIL:429"}); status != 429 || dict(body[0]["error"])["message"] != "fake failure 429" {
		t.Errorf("%d %v", status, body)
	}
	_, events := post(t, s, "/v1/responses", obj{"input": "FAILEVENT:boom"})
	if last := events[len(events)-1]; last["type"] != "response.failed" {
		t.Error(kindsOf(events))
	}
	_, events = post(t, s, "/v1/responses", obj{"input": "STREAM:6@1 ;; DROP:3"})
	if kinds := kindsOf(events); kinds[len(kinds)-1] != "response.output_text.delta" {
		t.Error(kinds)
	}
	status, body := post(t, s, "/v1/messages", obj{"tools": codexTools, "messages": []any{obj{"role": "user", "content": "FAIL:401"}}})
	if status != 401 || dict(body[0]["error"])["type"] != "authentication_error" {
		t.Errorf("%d %v", status, body)
	}
}

func TestAGateHoldsUntilItIsReleased(t *testing.T) {
	s := Start(t)
	done := make(chan []obj, 1)
	go func() {
		_, events := post(t, s, "/v1/responses", obj{"input": "GATE:g ;; SAY:through"})
		done <- events
	}()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if !s.WaitFor(ctx, func(r []Request) bool { return len(r) == 1 }) {
		t.Fatal("no request came")
	}
	if s.Requests()[0].Outcome != "" {
		t.Fatal("it did not wait")
	}
	s.Release("g")
	select {
	case events := <-done:
		if events[len(events)-1]["type"] != "response.completed" {
			t.Error(kindsOf(events))
		}
	case <-ctx.Done():
		t.Fatal("it still waits")
	}
}

func TestMessagesAnswerWithTextAndToolUse(t *testing.T) {
	s := Start(t)
	tools := []any{obj{"name": "Bash"}}
	messages := []any{obj{"role": "user", "content": []any{
		obj{"type": "text", "text": "<system-reminder>x"}, obj{"type": "text", "text": "THINK:hm ;; RUN:ls ;; SAY:done"}}}}
	_, events := post(t, s, "/v1/messages", obj{"model": "m", "stream": true, "tools": tools, "messages": messages})
	var blocks []string
	for _, e := range events {
		if e["type"] == "content_block_start" {
			b := dict(e["content_block"])
			blocks = append(blocks, str(b["type"])+" "+str(b["name"]))
		}
	}
	if d := cmp.Diff([]string{"thinking ", "tool_use Bash"}, blocks); d != "" {
		t.Error(d)
	}
	messages = append(messages, obj{"role": "assistant", "content": "..."},
		obj{"role": "user", "content": []any{obj{"type": "tool_result", "content": "ok"}}})
	status, body := post(t, s, "/v1/messages", obj{"model": "m", "tools": tools, "messages": messages})
	if status != 200 || dict(arr(body[0]["content"])[0])["text"] != "done" || body[0]["stop_reason"] != "end_turn" {
		t.Errorf("%d %v", status, body)
	}
	if r := s.Requests()[1]; r.Results != 1 || r.Last != "ok" {
		t.Errorf("%+v", r)
	}
}

func TestOnlyTheLoopbackInterfaceIsServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "localhost"} {
		if s, err := Listen(addr, nil); err == nil {
			s.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestACallMayUseWhatEarlierCallsGaveBack(t *testing.T) {
	results := []string{"Wall time: 0.1 s\nOutput:\n{\"terminals\":[{\"id\":\"a\\\"b\",\"n\":2}]}", `[1]`}
	for in, want := range map[string]string{
		`{"t":"${1:terminals.0.id}","n":${1:terminals.0.n}}`: `{"t":"a\"b","n":2}`,
		"first of two: ${2:0}":                               "first of two: 1",
		"${1:terminals.1.id} ${3:x} ${1:terminals.0.id.x}":   "${1:terminals.1.id} ${3:x} ${1:terminals.0.id.x}",
	} {
		if got := fill(in, results); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

package fakemodel

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What OpenCode and Gemini CLI do in a turn with one tool call.
func TestAToolCallAndItsAnswerOverTheOtherAPIs(t *testing.T) {
	s := Start(t)
	user := obj{"role": "user", "content": "RUN:echo hi;; SAY:done"}
	tools := []any{obj{"type": "function", "function": obj{"name": "bash"}}}
	_, events := postStream(t, s, "/v1/chat/completions", obj{"stream": true, "messages": []any{user}, "tools": tools})
	if !strings.Contains(events, `"name":"bash"`) || !strings.Contains(events, `echo hi`) || !strings.Contains(events, `"finish_reason":"tool_calls"`) {
		t.Errorf("chat: %s", events)
	}
	_, events = postStream(t, s, "/v1/chat/completions", obj{"stream": true, "tools": tools, "messages": []any{user, obj{"role": "assistant"}, obj{"role": "tool", "content": "hi"}}})
	if !strings.Contains(events, `"content":"done"`) || !strings.HasSuffix(strings.TrimSpace(events), "data: [DONE]") {
		t.Errorf("chat, after the call: %s", events)
	}

	turn := obj{"role": "user", "parts": []any{obj{"text": "RUN:echo hi;; SAY:done"}}}
	declared := []any{obj{"functionDeclarations": []any{obj{"name": "run_shell_command"}}}}
	_, events = postStream(t, s, "/v1beta/models/m:streamGenerateContent?alt=sse", obj{"contents": []any{turn}, "tools": declared})
	if !strings.Contains(events, `"name":"run_shell_command"`) {
		t.Errorf("gemini: %s", events)
	}
	result := obj{"role": "user", "parts": []any{obj{"functionResponse": obj{"name": "run_shell_command", "response": obj{"output": "hi"}}}}}
	_, events = postStream(t, s, "/v1beta/models/m:streamGenerateContent?alt=sse", obj{"contents": []any{turn, obj{"role": "model"}, result}, "tools": declared})
	if !strings.Contains(events, `"text":"done"`) || !strings.Contains(events, `"finishReason":"STOP"`) {
		t.Errorf("gemini, after the call: %s", events)
	}
	if status, _ := postStream(t, s, "/v1beta/models/m:streamGenerateContent", obj{"contents": []any{obj{"role": "user", "parts": []any{obj{"text": "FAIL:401"}}}}, "tools": declared}); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if n := len(s.Requests()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

// Every request says what persons said before, over each API.
func TestWhatWasSaidBeforeIsKept(t *testing.T) {
	s := Start(t)
	said := func(text string) obj { return obj{"role": "user", "content": text, "parts": []any{obj{"text": text}}} }
	list := []any{said("<environment_context>"), said("first"), said("second"), said("SAY:third")}
	tools := []any{obj{"type": "function", "name": "x", "function": obj{"name": "x"}, "functionDeclarations": []any{obj{"name": "x"}}}}
	for _, path := range []string{"/v1/responses", "/v1/messages", "/v1/chat/completions", "/v1beta/models/m:streamGenerateContent"} {
		postStream(t, s, path, obj{"stream": true, "input": list, "messages": list, "contents": list, "tools": tools})
		all := s.Requests()
		if r := all[len(all)-1]; r.User != "SAY:third" || !slices.Equal(r.Earlier, []string{"first", "second"}) {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

func postStream(t *testing.T, s *Server, path string, body obj) (status int, text string) {
	t.Helper()
	resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(encode(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

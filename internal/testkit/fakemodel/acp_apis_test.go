package fakemodel

import (
	"io"
	"net/http"
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

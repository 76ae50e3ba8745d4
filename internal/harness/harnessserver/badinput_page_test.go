package harnessserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// What a page in a browser can send to the port: whatever it is, it is refused with a code,
// no header lets the page read the answer, and the session behind it goes on as if nothing
// had been. A page never has the token; with one it is refused as well.
func TestBadInputAPageOfABrowserIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	s.create("s")
	working := s.send("s", "PERM; SAY done")
	asked := s.awaitQuestions("s", working, 1)
	request := asked[0].(object)["request_id"].(string)
	page := "http://evil.example.test"
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	bare := func(r *http.Request) { r.Header.Del("Authorization") }
	attacks := []struct {
		name, op, body string
		changes        []func(*http.Request)
	}{
		{"a form", "shutdown", "a=b", []func(*http.Request){bare, set("Origin", page), set("Content-Type", "application/x-www-form-urlencoded")}},
		{"a plain text with JSON in it", "shutdown", "{}", []func(*http.Request){bare, set("Origin", page), set("Content-Type", "text/plain")}},
		{"a file of a form", "answer_question", "--x\r\n\r\n{}\r\n--x--", []func(*http.Request){bare, set("Origin", page), set("Content-Type", "multipart/form-data; boundary=x")}},
		{"a fetch with JSON", "answer_question", `{"session_id":"s","request_id":"` + request + `","option_id":"allow_once"}`, []func(*http.Request){bare, set("Origin", page)}},
		{"a page without an origin", "close_session", `{"session_id":"s"}`, []func(*http.Request){bare, set("Sec-Fetch-Site", "cross-site"), set("Sec-Fetch-Mode", "no-cors")}},
		{"a sandboxed frame", "close_session", `{"session_id":"s"}`, []func(*http.Request){bare, set("Origin", "null")}},
		{"a page that learned the token", "close_session", `{"session_id":"s"}`, []func(*http.Request){set("Origin", page)}},
		{"a page of a rebound name", "close_session", `{"session_id":"s"}`, []func(*http.Request){func(r *http.Request) { r.Host = "evil.example.test" }, set("Origin", page)}},
		{"the question of a browser before", "close_session", "", []func(*http.Request){bare, set("Origin", page), set("Access-Control-Request-Method", "POST"), set("Access-Control-Request-Headers", "content-type"),
			func(r *http.Request) { r.Method = http.MethodOptions }}},
		{"a picture", "ping", "", []func(*http.Request){bare, set("Sec-Fetch-Dest", "image"), func(r *http.Request) { r.Method = http.MethodGet }}},
		{"a socket", "ping", "", []func(*http.Request){bare, set("Origin", page), set("Connection", "Upgrade"), set("Upgrade", "websocket"), func(r *http.Request) { r.Method = http.MethodGet }}},
	}
	for _, a := range attacks {
		var allowed string
		status, text := s.postSeen(a.op, a.body, func(r *http.Request) {
			for _, change := range a.changes {
				change(r)
			}
		}, func(h http.Header) { allowed = h.Get("Access-Control-Allow-Origin") })
		known := false
		for _, code := range []string{"forbidden_origin", "forbidden_host", "unsupported_media_type", "unsupported_method", "unauthorized"} {
			known = known || strings.Contains(text, `"code":"`+code+`"`)
		}
		if status < 400 || status >= 500 || !known || allowed != "" {
			t.Errorf("%s: %d %q %s", a.name, status, allowed, text)
		}
	}
	st := s.must("message_status", object{"session_id": "s", "message_id": working})
	if open := st["questions"].([]any); st["state"] != "waiting_input" || len(open) != 1 || open[0].(object)["request_id"] != request {
		t.Errorf("%v", st)
	}
	s.must("answer_question", object{"session_id": "s", "request_id": request, "option_id": "deny_once"})
	if st := s.await("s", working, "completed"); textOf(st) != "[denied:deny_once]done" {
		t.Errorf("%v", st)
	}
}

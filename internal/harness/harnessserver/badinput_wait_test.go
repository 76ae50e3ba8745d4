package harnessserver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// soon waits until it is so.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// sessionIs waits until the session is in the state and has no work.
func (s *server) sessionIs(id, state string) {
	s.Helper()
	soon(s.T, "session "+id+" is "+state, func() bool {
		st := s.must("message_status", object{"session_id": id})
		return st["state"] == state && st["operation"] == "idle"
	})
}

// sendWhenIdle sends as soon as the session takes a message.
func (s *server) sendWhenIdle(id, text string) string {
	s.Helper()
	var message string
	soon(s.T, "session "+id+" takes a message", func() bool {
		out, code := s.call("send_message", object{"session_id": id, "text": text})
		if code != "" && code != "busy" {
			s.Fatalf("send_message: %s", code)
		}
		message, _ = out["message_id"].(string)
		return code == ""
	})
	return message
}

// awaitQuestions waits until the message has n open questions.
func (s *server) awaitQuestions(id, message string, n int) []any {
	s.Helper()
	var asked []any
	soon(s.T, "the questions are there", func() bool {
		st := s.must("message_status", object{"session_id": id, "message_id": message})
		asked, _ = st["questions"].([]any)
		if st["terminal"] == true {
			s.Fatalf("the message ended: %s", short(st))
		}
		return len(asked) == n
	})
	return asked
}

// running lists the processes whose command line has the word.
func running(t *testing.T, word string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(word)) {
			found = append(found, path)
		}
	}
	return found
}

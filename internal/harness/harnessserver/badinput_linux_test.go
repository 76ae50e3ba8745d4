package harnessserver_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/harness/config"
)

// room bounds the size that a running server's files may have, as a full disk does. It needs
// no rights, and it can be taken back.
func (s *server) room(bytes uint64) {
	s.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		s.Fatal(err)
	}
}

// A full disk: a message that cannot be stored is refused and never reaches its agent; what an
// agent says meanwhile is told to nobody before it is stored, and then whole; reading goes on;
// and a server that dies on the full disk knows the truth at its next start.
func TestBadInputAFullDiskLosesNothingThatWasTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	journal := t.TempDir() + "/journal"
	s.create("s", "--journal", journal)
	told := s.send("s", "hello")
	s.await("s", told, "completed")
	s.create("works")
	working := s.awaitQuestion("works", "PERM; SAY done")
	s.room(1)
	for _, key := range []string{"a", "b"} {
		if _, code := s.call("send_message", object{"session_id": "s", "text": "never heard", "idempotency_key": key}); code != "storage" {
			t.Fatalf("a message that cannot be stored gets %q", code)
		}
	}
	if _, code := s.call("create_session", object{"session_id": "new", "harness": "scripted", "model_id": "default", "cwd": dir, "command": "/bin/true"}); code != "storage" {
		t.Errorf("a session that cannot be stored gets %q", code)
	}
	s.must("ping", object{})
	if st := s.must("message_status", object{"session_id": "s", "message_id": told}); textOf(st) != "echo:hello" {
		t.Errorf("reading on a full disk: %s", short(st))
	}
	st := s.must("message_status", object{"session_id": "works", "message_id": working.message})
	if st["state"] != "waiting_input" {
		t.Errorf("%s", short(st))
	}
	s.must("answer_question", object{"session_id": "works", "request_id": working.request, "option_id": "allow_once"})
	if st := s.must("message_status", object{"session_id": "works", "message_id": working.message, "wait_ms": 500}); st["state"] != "waiting_input" {
		t.Errorf("what is not stored was told: %s", short(st))
	}
	s.room(unix.RLIM_INFINITY)
	soon(t, "the answer is stored", func() bool {
		st := s.must("message_status", object{"session_id": "works", "message_id": working.message})
		return st["state"] == "completed" && strings.HasSuffix(textOf(st), "[allowed:allow_once]done")
	})
	if st := s.await("s", s.send("s", "again"), "completed"); textOf(st) != "echo:again" {
		t.Errorf("%s", short(st))
	}
	if heard, err := os.ReadFile(journal); err != nil || strings.Contains(string(heard), "never heard") {
		t.Errorf("the agent got what was refused: %v", err)
	}

	working = s.awaitQuestion("works", "PERM; SAY done")
	s.room(1)
	s.must("answer_question", object{"session_id": "works", "request_id": working.request, "option_id": "allow_once"})
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	s = startServer(t, dir)
	if st := s.must("message_status", object{"session_id": "s", "message_id": told}); textOf(st) != "echo:hello" {
		t.Errorf("%s", short(st))
	}
	if st := s.must("message_status", object{"session_id": "works", "message_id": working.message}); st["state"] != "failed" || errorCode(st) != "interrupted" {
		t.Errorf("%s", short(st))
	}
	if again := s.must("reopen_session", object{"session_id": "works"}); again["resumed"] != true {
		t.Errorf("%v", again)
	}
	if st := s.await("works", s.send("works", "hello"), "completed"); textOf(st) != "echo:hello" {
		t.Errorf("%s", short(st))
	}
	if info, err := os.Stat(config.DatabaseFile(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

type question struct{ message, request string }

// awaitQuestion sends a message and waits for its one question.
func (s *server) awaitQuestion(id, text string) question {
	s.Helper()
	message := s.sendWhenIdle(id, text)
	asked := s.awaitQuestions(id, message, 1)
	return question{message, asked[0].(object)["request_id"].(string)}
}

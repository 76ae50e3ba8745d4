package harnessserver_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentOf reads it from the system.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	parent, err := strconv.Atoi(strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// dead waits until a process runs no more. Its new parent may be slow to collect it.
func dead(t *testing.T, pid int) {
	t.Helper()
	soon(t, fmt.Sprint("the end of ", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
	})
}

// The small process that holds an agent for the server is killed: the agent goes with it, and
// all that it started, also a child in a session of its own that ignores signals. The session
// says so, the others and the server go on, and a new agent takes up the conversation.
func TestBadInputAKilledRunnerTakesItsWholeTreeWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	s.create("other")
	working := s.send("other", "HOLD")
	agent := int(s.create("s", "--ignore-term", "--stay-open")["launch_info"].(object)["transport_pid"].(float64))
	id := s.send("s", "FORK 3; PERM; SAY x")
	s.awaitQuestions("s", id, 1)
	runner := parentOf(t, agent)
	if runner == s.cmd.Process.Pid || runner <= 1 {
		t.Fatalf("the agent's parent is %d", runner)
	}
	began := time.Now()
	if err := syscall.Kill(runner, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead(t, agent)
	st := s.await("s", id, "failed")
	said, _ := st["partial"].(object)["text"].(string)
	children := spawned.FindAllStringSubmatch(said, -1)
	if len(children) != 3 {
		t.Fatalf("%v", st)
	}
	for _, m := range children {
		pid, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		dead(t, pid)
	}
	t.Logf("all of it was gone after %v", time.Since(began)) // the promise is 2 s
	if errorCode(st) != "transport" || st["error"].(object)["detail"].(object)["lost"] != true {
		t.Errorf("%v", st)
	}
	s.sessionIs("s", "failed")
	if st := s.must("message_status", object{"session_id": "other", "message_id": working}); st["terminal"] != false {
		t.Errorf("%v", st)
	}
	if back := s.must("reopen_session", object{"session_id": "s"}); back["state"] != "ready" || back["resumed"] != true {
		t.Errorf("%v", back)
	}
	if st := s.await("s", s.send("s", "hello"), "completed"); textOf(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	s = startServer(t, dir)
	if st := s.must("message_status", object{"session_id": "s", "message_id": id}); st["state"] != "failed" || errorCode(st) != "transport" {
		t.Errorf("%v", st)
	}
}

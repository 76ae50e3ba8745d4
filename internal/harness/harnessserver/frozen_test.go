package harnessserver_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// H4 b: an agent that is stopped is told, can be closed, and delays nobody else.
func TestH4AStoppedAgentIsToldAndFreezesNobody(t *testing.T) {
	s := startServer(t, t.TempDir())
	pid := int(s.create("frozen")["launch_info"].(object)["transport_pid"].(float64))
	s.create("works")
	id := s.send("frozen", "SPAWN; HOLD")
	s.await("frozen", id, "running")
	if err := syscall.Kill(-pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	status := func(in object) object { return s.must("message_status", in) }
	message, session := object{"session_id": "frozen", "message_id": id}, object{"session_id": "frozen"}
	for status(message)["harness_stopped"] != true || status(session)["harness_stopped"] != true {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("after %v the message is %v, its session %v", time.Since(began), status(message), status(session))
		}
	}
	t.Logf("told after %v", time.Since(began))
	if st := status(message); st["state"] != "running" || st["error"] != nil {
		t.Errorf("it only stands still: %v", st)
	}
	if st := status(object{"session_id": "works"}); st["harness_stopped"] != nil {
		t.Errorf("the other session: %v", st)
	}

	// Somebody closes it while everybody else goes on.
	closed := make(chan time.Duration, 1)
	go func() {
		at := time.Now()
		if status, text := s.post("close_session", `{"session_id":"frozen"}`, nil); status != 200 {
			t.Errorf("closing it: %d %s", status, text)
		}
		closed <- time.Since(at)
	}()
	var pings []time.Duration
	for range 200 {
		at := time.Now()
		s.must("ping", object{})
		pings = append(pings, time.Since(at))
	}
	if st := s.await("works", s.send("works", "hello"), "completed"); st["result"].(object)["text"] != "echo:hello" {
		t.Errorf("%v", st)
	}
	slices.Sort(pings)
	if p99 := pings[198]; p99 > 100*time.Millisecond {
		t.Errorf("meanwhile a ping takes %v", p99)
	}
	if took := <-closed; took > 10*time.Second {
		t.Errorf("closing it took %v", took)
	} else {
		t.Logf("closed in %v; pings: median %v, p99 %v", took, pings[100], pings[198])
	}
	gone(t, pid, time.Second)
	if err := syscall.Kill(-pid, 0); err != syscall.ESRCH {
		t.Errorf("of its group somebody is left: %v", err)
	}
	if st := status(message); st["state"] != "cancelled" || st["harness_stopped"] != nil {
		t.Errorf("%v", st)
	}
	if _, code := s.call("close_session", session); code != "" {
		t.Errorf("closing it again: %s", code)
	}
}

// One that is continued goes on as if nothing had been.
func TestAContinuedAgentGoesOn(t *testing.T) {
	s := startServer(t, t.TempDir())
	pid := int(s.create("s")["launch_info"].(object)["transport_pid"].(float64))
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	id := s.send("s", "hello")
	in := object{"session_id": "s", "message_id": id}
	for deadline := time.Now().Add(10 * time.Second); s.must("message_status", in)["harness_stopped"] != true; {
		if time.Now().After(deadline) {
			t.Fatalf("%v", s.must("message_status", in))
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if st := s.await("s", id, "completed"); st["result"].(object)["text"] != "echo:hello" || st["harness_stopped"] != nil {
		t.Errorf("%v", st)
	}
}

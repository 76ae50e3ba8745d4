package dispatch_test

import (
	"bytes"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// A person began a new conversation in the pane, whose id the agent has not written yet: it
// is another thread, so the task belongs to another Session (spec parts 1.3 and 2.10).
func TestAThreadThatProvablyDoesNotExistYetIsAnotherSession(t *testing.T) {
	r := newRig(t)
	observe := func(o turn.Observation) {
		t.Helper()
		o.NativeTurnID, o.Source = "n", "rollout"
		if err := r.Observe(t.Context(), r.blocking(), o); err != nil {
			t.Fatal(err)
		}
	}
	run := func(text, thread string) turn.Turn {
		t.Helper()
		done := make(chan turn.Turn, 1)
		go func() {
			res, err := r.send(text)
			if err != nil {
				t.Error(err)
			}
			done <- res.Turn
		}()
		r.agent.rec.WaitBytes(func(b []byte) bool { return len(b) > r.agent.taken() && bytes.HasSuffix(b, []byte("\r")) })
		r.agent.take()
		observe(turn.Observation{Kind: turn.ObsAccepted, ThreadID: thread})
		observe(turn.Observation{Kind: turn.ObsCompleted})
		return <-done
	}
	first := run("one", "thread-1")
	again := run("two", "thread-1")
	if again.SessionID != first.SessionID {
		t.Errorf("the same thread got the Sessions %s and %s", first.SessionID, again.SessionID)
	}
	r.agent.becomes(true)
	fresh := run("three", "thread-2")
	if fresh.SessionID == first.SessionID {
		t.Error("a new thread got the Session of the old one")
	}
	r.agent.becomes(false) // a person resumed the old one
	if back := run("four", "thread-1"); back.SessionID != first.SessionID {
		t.Errorf("the old thread got the Session %s, it was %s", back.SessionID, first.SessionID)
	}
	if _, err := r.Send(t.Context(), dispatch.SendInput{CallID: "c5", Request: "five", SessionID: fresh.SessionID}); !fault.Is(err, turn.CodeTerminal) {
		t.Errorf("a Session whose thread is not shown: %v", err)
	}
}

// blocking is the one Turn that keeps the terminal.
func (r *rig) blocking() (id ids.TurnID) {
	r.t.Helper()
	l, err := r.List(r.t.Context(), dispatch.ListInput{})
	if err != nil || len(l.Terminals) != 1 || l.Terminals[0].CurrentTurn == nil {
		r.t.Fatalf("%+v %v", l, err)
	}
	return l.Terminals[0].CurrentTurn.TurnID
}

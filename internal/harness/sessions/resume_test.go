package sessions_test

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
)

// Case 72: a session that lost its agent says how its conversation goes on, and a new session
// takes it up.
func TestANewSessionTakesUpAConversationOfTheAgent(t *testing.T) {
	w := newWorld(t)
	before := w.create("a")
	w.say("a", "hello")
	again := w.launchOf("b")
	again.ResumeSessionID = before.AgentSessionID
	_, err := w.svc.Create(w.ctx, again)
	w.refused(err, harness.Busy) // two agents in one conversation would spoil it
	if st, err := w.svc.Status(w.ctx, "b"); err == nil {
		t.Errorf("a refused session is there: %s", text(st))
	}

	if st := w.say("a", "EXIT 7"); st.State != harness.MessageFailed {
		t.Fatalf("%s", text(st))
	}
	_, err = w.svc.Send(w.ctx, "a", "hello", "", false)
	w.refused(err, harness.SessionFailed)
	d := harness.DetailOf(err)
	if d["next_action"] != "create_session" || d["resume_session_id"] != before.AgentSessionID {
		t.Fatalf("%v", d)
	}
	again.ResumeSessionID = d["resume_session_id"].(string)
	after, err := w.svc.Create(w.ctx, again)
	if err != nil || after.State != harness.StateReady || after.AgentSessionID != before.AgentSessionID || after.Resumed == nil || !*after.Resumed {
		t.Fatalf("%v %s", err, text(after))
	}
	if !strings.Contains(w.read(w.journal), `"session/resume"`) {
		t.Error("the agent was asked for no earlier session")
	}
	if st := w.say("b", "hello again"); st.Result == nil || st.Result.Text != "echo:hello again" {
		t.Errorf("%s", text(st))
	}
}

// An id that the agent does not know, and an agent that takes nothing up, begin a new
// conversation and say so.
func TestAConversationThatIsNotThereBeginsAnew(t *testing.T) {
	w := newWorld(t)
	for id, flags := range map[string][]string{"unknown": nil, "unable": {"--no-load", "--no-resume"}} {
		want := w.launchOf(id, flags...)
		want.ResumeSessionID = "no-such-session"
		st, err := w.svc.Create(w.ctx, want)
		if err != nil || st.Resumed == nil || *st.Resumed || st.AgentSessionID == "" || st.AgentSessionID == want.ResumeSessionID {
			t.Fatalf("%s: %v %s", id, err, text(st))
		}
		if st := w.say(id, "hello"); st.Result == nil || st.Result.Text != "echo:hello" {
			t.Errorf("%s: %s", id, text(st))
		}
	}
	if st := w.create("plain"); st.Resumed != nil {
		t.Errorf("%s", text(st))
	}
}

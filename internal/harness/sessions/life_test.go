package sessions_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// Case 68.
func TestAnIdleSessionIsClosedAndOneThatAsksIsNot(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Sessions.IdleTimeoutSeconds, c.Sessions.ReapIntervalSeconds = 1, 1 })
	w.create("asks")
	st := w.asked("asks", "PERM", 1)
	w.create("idle")
	w.session("idle", "closed", func(st sessions.SessionStatus) bool { return st.State == harness.StateClosed })
	w.answer("asks", st.Questions[0].ID, harness.Answer{OptionID: st.Questions[0].Options[0].ID})
	if end := w.end("asks", st.MessageID); end.State != harness.MessageCompleted {
		t.Errorf("%s", text(end))
	}
}

// Case 73.
func TestOptionsChangeWhenTheAgentSaysSo(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st, applied, err := w.svc.SetOptions(w.ctx, "s", sessions.Change{ModelID: "fake-2", ThinkingLevel: "high", PermissionMode: harness.ModeRead})
	if err != nil || st.ModelID != "fake-2" || st.ThinkingLevel != "high" || st.PermissionMode != harness.ModeRead || len(applied) != 3 {
		t.Fatalf("%v %s %s", err, text(applied), text(st))
	}
	_, _, err = w.svc.SetOptions(w.ctx, "s", sessions.Change{ModelID: "nobody"})
	w.refused(err, harness.InvalidModel)
	if st, err := w.svc.Status(w.ctx, "s"); err != nil || st.ModelID != "fake-2" || st.Operation != harness.SlotIdle {
		t.Errorf("%v %s", err, text(st))
	}
}

// Case 36.
func TestAnAgentOfAnotherProtocolIsEndedAndForgotten(t *testing.T) {
	w := newWorld(t)
	_, err := w.svc.Create(w.ctx, w.launchOf("s", "--protocol", "2"))
	w.refused(err, harness.ProtocolUnsupported)
	_, err = w.svc.Status(w.ctx, "s")
	w.refused(err, harness.UnknownSession)
	if n := w.svc.Live(); n != 0 {
		t.Errorf("%d sessions are live", n)
	}
}

// Secret values are stored nowhere, so a caller gives them again.
func TestASecretValueIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	l := w.launchOf("s")
	l.Env = map[string]string{"FOO_TOKEN": "open-sesame", "PLAIN": "x"}
	if _, err := w.svc.Create(w.ctx, l); err != nil {
		t.Fatal(err)
	}
	if st := w.say("s", "ENV FOO_TOKEN"); st.Result.Text != "open-sesame" {
		t.Fatalf("%s", text(st))
	}
	if _, err := w.svc.CloseSession(w.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	_, err := w.svc.Reopen(w.ctx, sessions.Again{SessionID: "s"})
	w.refused(err, harness.InvalidParam)
	if _, err := w.svc.Reopen(w.ctx, sessions.Again{SessionID: "s", Env: map[string]string{"FOO_TOKEN": "other"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"FOO_TOKEN": "other", "PLAIN": "x"} {
		if st := w.say("s", "ENV "+name); st.Result.Text != want {
			t.Errorf("%s: %s", name, text(st.Result))
		}
	}
}

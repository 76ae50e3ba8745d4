package sessions_test

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// told is the status of a login now.
func (f front) told() sessions.AuthStatus {
	f.Helper()
	st, err := f.svc.AuthStatus(f.ctx, f.launch.SessionID)
	if err != nil {
		f.Fatal(err)
	}
	if waited, err := f.svc.AwaitAuth(f.ctx, f.launch.SessionID, sessions.Wait{}); err != nil || text(waited) != text(st) {
		f.Fatalf("%v %s, but %s", err, text(st), text(waited))
	}
	return st
}

// An idle agent that can say who is logged in is asked. Its no is told, and takes nothing
// from a session that works; of an account only its names are shown.
func TestAnAgentIsAskedWhoIsLoggedIn(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	f.launch.Harness = "codex"
	f.starts()
	if st := f.told(); !*st.Authenticated || st.State != harness.AuthReady || st.Account != nil { // it has no such method
		t.Errorf("%s", text(st))
	}
	f.write("status", `{"type":"chat-gpt","email":"someone@example.test","name":" ","token":"abcdef0123456789","plan":{"name":"x"}}`)
	st := f.told()
	if !*st.Authenticated || st.State != harness.AuthReady || len(st.Account) != 1 || st.Account["email"] != "someone@example.test" || strings.Contains(text(st), "abcdef") {
		t.Errorf("%s", text(st))
	}
	for _, odd := range []string{`null`, `[]`, `{}`, `"x"`, `{"type":7}`} {
		f.write("status", odd)
		if st := f.told(); !*st.Authenticated || st.State != harness.AuthReady || st.Account != nil {
			t.Errorf("%s: %s", odd, text(st))
		}
	}
	f.write("status", `{"type":"unauthenticated","email":"someone@example.test"}`)
	if st := f.told(); *st.Authenticated || st.State != harness.AuthNone || st.Account != nil {
		t.Errorf("%s", text(st))
	}
	if now, err := w.svc.Status(w.ctx, "s"); err != nil || now.State != harness.StateReady {
		t.Errorf("%v %s", err, text(now))
	}
	message := w.send("s", "HOLD") // who works is not disturbed
	w.await("s", message, "running", func(st sessions.MessageStatus) bool { return st.State == harness.MessageRunning })
	if st := f.told(); !*st.Authenticated {
		t.Errorf("%s", text(st))
	}
	if _, _, err := w.svc.Cancel(w.ctx, "s", message); err != nil {
		t.Fatal(err)
	}
	w.idle("s")
	f.write("status", "never")
	if st := f.told(); !*st.Authenticated || st.State != harness.AuthReady {
		t.Errorf("%s", text(st))
	}
}

// A session that waits for its login is opened by a login alone, whatever the agent says; and
// while one runs nobody is asked.
func TestWhoIsLoggedInOpensNoSession(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	f.launch.Harness = "codex"
	f.write("status", `{"type":"chat-gpt","email":"someone@example.test"}`)
	f.logsIn("wait " + f.file("ready"))
	if st := f.told(); *st.Authenticated || st.State != harness.AuthRunning || st.Account != nil {
		t.Errorf("%s", text(st))
	}
	f.ready("s")
	if st := f.told(); !*st.Authenticated || st.Account == nil {
		t.Errorf("%s", text(st))
	}
}

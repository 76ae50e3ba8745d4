package sessions_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// An agent whose login was lost says so to a change of its options: the session demands a
// login like one whose prompt was refused, and a login makes it whole.
func TestAChangeOfOptionsFindsOutThatTheLoginIsLost(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	f.starts()
	f.write("refuse", "")
	f.remove("login")
	_, _, err := w.svc.SetOptions(w.ctx, "s", sessions.Change{ThinkingLevel: "high"})
	w.refused(err, harness.AuthRequired)
	d := harness.DetailOf(err)
	if methods, _ := d["methods"].([]harness.Method); d["session_id"] != "s" || d["next_action"] != "authenticate" || len(methods) != 1 {
		t.Fatalf("%s", text(d))
	}
	if st, err := w.svc.Status(w.ctx, "s"); err != nil || st.State != harness.StateAuthRequired || st.Operation != harness.SlotIdle {
		t.Fatalf("%v %s", err, text(st))
	}
	_, err = w.svc.Send(w.ctx, "s", "x", "", false)
	w.refused(err, harness.AuthRequired)

	f.remove("refuse")
	w.choose("s", w.authenticate("s"))
	w.auth("s", "logged in", inState(harness.AuthReady))
	if st, _, err := w.svc.SetOptions(w.ctx, "s", sessions.Change{ThinkingLevel: "high"}); err != nil || st.ThinkingLevel != "high" {
		t.Errorf("%v %s", err, text(st))
	}

	f.write("refuse", "") // and after a login that worked it is no different
	_, _, err = w.svc.SetOptions(w.ctx, "s", sessions.Change{ThinkingLevel: "low"})
	w.refused(err, harness.AuthRequired)
	if st, err := w.svc.AuthStatus(w.ctx, "s"); err != nil || st.State != harness.AuthNone || *st.Authenticated {
		t.Errorf("%v %s", err, text(st))
	}
}

// A login is proved by a session that opens. That the agent refuses what the session was to
// be set to is another matter, and can be mended.
func TestALoginIsProvedAlsoWhenAnOptionIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  func(*harness.Launch)
		code  string
		mend  sessions.Change
	}{
		"model": {nil, func(l *harness.Launch) { l.ModelID = "no-such-model" }, "invalid_model", sessions.Change{ModelID: "fake-2"}},
		"model of the older form": {[]string{"--legacy"}, func(l *harness.Launch) { l.ModelID = "no-such-model" }, "invalid_model",
			sessions.Change{ModelID: "fake-2"}},
		"effort": {nil, func(l *harness.Launch) { l.ThinkingLevel = "endless" }, "invalid_thinking_level", sessions.Change{ThinkingLevel: "low"}},
		"mode":   {[]string{"--no-options"}, func(l *harness.Launch) { l.PermissionMode = harness.ModeRead }, "invalid_mode", sessions.Change{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := w.launchOf("s", append([]string{"--auth-required"}, c.flags...)...)
			c.want(&l)
			_, err := w.svc.Create(w.ctx, l)
			w.refused(err, harness.AuthRequired)
			w.choose("s", w.authenticate("s"))
			st := w.auth("s", "over", func(st sessions.AuthStatus) bool { return st.State.Terminal() })
			if st.State != harness.AuthReady || !*st.Authenticated || st.Error == nil || string(st.Error.Code) != c.code {
				t.Fatalf("%s", text(st))
			}
			now, err := w.svc.Status(w.ctx, "s")
			if err != nil || now.State != harness.StateReady || now.Error == nil || string(now.Error.Code) != c.code {
				t.Fatalf("%v %s", err, text(now))
			}
			if now.ModelID == "no-such-model" || now.ThinkingLevel == "endless" || now.PermissionMode == harness.ModeRead {
				t.Errorf("it claims what was refused: %s", text(now))
			}
			if st := w.say("s", "hello"); st.State != harness.MessageCompleted {
				t.Errorf("%s", text(st))
			}
			if c.mend == (sessions.Change{}) {
				return
			}
			w.idle("s")
			if now, _, err = w.svc.SetOptions(w.ctx, "s", c.mend); err != nil || now.Error != nil {
				t.Errorf("%v %s", err, text(now))
			}
			if st, err := w.svc.AuthStatus(w.ctx, "s"); err != nil || st.Error != nil {
				t.Errorf("%v %s", err, text(st))
			}
		})
	}
}

// A demand for a login in the middle of the options is a demand for a login.
func TestALoginThatTheOptionsRefuseIsNone(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	f.launch.ModelID = "fake-2"
	f.write("refuse", "")
	f.logsIn()
	if st := w.auth("s", "failed", inState(harness.AuthStateFailed)); st.Error == nil || st.Error.Code != harness.AuthFailed || *st.Authenticated {
		t.Errorf("%s", text(st))
	}
}

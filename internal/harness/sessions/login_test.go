package sessions_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// loggedOut creates a session whose agent demands a login.
func (w *world) loggedOut(id string, flags ...string) {
	w.Helper()
	_, err := w.svc.Create(w.ctx, w.launchOf(id, append([]string{"--auth-required"}, flags...)...))
	w.refused(err, harness.AuthRequired)
	if d := harness.DetailOf(err); d["session_id"] != id || d["next_action"] != "authenticate" {
		w.Fatalf("%s", text(d))
	}
}

func (w *world) authenticate(id string) sessions.AuthStatus {
	w.Helper()
	st, err := w.svc.Authenticate(w.ctx, id, "")
	if err != nil {
		w.Fatal(err)
	}
	return st
}

// auth waits until the login is as wanted.
func (w *world) auth(id, what string, ok func(sessions.AuthStatus) bool) sessions.AuthStatus {
	w.Helper()
	var last sessions.AuthStatus
	w.session(id, what, func(sessions.SessionStatus) bool {
		st, err := w.svc.AuthStatus(w.ctx, id)
		if err != nil && !fault.Is(err, harness.AuthRateLimited) {
			w.Fatal(err)
		}
		last = st
		return ok(st)
	})
	return last
}

func inState(s harness.AuthState) func(sessions.AuthStatus) bool {
	return func(st sessions.AuthStatus) bool { return st.State == s }
}

// choose answers the question of the method with the first that is offered.
func (w *world) choose(id string, st sessions.AuthStatus) {
	w.Helper()
	if st.State != harness.AuthMethodSelection || len(st.Questions) != 1 || len(st.Questions[0].Options) == 0 {
		w.Fatalf("no choice of a method: %s", text(st))
	}
	q := st.Questions[0]
	w.answer(id, q.ID, harness.Answer{OptionID: q.Options[0].ID})
}

// Cases 49, 50 and 51: a login in rounds, every round a question of the session.
func TestALoginIsProvedByASessionThatOpens(t *testing.T) {
	for _, flag := range []string{"--auth-url-stdout", "--auth-url-notify"} {
		t.Run(flag, func(t *testing.T) {
			w := newWorld(t)
			ready := filepath.Join(w.dir, "ready")
			w.loggedOut("s", flag, "--ready-file", ready)
			w.choose("s", w.authenticate("s"))
			st := w.auth("s", "asking for a page", func(st sessions.AuthStatus) bool {
				return len(st.Questions) == 1 && st.Questions[0].Kind == harness.AskURL
			})
			q := st.Questions[0]
			if strings.ContainsAny(q.URL, "\x1b \n") || !strings.HasPrefix(q.URL, "https://") { // case 53
				t.Fatalf("the page is %q", q.URL)
			}
			w.answer("s", q.ID, harness.Answer{Content: json.RawMessage(`{"opened":true}`)})
			if st := w.authenticate("s"); st.State != harness.AuthRunning || *st.Authenticated {
				t.Fatalf("opening a page is no login: %s", text(st))
			}
			if err := os.WriteFile(ready, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if st := w.auth("s", "logged in", inState(harness.AuthReady)); !*st.Authenticated {
				t.Errorf("%s", text(st))
			}
			if st := w.say("s", "hello"); st.State != harness.MessageCompleted {
				t.Errorf("%s", text(st))
			}
		})
	}
}

// Case 52.
func TestALoginThatChangesNothingIsFailed(t *testing.T) {
	w := newWorld(t)
	w.loggedOut("s", "--auth-noop")
	w.choose("s", w.authenticate("s"))
	if st := w.auth("s", "failed", inState(harness.AuthStateFailed)); st.Error == nil || st.Error.Code != harness.AuthFailed || *st.Authenticated {
		t.Errorf("%s", text(st))
	}
	_, err := w.svc.Send(w.ctx, "s", "x", "", false)
	w.refused(err, harness.AuthRequired)
}

// Case 54.
func TestLoginsAreLimitedAlsoAfterARestart(t *testing.T) {
	w := newWorld(t, func(c *config.Config) {
		c.Authentication.RateLimit = config.RateLimit{MinIntervalSeconds: 0, MaxAttempts: 2, WindowSeconds: 86400}
	})
	try := func(id string, barred bool) sessions.AuthStatus {
		t.Helper()
		w.loggedOut(id, "--auth-noop")
		q := w.authenticate(id).Questions[0]
		_, err := w.svc.Answer(w.ctx, id, q.ID, "", harness.Answer{OptionID: q.Options[0].ID})
		if !barred && err != nil || barred && (!fault.Is(err, harness.AuthRateLimited) || harness.DetailOf(err)["retry_after_seconds"] == nil) {
			t.Fatalf("%v %v", err, harness.DetailOf(err))
		}
		st := w.auth(id, "over", func(st sessions.AuthStatus) bool { return st.State.Terminal() })
		if _, err := w.svc.CloseSession(w.ctx, id); err != nil {
			t.Fatal(err)
		}
		return st
	}
	try("a", false)
	try("b", false)
	w.stop()
	w.start()
	st := try("c", true) // who answers is told at once
	if st.State != harness.AuthLimited || st.Error.Code != harness.AuthRateLimited || st.Error.Detail["retry_after_seconds"] == nil {
		t.Fatalf("%s", text(st))
	}
}

// Case 55.
func TestALoginThatNeverEndsClosesItsSession(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Authentication.TimeoutSeconds = 1 })
	w.loggedOut("s", "--auth-hang")
	w.choose("s", w.authenticate("s"))
	st := w.session("s", "closed", func(st sessions.SessionStatus) bool { return st.State == harness.StateClosed })
	if st.Error == nil || st.Error.Code != harness.AuthTimedOut {
		t.Errorf("%s", text(st))
	}
	w.stop()
	w.start() // it is what happened, also for the next server
	if st := w.auth("s", "timed out", inState(harness.AuthStateTimedOut)); st.Error == nil || st.Error.Code != harness.AuthTimedOut || len(st.Questions) != 0 {
		t.Errorf("%s", text(st))
	}
}

// Case 56.
func TestAKeyIsGivenToTheAgentAndKeptNowhere(t *testing.T) {
	const key = "open-sesame-4711"
	w := newWorld(t)
	l := w.launchOf("s", "--auth-required", "--auth-token")
	for i, a := range l.Args { // the agent's own journal is no file of ours
		if a == w.journal {
			l.Args[i] = filepath.Join(w.cwd, "journal")
		}
	}
	_, err := w.svc.Create(w.ctx, l)
	w.refused(err, harness.AuthRequired)
	st := w.authenticate("s")
	q := st.Questions[0]
	for _, o := range q.Options {
		if strings.Contains(strings.ToLower(o.ID), "key") || strings.Contains(strings.ToLower(o.ID), "token") {
			w.answer("s", q.ID, harness.Answer{OptionID: o.ID})
		}
	}
	st = w.auth("s", "asking for the key", func(st sessions.AuthStatus) bool {
		return len(st.Questions) == 1 && st.Questions[0].Kind == harness.AskAuthToken
	})
	if !st.Questions[0].Sensitive {
		t.Error("the question is not marked")
	}
	w.answer("s", st.Questions[0].ID, harness.Answer{Content: json.RawMessage(`{"token":"` + key + `"}`)})
	st = w.auth("s", "logged in", inState(harness.AuthReady))
	if strings.Contains(text(st), key) || strings.Contains(text(w.log("s")), key) {
		t.Error("the key is shown")
	}
	w.stop()
	err = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(w.read(path), key) {
			t.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Spec part 2.8: one login for one target, and a person may say no.
func TestOneLoginAtATimeForOneTarget(t *testing.T) {
	w := newWorld(t)
	w.loggedOut("a", "--auth-hang")
	w.loggedOut("b", "--auth-hang")
	st := w.authenticate("a")
	if again := w.authenticate("a"); len(again.Questions) != 1 || again.Questions[0].ID != st.Questions[0].ID {
		t.Error("a repeated call began another login")
	}
	_, err := w.svc.Authenticate(w.ctx, "b", "")
	w.refused(err, harness.AuthInProgress)
	if harness.DetailOf(err)["poll_after_seconds"] == nil {
		t.Errorf("%s", text(harness.DetailOf(err)))
	}
	w.answer("a", st.Questions[0].ID, harness.Answer{Word: harness.AnswerReject})
	if st := w.auth("a", "cancelled", inState(harness.AuthCancelled)); len(st.Questions) != 0 {
		t.Errorf("%s", text(st))
	}
	w.authenticate("b")
}

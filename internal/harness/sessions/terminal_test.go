package sessions_test

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// inTerminal creates a session whose agent wants a login in a terminal, and begins it.
func (w *world) inTerminal(id, style string) sessions.AuthStatus {
	w.Helper()
	_, err := w.svc.Create(w.ctx, w.launchOf(id, "--auth-required", "--auth-terminal", "--login-state", filepath.Join(w.dir, "login-of-"+id), "--login-style", style))
	w.refused(err, harness.AuthRequired)
	st := w.authenticate(id)
	for _, m := range st.Methods {
		if m.Type == "terminal" && !m.Supported {
			w.Fatalf("%s", text(st))
		}
	}
	w.answer(id, st.Questions[0].ID, harness.Answer{OptionID: "fake-terminal"})
	return st
}

// says waits until the login program asks and has said the words.
func (w *world) says(id, words string) harness.Question {
	w.Helper()
	st := w.auth(id, "asking: "+words, func(st sessions.AuthStatus) bool {
		if st.State.Terminal() {
			w.Fatalf("the login ended: %s", text(st))
		}
		return len(st.Questions) == 1 && strings.Contains(st.Questions[0].Message, words)
	})
	if q := st.Questions[0]; q.Kind != harness.AskAuthTerminal || !q.Sensitive || st.State != harness.AuthWaiting || !strings.Contains(st.Output, words) {
		w.Fatalf("%s", text(st))
	}
	return st.Questions[0]
}

func (w *world) enters(id string, q harness.Question, content string) {
	w.Helper()
	w.answer(id, q.ID, harness.Answer{Content: json.RawMessage(content)})
}

// A login that needs a terminal: what its program says is read, keys and lines are given, and
// only an agent that opens a session is logged in.
func TestALoginInATerminal(t *testing.T) {
	w := newWorld(t)
	w.inTerminal("s", "menu")
	q := w.says("s", "How?\n> subscription\n  console")
	if strings.Contains(q.Message, "loading") || strings.Contains(q.Message, "\x1b") {
		t.Errorf("%q", q.Message)
	}
	for _, wrong := range []string{`{"input":"a\u0003"}`, `{"key":"f13"}`, `{"text":"x"}`} {
		_, err := w.svc.Answer(w.ctx, "s", q.ID, "", harness.Answer{Content: json.RawMessage(wrong)})
		w.refused(err, harness.InvalidResponse)
	}
	w.enters("s", q, `{"input":"","key":"down"}`)
	q = w.says("s", "How?") // it says nothing to a key alone, so the same is asked again
	w.enters("s", q, `{}`)
	q = w.says("s", "paste the code:")
	if !strings.Contains(q.Message, "console it is") || !strings.Contains(q.Message, "Page: https://login.example.test/device") {
		t.Errorf("%q", q.Message)
	}
	w.enters("s", q, `{"input":"open-sesame-4711"}`)
	if st := w.auth("s", "logged in", inState(harness.AuthReady)); !*st.Authenticated || !strings.Contains(st.Output, "Logged in.") {
		t.Errorf("%s", text(st))
	}
	if st := w.say("s", "hello"); st.Result == nil || st.Result.Text != "echo:hello" {
		t.Errorf("%s", text(st))
	}
}

// What is entered and what is a key is shown to nobody and is in no file of ours.
func TestWhatIsEnteredInATerminalIsKeptNowhere(t *testing.T) {
	const code = "open-sesame-4711"
	w := newWorld(t)
	w.inTerminal("s", "echo")
	w.enters("s", w.says("s", "paste the code:"), `{"input":"`+code+`"}`)
	q := w.says("s", "Enter it again:")
	if strings.Contains(q.Message, code) || strings.Contains(q.Message, "abc123456789") || !strings.Contains(q.Message, "you entered [entered]") {
		t.Errorf("%q", q.Message)
	}
	w.enters("s", q, `{"input":"`+code+`"}`)
	st := w.auth("s", "logged in", inState(harness.AuthReady))
	if all := text(st) + text(w.log("s")); strings.Contains(all, code) || strings.Contains(all, "abc123456789") {
		t.Error("a secret is shown")
	}
	w.stop()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(w.read(path), code) {
			t.Errorf("the code is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

var pids = regexp.MustCompile(`\[(?:self|spawned):(\d+)\]`)

// However a login program is ended, nothing of it is left, also not a child that ignores every
// signal in a session of its own; the session says what became of the login.
func TestALoginProgramEndsWithItsWholeTree(t *testing.T) {
	for name, c := range map[string]struct {
		limit config.Seconds
		end   func(w *world, q harness.Question)
		state harness.SessionState
		auth  harness.AuthState
	}{
		"a person says no": {600, func(w *world, q harness.Question) { w.answer("s", q.ID, harness.Answer{Word: harness.AnswerReject}) }, harness.StateAuthRequired, harness.AuthCancelled},
		"the session is closed": {600, func(w *world, q harness.Question) {
			if _, err := w.svc.CloseSession(w.ctx, "s"); err != nil {
				w.Fatal(err)
			}
		}, harness.StateClosed, harness.AuthNone},
		"it takes too long": {4, func(w *world, q harness.Question) {}, harness.StateClosed, harness.AuthStateTimedOut},
		"the server ends":   {600, func(w *world, q harness.Question) { w.stop(); w.start() }, harness.StateClosed, harness.AuthNone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(cfg *config.Config) { cfg.Authentication.TimeoutSeconds = c.limit })
			w.inTerminal("s", "hang")
			q := w.says("s", "waiting [self:")
			c.end(w, q)
			st := w.session("s", "over", func(st sessions.SessionStatus) bool { return st.State == c.state })
			if late := c.limit < 600; late != (st.Error != nil && st.Error.Code == harness.AuthTimedOut) {
				t.Errorf("%s", text(st))
			}
			found := pids.FindAllStringSubmatch(q.Message, -1)
			if len(found) != 2 {
				t.Fatalf("%q", q.Message)
			}
			for _, m := range found {
				pid, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				w.gone(pid)
			}
			if st := w.auth("s", "over", inState(c.auth)); len(st.Questions) != 0 {
				t.Errorf("%s", text(st))
			}
		})
	}
}

// A login program that fails, cannot start, floods, or ends well without a login.
func TestALoginProgramThatFailsSaysWhy(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Authentication.RateLimit = config.RateLimit{} })
	w.inTerminal("fails", "echo")
	w.enters("fails", w.says("fails", "paste the code:"), `{}`)
	st := w.auth("fails", "failed", inState(harness.AuthStateFailed))
	if st.Error == nil || st.Error.Code != harness.AuthFailed || st.Error.Detail["exit_code"] != 1 || !strings.Contains(text(st.Error.Detail), "no code") || *st.Authenticated {
		t.Errorf("%s", text(st))
	}
	again, err := w.svc.Authenticate(w.ctx, "fails", "fake-terminal") // and it can be tried again
	if err != nil || !again.State.InFlight() {
		t.Fatalf("%v %s", err, text(again))
	}
	w.enters("fails", w.says("fails", "paste the code:"), `{"input":"right"}`)
	w.enters("fails", w.says("fails", "Enter it again:"), `{"input":"right"}`)
	w.auth("fails", "logged in", inState(harness.AuthReady))

	w.inTerminal("floods", "flood")
	if st := w.auth("floods", "failed", inState(harness.AuthStateFailed)); st.Error == nil || st.Error.Code != harness.OutputLimit || len(st.Output) > 8<<10 {
		t.Errorf("%s", text(st))
	}
}

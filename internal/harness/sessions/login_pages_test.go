package sessions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// asksFor waits until the login asks to open a page, in a question as wanted.
func (w *world) asksFor(id, what string, ok func(harness.Question) bool) harness.Question {
	w.Helper()
	st := w.auth(id, "asking for "+what, func(st sessions.AuthStatus) bool {
		if st.State.Terminal() {
			w.Fatalf("the login ended: %s", text(st))
		}
		return len(st.Questions) == 1 && ok(st.Questions[0])
	})
	if st.State != harness.AuthWaiting {
		w.Fatalf("%s", text(st))
	}
	return st.Questions[0]
}

func anyQuestion(harness.Question) bool { return true }

// ready lets a login that waits go on, and sees it through.
func (f front) ready(id string) {
	f.Helper()
	f.write("ready", "")
	f.auth(id, "logged in", inState(harness.AuthReady))
}

// A page in a notification is read from what the JSON says, not from how it is written.
func TestAPageInANotificationIsWhole(t *testing.T) {
	for name, params := range map[string]string{
		"escaped":           `{"url":"https://login.example.test/a?b=1\u0026c=2"}`,
		"slashes":           `{"url":"https:\/\/login.example.test\/a?b=1\u0026c=2"}`,
		"deep in an object": `{"n":1,"a":[null,true,{"b":{"text":"Open https://login.example.test/a?b=1&c=2, please."}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := w.front("s")
			f.logsIn(`out {"jsonrpc":"2.0","method":"_fake/note","params":{"n":"nothing"}}`,
				`out {"jsonrpc":"2.0","method":"_fake/authUrl","params":`+params+`}`, "wait "+f.file("ready"))
			q := w.asksFor("s", "a page", anyQuestion)
			if q.Kind != harness.AskURL || q.URL != "https://login.example.test/a?b=1&c=2" || strings.Contains(q.Message, "nothing") {
				t.Errorf("%s", text(q))
			}
			f.ready("s")
		})
	}
}

// What is nested without end is looked at no further.
func TestANotificationIsReadToADepth(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	deep := strings.Repeat(`[`, 200) + `"https://too.deep.test/"` + strings.Repeat(`]`, 200)
	f.logsIn(`out {"jsonrpc":"2.0","method":"_fake/authUrl","params":{"deep":`+deep+`,"url":"https://login.example.test/"}}`, "wait "+f.file("ready"))
	if q := w.asksFor("s", "a page", anyQuestion); q.URL != "https://login.example.test/" {
		t.Errorf("%s", text(q))
	}
	f.ready("s")
}

// An agent that names pages without end is heard for the first twenty.
func TestThePagesOfALoginAreBounded(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	var script []string
	for i := range 30 {
		script = append(script, fmt.Sprintf("out see https://login.example.test/%d", i))
	}
	f.logsIn(append(script, "wait "+f.file("ready"))...)
	w.session("s", "heard out", func(sessions.SessionStatus) bool { return w.logged("s", harness.EventStray) == 30 })
	st := w.auth("s", "asking", func(st sessions.AuthStatus) bool { return len(st.Questions) > 0 })
	if n := len(st.Questions); n != 20 {
		t.Errorf("%d questions", n)
	}
	f.ready("s")
}

// A page on the error output is seen like one on the output, and with it the lines around it:
// the code that it wants is often on a line of its own.
func TestAPageAndItsCodeAreSeenWhereverTheyArePrinted(t *testing.T) {
	const page = "https://login.example.test/device?state=x&token=abcdef0123456789"
	for _, where := range []string{"out", "err"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			f := w.front("s")
			f.logsIn(where+" API_KEY=sk-abc123456789abcdef", where+" Open \x1b[36m"+page+"\x1b[0m", where+" and enter this:", where+"   \x1b[1mABCD-12345\x1b[0m", "wait "+f.file("ready"))
			q := w.asksFor("s", "a code", anyQuestion)
			if q.Kind != harness.AskAuthCode || q.URL != page || !strings.HasSuffix(q.Message, "\nand enter this:\nABCD-12345") {
				t.Errorf("%s", text(q))
			}
			if strings.Contains(q.Message, "sk-abc") || strings.Contains(q.Message, "abcdef0123") || strings.Contains(q.Message, "\x1b") || len(q.Message) > 1000 {
				t.Errorf("%q", q.Message)
			}
			w.answer("s", q.ID, harness.Answer{Content: json.RawMessage(`{"opened":true}`)})
			if st := w.authenticate("s"); st.State != harness.AuthRunning {
				t.Errorf("%s", text(st))
			}
			f.ready("s")
		})
	}
}

// A code that comes later is asked with its page again, also when the page was opened already.
func TestACodeThatComesLaterReplacesTheQuestion(t *testing.T) {
	for name, opened := range map[string]bool{"before": false, "after": true} {
		t.Run(name+" the page was opened", func(t *testing.T) {
			w := newWorld(t)
			f := w.front("s")
			f.logsIn("out Open https://login.example.test/", "wait "+f.file("later"), "err Your code is WXYZ1234", "wait "+f.file("ready"))
			q := w.asksFor("s", "a page", anyQuestion)
			if q.Kind != harness.AskURL {
				t.Errorf("%s", text(q))
			}
			if opened {
				w.answer("s", q.ID, harness.Answer{Content: json.RawMessage(`{"opened":true}`)})
			}
			f.write("later", "")
			again := w.asksFor("s", "a code", func(q harness.Question) bool { return strings.Contains(q.Message, "WXYZ1234") })
			if again.Kind != harness.AskAuthCode || again.URL != q.URL || again.ID == q.ID {
				t.Errorf("%s", text(again))
			}
			f.ready("s")
		})
	}
}

// A line without a code that follows soon is added to the question, which stays the same one.
func TestALineThatComesSoonIsAddedToTheQuestion(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	f.logsIn("err Open https://login.example.test/", "wait "+f.file("later"), "err It is good for ten minutes.", "wait "+f.file("ready"))
	q := w.asksFor("s", "a page", anyQuestion)
	f.write("later", "")
	again := w.asksFor("s", "the line", func(q harness.Question) bool { return strings.Contains(q.Message, "ten minutes") })
	if again.ID != q.ID {
		t.Errorf("%s then %s", text(q), text(again))
	}
	f.ready("s")
}

// A no to a code is a no to the login, in each of its forms.
func TestANoToACodeEndsTheLogin(t *testing.T) {
	for _, no := range []harness.Answer{{Content: json.RawMessage(`{"opened":false}`)}, {Word: harness.AnswerReject}} {
		t.Run(text(no), func(t *testing.T) {
			w := newWorld(t)
			f := w.front("s")
			f.logsIn("err Open https://login.example.test/ and enter ABCD-1234", "wait "+f.file("ready"))
			q := w.asksFor("s", "a code", func(q harness.Question) bool { return q.Kind == harness.AskAuthCode })
			w.answer("s", q.ID, no)
			if st := w.auth("s", "over", func(st sessions.AuthStatus) bool { return !st.State.InFlight() }); st.State != harness.AuthCancelled || len(st.Questions) != 0 {
				t.Errorf("%s", text(st))
			}
			f.write("ready", "")
		})
	}
}

// Only the newest lines are kept, and what is printed without end blocks no agent.
func TestTheLinesAroundAPageAreBounded(t *testing.T) {
	w := newWorld(t)
	f := w.front("s")
	var script []string
	for i := range 2000 {
		script = append(script, fmt.Sprintf("err line %d %s", i, strings.Repeat("x", 300)))
	}
	f.logsIn(append(append(script, "wait "+f.file("page"), "err Open https://login.example.test/"), "wait "+f.file("ready"))...)
	if err := os.WriteFile(f.file("page"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	q := w.asksFor("s", "a page", anyQuestion)
	if len(q.Message) > 1000 || !strings.HasSuffix(q.Message, "Open https://login.example.test/") {
		t.Errorf("%d bytes: %q", len(q.Message), q.Message)
	}
	f.ready("s")
}

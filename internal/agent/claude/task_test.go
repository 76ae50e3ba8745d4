package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func (r *rig) task() (agent.Task, error) {
	r.t.Helper()
	n, err := r.a.Identify(r.t.Context(), r.ref)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.a.CurrentTask(r.t.Context(), r.ref, n)
}

func TestTheTaskOfAPersonIsFoundAndFollowedToItsOwnEnd(t *testing.T) { // spec part 10.3
	r := newRig(t)
	if _, err := r.task(); !fault.Is(err, agent.CodeNoTask) {
		t.Errorf("a virgin session: %v", err)
	}
	r.append(prompt("u1", "", "same words") + answer("a1", "u1", "ANSWER-1") + endOf("s0", "a1"))
	if _, err := r.task(); !fault.Is(err, agent.CodeNoTask) {
		t.Errorf("a session whose task is done: %v", err)
	}
	r.append(prompt("u2", "s0", "same words"))
	r.say("busy", "")
	task, err := r.task()
	if err != nil {
		t.Fatal(err)
	}
	if task.Key != "claude|"+thread+"|u2" || task.Anchor.RequestHash != ids.TextHash("same words") {
		t.Errorf("%+v", task)
	}
	for k, v := range task.Anchor.Extra {
		if strings.Contains(v, "same words") {
			t.Errorf("the anchor holds the prompt's text in %s", k)
		}
	}
	u := r.follow(task.Anchor)
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	r.append(answer("a2", "u2", "ANSWER-2") + endOf("s1", "a2"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed ANSWER-2")
	again := r.follow(task.Anchor) // as after a crash of the monitor
	if err := again.ended(); err != nil {
		t.Fatal(err)
	}
	again.expect("accepted", "completed ANSWER-2")
}

func TestAWatchedTaskIsOverWhenAPersonAbortsItOrGoesOnWithAnother(t *testing.T) {
	for name, c := range map[string]struct{ more, want string }{
		"aborted":     {`{"type":"user","uuid":"i1","parentUuid":"u1","sessionId":"` + thread + `","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}` + "\n", "interrupted"},
		"a next task": {prompt("u9", "", "another"), "superseded"},
	} {
		r := newRig(t)
		r.append(prompt("u1", "", "task"))
		task, err := r.task()
		if err != nil {
			t.Fatal(err)
		}
		u := r.follow(task.Anchor)
		r.append(c.more)
		u.untilQuiet(name, func() bool { return u.has(turn.ObsInterrupted, c.want) })
		if _, err := r.task(); name == "aborted" && !fault.Is(err, agent.CodeNoTask) {
			t.Errorf("after the abort: %v", err)
		}
	}
}

// A prompt may be taken and not be in the transcript yet.
func TestAPromptThatIsNotRecordedYetIsKnownByWhatWasSubmitted(t *testing.T) {
	r := newRig(t)
	line := func(session, text, pasted string) string {
		return `{"display":"` + text + `","pastedContents":{` + pasted + `},"timestamp":7,"project":"/w","sessionId":"` + session + `"}` + "\n"
	}
	history := filepath.Join(r.dir, submittedFile)
	for name, c := range map[string]struct{ history, status string }{
		"no list":           {"", "busy"},
		"another session":   {line("other", "x", ""), "busy"},
		"a command":         {line(thread, "first task", "") + line(thread, "/compact", ""), "busy"},
		"a paste":           {line(thread, "see [Pasted text #1]", `"1":{}`), "busy"},
		"an agent at rest":  {line(thread, "first task", ""), "idle"},
		"half of a line":    {line(thread, "first task", "")[:30], "busy"},
		"nothing submitted": {line(thread, " ", ""), "busy"},
	} {
		os.Remove(history)
		if c.history != "" {
			r.appendTo(history, c.history)
		}
		r.say(c.status, "")
		if task, err := r.task(); !fault.Is(err, agent.CodeNoTask) {
			t.Errorf("%s: %+v %v", name, task, err)
		}
	}
	os.Remove(history)
	r.appendTo(history, line("other", "x", "")+line(thread, "first task", ""))
	r.say("busy", "")
	task, err := r.task()
	if err != nil || task.Key != "claude|"+thread+"|submitted 7" {
		t.Fatalf("%+v %v", task, err)
	}
	u := r.follow(task.Anchor)
	r.append(prompt("u1", "", "first task"))
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	if again, err := r.task(); err != nil || again.Anchor.RequestHash != task.Anchor.RequestHash {
		t.Errorf("once it is recorded: %+v %v", again, err)
	}
	r.append(answer("a1", "u1", "ANSWER") + endOf("s1", "a1"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed ANSWER")
	if _, err := r.task(); !fault.Is(err, agent.CodeNoTask) { // what was submitted last is done
		t.Errorf("%v", err)
	}
}

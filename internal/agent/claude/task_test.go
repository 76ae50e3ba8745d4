package claude

import (
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

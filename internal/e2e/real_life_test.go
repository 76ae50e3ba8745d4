//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

type cancelled struct {
	Outcome    string `json:"outcome"`
	Status     string `json:"turn_status"`
	Requested  bool   `json:"cancel_requested"`
	StopProved bool   `json:"stop_proved"`
	Means      string `json:"means"`
	Denied     bool   `json:"denied_approval"`
}

// TestRealAgentsStopWhenCancelled: in the answer, before it, and at an approval; each stop is
// proved by the agent's own evidence, and the agent then takes the next task.
func TestRealAgentsStopWhenCancelled(t *testing.T) { // spec part 2.14
	journey(t, everyMode(), []step{
		{"in the answer", realCancelInTheAnswer},
		{"before the answer", realCancelBeforeTheAnswer},
		{"at an approval", realCancelAtAnApproval},
		{"an idle agent gets no key", realCancelIdle},
	}, nil)
}

// offered waits until the Turn's terminal offers the action, and returns its arguments.
func (r *real) offered(action string) map[string]any {
	r.t.Helper()
	var last row
	r.until(action+" in the list", func() bool {
		last = r.row()
		return last.Actions[action].Tool != ""
	}, func() string { return dump(last) })
	return last.Actions[action].Arguments
}

func (r *real) cancel(got sent) cancelled {
	r.t.Helper()
	args := r.offered("cancel")
	if args["turn_id"] != got.TurnID {
		r.t.Errorf("the list offers %v", args)
	}
	var c cancelled
	r.c.MustCall("agent_knock_knock_cancel", args).Decode(r.t, &c)
	means := "key:Escape"
	if shapes[r.agent.Mode].channel == "codex_socket" {
		means = "socket"
	}
	if !c.Requested || c.Means != means {
		r.t.Errorf("%s", dump(c))
	}
	r.reaches(got.TurnID, "cancelled")
	return c
}

// takesTheNext waits for the one callback of a cancelled Turn and for the next task.
func (r *real) takesTheNext(got sent, word string, callbacks int) {
	r.t.Helper()
	s, bodies := r.knocks(got.TurnID, callbacks)
	last := callbacks - 1
	if s.Callbacks[last].Kind != "interrupted" || !strings.Contains(bodies[last], "cancelled as asked") {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	next := r.send("after " + word + " SAY:fine")
	if _, bodies := r.knocks(next.TurnID, 1); bodies[0] != "fine" {
		r.t.Errorf("%q", bodies)
	}
	r.alive()
}

func realCancelInTheAnswer(r *real) {
	got := r.send("count STREAM:3000@200")
	r.until("the answer on the screen", func() bool { return strings.Contains(r.screen(), "chunk 3 of 3000") }, r.screen)
	if c := r.cancel(got); c.Outcome != "stopped" && c.Outcome != "requested_not_proved" {
		r.t.Errorf("%s", dump(c))
	}
	r.takesTheNext(got, "count", 1)
}

func realCancelBeforeTheAnswer(r *real) {
	task := "wait GATE:never ;; SAY:never"
	got := r.send(task)
	r.until("the request at the model", func() bool {
		all := r.model.Requests()
		return strings.Contains(all[len(all)-1].User, task)
	}, func() string { return dump(r.model.Requests()) })
	c := r.cancel(got)
	if r.agent.Mode == realagent.ClaudePlain {
		// Claude Code writes no record of it and gives the text back as a draft, which is a
		// person's to clear.
		if c.Outcome != "idle_without_record" && c.Outcome != "requested_not_proved" {
			r.t.Errorf("%s", dump(c))
		}
		r.until("the text back in the composer", func() bool { return strings.Contains(r.screen(), "❯\u00a0"+task) }, r.screen)
		r.keys("C-u")
	} else if c.Outcome != "stopped" && c.Outcome != "requested_not_proved" {
		r.t.Errorf("%s", dump(c))
	}
	r.takesTheNext(got, "wait", 1)
}

func realCancelAtAnApproval(r *real) {
	got := r.send("RUN:touch never-made.txt ;; SAY:made it")
	r.reaches(got.TurnID, "waiting_for_controller")
	c := r.cancel(got)
	if !c.Denied {
		r.t.Errorf("%s", dump(c))
	}
	if _, err := os.Stat(filepath.Join(r.agent.Cwd, "never-made.txt")); err == nil {
		r.t.Error("the denied command ran")
	}
	s := statusOf(r.t, r.c, got.TurnID)
	r.takesTheNext(got, "deny", len(s.Callbacks))
}

func realCancelIdle(r *real) {
	got := r.send("SAY:over")
	r.knocks(got.TurnID, 1)
	r.idle()
	before := r.screen()
	res, err := r.c.Call(r.t.Context(), "agent_knock_knock_cancel", map[string]any{"turn_id": got.TurnID})
	if err != nil || res.Code() != "turn_state" {
		r.t.Errorf("%v %s", err, res.Text)
	}
	if after := r.screen(); after != before {
		r.t.Errorf("the screen changed from\n%s\nto\n%s", before, after)
	}
}

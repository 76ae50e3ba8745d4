//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// TestRealWatch watches tasks that a person starts at real agents: approved in between,
// interrupted, and ended while no Bridge ran. Nothing is typed but by the person.
func TestRealWatch(t *testing.T) { // spec part 10, cases 54 to 56
	for _, mode := range []realagent.Mode{realagent.ClaudePlain, realagent.CodexEmbedded, realagent.CodexRemote} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newReal(t, mode, nil)
			for _, step := range []struct {
				name string
				do   func(*real)
			}{
				{"a person approves and the task ends", realWatchApproved},
				{"a person interrupts", realWatchInterrupted},
				{"the terminal itself is watched", realWatchActivity},
				{"the Bridge is killed and the task ends without one", realWatchWithoutBridge}, // last: the others' Bridge is gone
			} {
				if !t.Run(step.name, func(t *testing.T) { step.do(r.on(t)) }) {
					t.Fatalf("the agent may not be at rest; screen:\n%s", r.screen())
				}
			}
			for _, q := range r.model.Requests() {
				if q.Kind == "main" && !strings.Contains(q.User, "person-") {
					t.Errorf("the agent was asked %q, and not by the person", q.User)
				}
			}
		})
	}
}

// watchTask watches what a person has just started.
func (r *real) watchTask(task string, more map[string]any) watched {
	r.t.Helper()
	r.enter(task)
	var last row
	r.until("a task that can be watched", func() bool { last = r.row(); return last.Actions["watch"].Tool != "" }, func() string { return dump(last) })
	v := startWatch(r.t, r.c, more)
	if where := holds(r.t, r.host.Store, task); where != "" {
		r.t.Errorf("the person's prompt is in %s", where)
	}
	return v
}

// watchEnds waits for the end and its one callback.
func (r *real) watchEnds(v watched, status, reason string) watched {
	r.t.Helper()
	var got watched
	r.until("a watch "+status, func() bool { got = watchOf(r.t, r.c, v.ID); return settledAs(status)(got) }, func() string { return dump(got) })
	if got.Settlement.Reason != reason {
		r.t.Errorf("%s", dump(got))
	}
	n := 0
	for _, d := range r.host.Deliveries() {
		if strings.Contains(d.Body, v.ID) && !strings.Contains(d.Body, "may not approve") {
			n++
		}
	}
	if n != 1 {
		r.t.Errorf("the end was told %d times: %+v", n, r.host.Deliveries())
	}
	return got
}

func realWatchApproved(r *real) {
	v := r.watchTask("GATE:approved ;; RUN:touch person-made.txt ;; SAY:person-made", nil)
	r.model.Release("approved")
	r.until("the approval's callback", func() bool {
		for _, d := range r.host.Deliveries() {
			if strings.Contains(d.Body, v.ID) && strings.Contains(d.Body, "may not approve") {
				return true
			}
		}
		return false
	}, func() string { return dump(watchOf(r.t, r.c, v.ID)) })
	made := filepath.Join(r.agent.Cwd, "person-made.txt")
	if _, err := os.Stat(made); err == nil {
		r.t.Error("the Watch approved the command")
	}
	r.approve()
	if got := r.watchEnds(v, "completed", "anchored_task_completed"); got.Settlement.Text != "person-made" {
		r.t.Errorf("%s", dump(got))
	}
	if _, err := os.Stat(made); err != nil {
		r.t.Error(err)
	}
	r.idle()
}

func realWatchInterrupted(r *real) {
	v := r.watchTask("STREAM:400@200 ;; SAY:person-slow", nil)
	r.until("the first words", func() bool { return r.row().State == "working" }, r.screen)
	r.keys("Escape")
	r.watchEnds(v, "failed", "anchored_task_failed")
	r.idle()
}

func realWatchWithoutBridge(r *real) {
	v := r.watchTask("GATE:alone ;; SAY:person-alone", nil)
	r.c.Kill()
	r.model.Release("alone")
	r.until("the answer", func() bool { return strings.Contains(r.screen(), "person-alone") }, r.screen)
	r.c = r.start()
	if got := r.watchEnds(v, "completed", "anchored_task_completed"); got.Settlement.Text != "person-alone" {
		r.t.Errorf("%s", dump(got))
	}
	r.idle()
}

func realWatchActivity(r *real) {
	v := r.watchTask("GATE:terminal ;; SAY:person-terminal", map[string]any{"mode": "terminal_activity"})
	r.model.Release("terminal")
	r.watchEnds(v, "completed", "terminal_became_idle")
	r.idle()
}

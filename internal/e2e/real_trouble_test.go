//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// TestRealAgentsThroughWhatCanHappenToATask brings each agent up once and lets one thing after
// another happen to it. Each step leaves the agent at rest; when one fails, the rest of
// this agent's steps would prove nothing and are left out.
func TestRealAgentsThroughWhatCanHappenToATask(t *testing.T) {
	journey(t, everyMode(), []step{
		{"a model that fails is a failed task", realFails},                                     // E02
		{"Esc while the answer streams is one interrupted task", realInterruptedInTheAnswer},   // E03
		{"Esc before the answer is one interrupted task", realInterruptedBeforeTheAnswer},      // E03
		{"a dialog knocks, bars the terminal, and goes on after a human's answer", realDialog}, // H5, spec case 50
		{"a human's dialog bars the terminal", realHumansDialog},                               // H5 state 2
		{"a declined dialog is an interrupted task", realDeclined},                             // E04
		{"a working agent is refused", realBusy},                                               // spec case 39
		{"a working human's agent is refused", realHumansTask},
		{"a killed Bridge's task is finished by the next one", realKilledBridge}, // H3 c
		{"a long task arrives exactly", realLong},                                // T02, T06, spec case 41
		{"text that looks like a command is text", realCommandLike},              // T17
		{"commands are refused", realCommands},
	}, nil)
}

func realFails(r *real) {
	task := "please FAIL:400"
	got := r.send(task)
	s, bodies := r.knocks(got.TurnID, 1)
	if s.Turn.Status != "failed" || s.Callbacks[0].Kind != "failure" || !strings.Contains(bodies[0], got.TurnID) || !strings.Contains(bodies[0], "fake failure 400") {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	r.once(task)
	r.idle()
}

func realInterruptedInTheAnswer(r *real) {
	task := "count STREAM:3000@200"
	got := r.send(task)
	r.until("the answer on the screen", func() bool { return strings.Contains(r.screen(), "chunk 3 of 3000") }, r.screen)
	r.keys("Escape")
	r.interruptedOnce(got, task)
}

func realInterruptedBeforeTheAnswer(r *real) {
	task := "wait GATE:never ;; SAY:never"
	got := r.send(task)
	r.until("the request at the model", func() bool {
		all := r.model.Requests()
		return strings.Contains(all[len(all)-1].User, task)
	}, func() string { return dump(r.model.Requests()) })
	r.keys("Escape")
	if r.agent.Mode == realagent.ClaudePlain {
		// Claude Code gives the text back: a draft that the next paste would be glued to.
		r.until("the text back in the composer", func() bool {
			row := r.row()
			return row.State == "idle" && strings.Contains(r.screen(), "❯\u00a0"+task)
		}, r.screen)
		r.reaches(got.TurnID, "failed")
		r.refused(r.row().TerminalID, "SAY:behind a draft", "terminal_unusable")
		r.keys("C-u")
	}
	r.interruptedOnce(got, task)
}

// interruptedOnce waits for the one callback of an interrupted Turn and for an agent that
// takes the next task.
func (r *real) interruptedOnce(got sent, task string) {
	r.t.Helper()
	s, bodies := r.knocks(got.TurnID, 1)
	if s.Turn.Status != "failed" || s.Callbacks[0].Kind != "interrupted" || !strings.Contains(bodies[0], got.TurnID) {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	r.idle()
	next := r.send("after " + task[:4] + " SAY:fine")
	if _, bodies := r.knocks(next.TurnID, 1); bodies[0] != "fine" {
		r.t.Errorf("%q", bodies)
	}
	if s := statusOf(r.t, r.c, got.TurnID); len(s.Callbacks) != 1 {
		r.t.Errorf("told again: %s", dump(s))
	}
}

// approve is the human's answer to a dialog. An agent may not listen in the moment in which
// a dialog opens, so the key is pressed again while the dialog stays.
func (r *real) approve() {
	r.t.Helper()
	key, question := "y", "Would you like to run"
	if r.agent.Mode == realagent.ClaudePlain {
		key, question = "1", "Do you want to proceed?"
	}
	open := func() bool { return strings.Contains(r.screen(), question) }
	r.until("the dialog", open, r.screen) // the agent's server tells before the screen does
	var pressed time.Time
	r.until("the end of the dialog", func() bool {
		if !open() {
			return true
		}
		if time.Since(pressed) > 3*time.Second {
			r.keys(key)
			pressed = time.Now()
		}
		return false
	}, r.screen)
}

func realDialog(r *real) {
	made := filepath.Join(r.agent.Cwd, "made-by-the-agent.txt")
	task := "RUN:touch made-by-the-agent.txt ;; SAY:made it"
	got := r.send(task)
	s := r.reaches(got.TurnID, "waiting_for_controller")
	if s.Turn.Prompt == nil || !strings.Contains(s.Turn.Prompt.Title+s.Turn.Prompt.Detail, "touch made-by-the-agent.txt") {
		r.t.Errorf("the prompt does not name the command: %s", dump(s))
	}
	s, bodies := r.knocks(got.TurnID, 1)
	if s.Callbacks[0].Kind != "approval" || !strings.Contains(bodies[0], "touch made-by-the-agent.txt") {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	if _, err := os.Stat(made); err == nil {
		r.t.Error("the command ran before a human allowed it")
	}
	r.refused(r.row().TerminalID, "SAY:into the dialog", "terminal_blocked")
	if _, err := os.Stat(made); err == nil {
		r.t.Error("the refused task approved the command")
	}
	r.approve()
	s, bodies = r.knocks(got.TurnID, 2)
	if s.Turn.Status != "idle" || s.Callbacks[1].Kind != "completion" || bodies[1] != "made it" {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	if _, err := os.Stat(made); err != nil {
		r.t.Error(err)
	}
	r.once(task)
}

// enter types a task as the human does.
func (r *real) enter(task string) {
	r.t.Helper()
	r.idle()
	r.keys("-l", task)
	r.until("the human's text", func() bool { return strings.Contains(r.screen(), task) }, r.screen)
	var pressed time.Time
	r.until("the human's task at the model", func() bool {
		for _, q := range r.model.Requests() {
			if q.User == task {
				return true
			}
		}
		if time.Since(pressed) > 3*time.Second {
			r.keys("Enter") // an agent takes an Enter right behind typed text for a part of it
			pressed = time.Now()
		}
		return false
	}, r.screen)
}

func realHumansDialog(r *real) {
	r.enter("RUN:touch made-by-the-human.txt ;; SAY:human")
	made := filepath.Join(r.agent.Cwd, "made-by-the-human.txt")
	var last row
	r.until("a dialog in the list", func() bool {
		last = r.row()
		return last.State == "awaiting_approval"
	}, func() string { return dump(last) })
	r.refused(last.TerminalID, "SAY:into a human's dialog", "terminal_unusable")
	if _, err := os.Stat(made); err == nil {
		r.t.Error("the refused task approved the command")
	}
	r.approve()
	r.idle()
}

func realDeclined(r *real) {
	task := "RUN:touch declined.txt ;; SAY:never"
	got := r.send(task)
	r.reaches(got.TurnID, "waiting_for_controller")
	r.knocks(got.TurnID, 1)
	r.keys("Escape")
	s, _ := r.knocks(got.TurnID, 2)
	if s.Turn.Status != "failed" || s.Callbacks[1].Kind != "interrupted" {
		r.t.Errorf("%s", dump(s))
	}
	if _, err := os.Stat(filepath.Join(r.agent.Cwd, "declined.txt")); err == nil {
		r.t.Error("the declined command ran")
	}
	r.idle()
}

func realBusy(r *real) {
	task := "GATE:busy ;; SAY:no longer busy"
	got := r.send(task)
	r.refused(r.row().TerminalID, "SAY:into a working agent", "terminal_blocked")
	r.model.Release("busy")
	if _, bodies := r.knocks(got.TurnID, 1); bodies[0] != "no longer busy" {
		r.t.Errorf("%q", bodies)
	}
	r.once(task)
}

func realHumansTask(r *real) {
	r.enter("GATE:human ;; SAY:human")
	var last row
	r.until("a working agent in the list", func() bool {
		last = r.row()
		return last.State == "working"
	}, func() string { return dump(last) })
	r.refused(last.TerminalID, "SAY:into a human's task", "terminal_unusable")
	r.model.Release("human")
	r.idle()
}

func realKilledBridge(r *real) {
	task := "GATE:killed ;; SAY:after the kill"
	got := r.send(task)
	r.reaches(got.TurnID, "waiting_for_agent")
	family := descendants(r.t, r.c.PID())
	before := len(r.host.Deliveries())
	r.c.Kill()
	waitGone(r.t, family)
	r.model.Release("killed") // it ends while nobody looks, or just when somebody does again
	next := *r
	next.c = next.world.start()
	s, bodies := next.knocks(got.TurnID, 1)
	if s.Turn.Status != "idle" || bodies[0] != "after the kill" {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	if n := len(r.host.Deliveries()) - before; n != 1 {
		r.t.Errorf("%d callbacks", n)
	}
	next.once(task)
	*r.c = *next.c // the steps that follow use the new Bridge
}

func realLong(r *real) {
	var b strings.Builder
	b.WriteString("-l leads; a line ends with semi;\n\tTab and  two  blanks, héllo 日本 ${HOME} `x` $(y) \\n\n\n")
	for b.Len() < 20<<10 {
		b.WriteString("a line of a long prompt, 日本 #{pane_id} %1 'quoted' \"twice\"\n")
	}
	b.WriteString("SAY:read it all;")
	got := r.send(b.String())
	if _, bodies := r.knocks(got.TurnID, 1); bodies[0] != "read it all;" {
		r.t.Errorf("%q", bodies)
	}
	r.once(b.String())
}

func realCommandLike(r *real) {
	for _, task := range []string{"!touch ran-as-shell.txt\nSAY:bang", "/tmp/path is a path\nSAY:path", "#note SAY:note", "@README.md SAY:at", "last word is @README.md"} {
		got := r.send(task)
		if s, _ := r.knocks(got.TurnID, 1); s.Turn.Status != "idle" {
			r.t.Errorf("%q: %s", task, dump(s))
		}
		r.once(task)
	}
	if _, err := os.Stat(filepath.Join(r.agent.Cwd, "ran-as-shell.txt")); err == nil {
		r.t.Error("text was run as a shell command")
	}
}

func realCommands(r *real) {
	term := r.idle().TerminalID
	for _, task := range []string{"/clear", "/quit now", "a\x1b[201~b"} {
		r.refused(term, task, "invalid")
	}
}

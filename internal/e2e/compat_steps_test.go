//go:build e2e && compat

package e2e

import (
	"os"
	"runtime"
	"strings"
	"time"
)

func goexit() { runtime.Goexit() }

// compatSteps are the rows of the table, in the order in which they are tried. A step
// whose tools are not in the build is not tried.
var compatSteps = []struct {
	name  string
	tools []string
	do    func(*compatRun)
}{
	{"found by list", nil, compatFound},
	{"sent and accepted", nil, compatAccepted},
	{"completed", nil, compatCompleted},
	{"failed turn", nil, compatFailed},
	{"interrupted by Esc", nil, compatInterrupted},
	{"approval seen", nil, compatApproval},
	{"human's task seen", nil, compatHuman},
	{"question seen", nil, compatQuestion},
	{"cancelled by the tool", []string{"cancel"}, compatCancel},
	{"approved by the tool", []string{"approve"}, compatApprove},
	{"rejected by the tool", []string{"approve"}, compatReject},
	{"question answered by the tool", []string{"respond_interaction"}, compatAnswer},
	{"human's task watched", []string{"watch"}, compatWatch},
	{"new thread", []string{"new_thread"}, compatNew},
	{"thread resumed", []string{"list_resumable_threads", "resume_thread"}, compatResume},
	{"native_inspect", []string{"native_inspect"}, compatInspect},
	{"model_options", []string{"model_options"}, compatModels},
}

// compatFound: the row says what the agent is, and which thread it shows.
func compatFound(c *compatRun) {
	row, typed := row{}, false
	start := time.Now()
	for ; row.Actions["send"].Tool == ""; <-time.After(200 * time.Millisecond) {
		row = c.real.row()
		c.mode = row.Mode + ", " + row.Channel
		switch waited := time.Since(start); {
		case waited > patience:
			c.p.Fatalf("it takes no task: %s", c.why())
		case waited > patience/3 && !typed && row.Screen == "idle":
			typed = true
			c.p.degraded("it takes a task only after a first prompt that a person typed: %s", row.Reason)
			c.real.keys("-l", "SAY:a first prompt")
			<-time.After(time.Second) // an Enter right behind text may be taken for a part of it
			c.real.keys("Enter")
		}
	}
	switch {
	case row.Agent != c.release.Kind:
		c.p.Fatalf("the list calls it %q", row.Agent)
	case row.Version != c.release.Version:
		c.p.degraded("its version is not told from outside (the list says %q)", row.Version)
	case row.Thread == "":
		c.p.degraded("its thread is not known: %s", row.Reason)
	}
	if a := c.real.agent; a.Launched.ThreadID != "" && row.Thread != a.Launched.ThreadID {
		c.p.degraded("the thread is not the one that pane announced")
	}
}

func compatAccepted(c *compatRun) {
	task := "first task GATE:first ;; SAY:first answer"
	got := send(c.p, c.real.c, c.real.row().TerminalID, task)
	defer c.real.model.Release("first")
	if got.Status != "async_pending" && got.Status != "submission_pending_acceptance" {
		c.p.Fatalf("send said %s: %s", got.Status, got.Reason)
	}
	var s status
	c.real.until("acceptance", func() bool {
		s = statusOf(c.p, c.real.c, got.TurnID)
		return s.Turn.Submission == "accepted"
	}, func() string { return dump(s) })
	c.real.model.Release("first")
	c.real.knocks(got.TurnID, 1)
}

func compatCompleted(c *compatRun) {
	got := c.real.send("SAY:the answer is 42\\n\\n  it costs nothing; \"naïve\" 日本語 €")
	s, bodies := c.real.knocks(got.TurnID, 1)
	switch {
	case s.Turn.Status != "idle" || s.Callbacks[0].Kind != "completion":
		c.p.Fatalf("the Turn is %s, the callback a %s", s.Turn.Status, s.Callbacks[0].Kind)
	case bodies[0] != "the answer is 42\n\n  it costs nothing; \"naïve\" 日本語 €":
		c.p.degraded("the answer arrived as %q", bodies[0])
	}
}

func compatFailed(c *compatRun) {
	got := c.real.send("please FAIL:400")
	s, bodies := c.real.knocks(got.TurnID, 1)
	switch {
	case s.Turn.Status != "failed" || s.Callbacks[0].Kind != "failure":
		c.p.Fatalf("the Turn is %s, the callback a %s", s.Turn.Status, s.Callbacks[0].Kind)
	case !strings.Contains(bodies[0], "fake failure 400"):
		c.p.degraded("the callback does not say why")
	}
}

func compatInterrupted(c *compatRun) {
	got := c.real.send("count STREAM:3000@200")
	c.coming("STREAM:3000")
	c.real.keys("Escape")
	s, _ := c.real.knocks(got.TurnID, 1)
	if s.Turn.Status != "failed" || s.Callbacks[0].Kind != "interrupted" {
		c.p.Fatalf("the Turn is %s, the callback a %s", s.Turn.Status, s.Callbacks[0].Kind)
	}
}

func compatApproval(c *compatRun) {
	r := c.real
	got := r.send("RUN:touch made-by-the-agent.txt ;; SAY:made it")
	s := r.reaches(got.TurnID, "waiting_for_controller")
	_, bodies := r.knocks(got.TurnID, 1)
	if s.Turn.Prompt == nil || !strings.Contains(s.Turn.Prompt.Title+s.Turn.Prompt.Detail, "touch made-by-the-agent.txt") || !strings.Contains(bodies[0], "touch made-by-the-agent.txt") {
		c.p.degraded("the prompt does not name the command")
	}
	if _, err := os.Stat(c.path("made-by-the-agent.txt")); err == nil {
		c.p.Fatal("the command ran before a person allowed it")
	}
	r.approve()
	s, bodies = r.knocks(got.TurnID, 2)
	if s.Turn.Status != "idle" || bodies[1] != "made it" {
		c.p.Fatalf("after a person's answer the Turn is %s", s.Turn.Status)
	}
}

func compatHuman(c *compatRun) {
	r := c.real
	r.enter("GATE:human ;; SAY:human")
	defer r.model.Release("human")
	var last row
	r.until("a working agent in the list", func() bool {
		last = r.row()
		return last.State == "working"
	}, func() string { return dump(last) })
	r.refused(last.TerminalID, "SAY:into a human's task", "terminal_unusable")
}

// ask is a model's questionnaire with one question.
func (c *compatRun) ask() string {
	options := `"options":[{"label":"Red","description":"the first"},{"label":"Blue","description":"the second"}]`
	if c.release.Kind == "claude" {
		return `TOOL:AskUserQuestion {"questions":[{"question":"Which color?","header":"Color","multiSelect":false,` + options + `}]} ;; SAY:asked`
	}
	return `TOOL:request_user_input {"questions":[{"id":"color","header":"Color","question":"Which color?",` + options + `}]} ;; SAY:asked`
}

func compatQuestion(c *compatRun) {
	r := c.real
	got := r.send(c.ask())
	var s status
	r.until("a question or an end", func() bool {
		s = statusOf(c.p, r.c, got.TurnID)
		return s.Turn.Status == "waiting_for_controller" || s.Turn.Status == "idle" || s.Turn.Status == "failed"
	}, func() string { return dump(s) })
	if s.Turn.Status != "waiting_for_controller" {
		if c.release.Kind == "codex" {
			c.p.degraded("the model may ask in Plan mode only, and a delegated task runs outside of it")
			return
		}
		c.p.Fatalf("the Turn is %s", s.Turn.Status)
	}
	if s.Turn.Prompt == nil || !strings.Contains(s.Turn.Prompt.Title+s.Turn.Prompt.Detail, "Which color?") {
		c.p.degraded("the question itself is not read")
	}
	var pressed time.Time
	r.until("the end of the question", func() bool {
		if s = statusOf(c.p, r.c, got.TurnID); s.Turn.Status == "idle" {
			return true
		}
		if time.Since(pressed) > 3*time.Second && strings.Contains(r.screen(), "Which color?") {
			r.keys("1")
			pressed = time.Now()
		}
		return false
	}, r.screen)
}

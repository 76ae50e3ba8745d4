//go:build e2e && compat

package e2e

import (
	"fmt"
	"os"
	"strings"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// call calls a tool. A refusal is a "no" with the product's own words.
func (c *compatRun) call(tool string, args map[string]any) fakehost.Result {
	res, err := c.real.c.Call(c.p.Context(), "agent_knock_knock_"+tool, args)
	if err != nil {
		c.p.Fatal(err)
	}
	if res.IsError {
		c.p.Fatalf("%s: %s", res.Code(), firstSentence(res.Text))
	}
	return res
}

func firstSentence(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// said is what the tools of one terminal answer, as far as the table needs it.
type said struct {
	Status     string `json:"status"`
	Outcome    string `json:"outcome"`
	Diagnostic string `json:"diagnostic"`
	Reason     string `json:"reason"`
	Thread     string `json:"native_thread_id"`
	Previous   string `json:"previous_native_thread_id"`
	Models     []any  `json:"models"`
	Native     any    `json:"native_status"`
	Threads    []struct {
		Thread    string `json:"native_thread_id"`
		Resumable bool   `json:"resumable"`
	} `json:"threads"`
}

func (c *compatRun) ask1(tool string, args map[string]any) said {
	var s said
	c.call(tool, args).Decode(c.p, &s)
	return s
}

// terminal is the argument of the tools that need no offer first.
func (c *compatRun) terminal() map[string]any {
	return map[string]any{"terminal_id": c.real.idle().TerminalID}
}

func compatCancel(c *compatRun) {
	got := c.real.send("wait STREAM:3000@200")
	c.coming("STREAM:3000")
	a := c.ask1("cancel", c.real.offered("cancel"))
	if a.Outcome != "stopped" && a.Outcome != "requested_not_proved" {
		c.p.Fatalf("%s: %s", a.Outcome, a.Reason)
	}
	c.real.reaches(got.TurnID, "cancelled")
}

// decided lets the agent ask for a command and answers by the tool.
func (c *compatRun) decided(file, action string) (callbacks int, turn string) {
	r := c.real
	got := r.send("RUN:touch " + file + " ;; SAY:made it")
	r.knocks(got.TurnID, 1)
	want := map[string]string{"approve": "approved", "reject": "rejected"}[action]
	if a := c.ask1("approve", r.offered(action)); a.Outcome != want {
		c.p.Fatalf("%s: %s", a.Outcome, a.Reason)
	}
	s, _ := r.knocks(got.TurnID, 2)
	return len(s.Callbacks), s.Turn.Status
}

func compatApprove(c *compatRun) {
	if _, turn := c.decided("approved.txt", "approve"); turn != "idle" {
		c.p.Fatalf("the Turn is %s", turn)
	}
	if _, err := os.Stat(c.path("approved.txt")); err != nil {
		c.p.Fatal("the approved command did not run")
	}
}

func compatReject(c *compatRun) {
	if _, turn := c.decided("rejected.txt", "reject"); turn != "failed" {
		c.p.Fatalf("the Turn is %s", turn)
	}
	if _, err := os.Stat(c.path("rejected.txt")); err == nil {
		c.p.Fatal("the rejected command ran")
	}
}

// compatAnswer answers a questionnaire by the tool, step by step.
func compatAnswer(c *compatRun) {
	r := c.real
	got := r.send(c.ask())
	var last struct {
		Turn        struct{ Status string }
		Interaction *compatInteraction `json:"interaction"`
	}
	r.until("a question or an end", func() bool {
		r.c.MustCall("agent_knock_knock_status", map[string]any{"turn_id": got.TurnID}).Decode(c.p, &last)
		return last.Turn.Status == "waiting_for_controller" || last.Turn.Status == "idle" || last.Turn.Status == "failed"
	}, func() string { return dump(last) })
	if last.Turn.Status != "waiting_for_controller" {
		c.p.untried("no question was asked, see above")
	}
	if last.Interaction == nil || len(last.Interaction.Questions) == 0 || !last.Interaction.Capabilities.Respond {
		c.p.degraded("a person has to answer it: %s", reasonOf(last.Interaction))
		return
	}
	for step := last.Interaction; step != nil; {
		q := step.Questions[0]
		answer := map[string]any{"question_id": q.ID, "response_kind": q.Kind}
		switch q.Kind {
		case "single_select":
			answer["selected_option_ids"] = []string{q.Options[0].ID}
		case "confirm":
			answer["confirm"] = true
		}
		var a struct {
			said
			Next *compatInteraction `json:"next"`
		}
		c.call("respond_interaction", map[string]any{"turn_id": got.TurnID, "interaction_id": step.ID, "answers": []any{answer}}).Decode(c.p, &a)
		if a.Outcome != "accepted" {
			c.p.Fatalf("%s: %s", a.Outcome, a.Reason)
		}
		if step = a.Next; step != nil && len(step.Questions) == 0 {
			c.p.Fatal("the next step has no question")
		}
	}
	r.reaches(got.TurnID, "idle")
}

func reasonOf(i *compatInteraction) string {
	if i == nil {
		return "it is not read as a questionnaire"
	}
	return i.State + " " + i.Reason
}

type compatInteraction struct {
	ID        string `json:"interaction_id"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Questions []struct {
		ID      string `json:"question_id"`
		Kind    string `json:"response_kind"`
		Options []struct {
			ID string `json:"option_id"`
		} `json:"options"`
	} `json:"questions"`
	Capabilities struct {
		Respond bool `json:"respond"`
	} `json:"capabilities"`
}

func compatWatch(c *compatRun) {
	r := c.real
	r.enter("GATE:watched ;; SAY:watched answer")
	defer r.model.Release("watched")
	var last row
	r.until("a working agent in the list", func() bool {
		last = r.row()
		return last.State == "working"
	}, func() string { return dump(last) })
	before := len(r.host.Deliveries())
	var w struct {
		Watch struct {
			Mode       string `json:"watch_mode"`
			Confidence string `json:"confidence"`
		} `json:"watch"`
	}
	c.call("watch", map[string]any{"terminal_id": last.TerminalID}).Decode(c.p, &w)
	r.model.Release("watched")
	r.until("the notification of the Watch", func() bool { return len(r.host.Deliveries()) > before }, func() string { return dump(r.host.Deliveries()) })
	if body := r.host.Deliveries()[before].Body; !strings.Contains(body, "watched answer") {
		c.p.degraded("the notification does not bring the answer (%s, %s)", w.Watch.Mode, w.Watch.Confidence)
	}
}

func compatNew(c *compatRun) {
	before := c.real.idle().Thread
	a := c.ask1("new_thread", c.terminal())
	if a.Status != "committed" {
		c.p.Fatalf("%s: %s", a.Status, a.Reason)
	}
	if a.Thread == before {
		c.p.Fatal("the thread is the old one")
	}
	c.real.knocks(c.real.send("SAY:in a new thread").TurnID, 1)
}

func compatResume(c *compatRun) {
	row := c.real.idle()
	list := c.ask1("list_resumable_threads", map[string]any{"terminal_id": row.TerminalID})
	for _, t := range list.Threads {
		if !t.Resumable || t.Thread == row.Thread {
			continue
		}
		a := c.ask1("resume_thread", map[string]any{"terminal_id": row.TerminalID, "native_thread_id": t.Thread})
		if a.Status != "committed" {
			c.p.Fatalf("%s: %s", a.Status, a.Reason)
		}
		if now := c.real.idle(); now.Thread != t.Thread {
			c.p.Fatalf("the terminal shows another thread")
		}
		c.real.knocks(c.real.send("SAY:resumed").TurnID, 1)
		return
	}
	c.p.Fatalf("no thread is offered (%d are listed)", len(list.Threads))
}

func compatInspect(c *compatRun) {
	args := c.terminal()
	args["inspection"] = "status"
	a := c.ask1("native_inspect", args)
	if a.Status != "observed" {
		c.p.Fatalf("%s: %s", a.Diagnostic, a.Reason)
	}
	if a.Native == nil {
		c.p.degraded("it says nothing")
	}
}

func compatModels(c *compatRun) {
	a := c.ask1("model_options", c.terminal())
	if a.Status != "observed" {
		c.p.Fatalf("%s: %s", a.Diagnostic, a.Reason)
	}
	if len(a.Models) == 0 {
		c.p.degraded("no model is listed")
	}
}

// coming waits until the model answers the task with that word, and the screen shows it.
// Some versions show an answer by lines, some by words; some say while it comes that Esc
// interrupts, some only before.
func (c *compatRun) coming(word string) {
	c.real.until("an answer that comes", func() bool {
		all, screen := c.real.model.Requests(), c.real.screen()
		return strings.Contains(all[len(all)-1].User, word) && (strings.Contains(screen, "chunk 3 of 3000") || strings.Contains(screen, "esc to interrupt"))
	}, func() string { return fmt.Sprintln(c.real.screen()) })
}

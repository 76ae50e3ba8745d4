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

// TestRealAgentsQuestionsAreHeardAndAnswered: what real agents ask besides commands. The
// knock comes, status shows what is asked, and it is answered: by the person at the
// terminal, and by the Host.
func TestRealAgentsQuestionsAreHeardAndAnswered(t *testing.T) { // spec parts 8.6, 2.16, 2.19
	journey(t, everyMode(), []step{
		{"an edit is allowed by the person", realEditAllowed},
		{"an edit is rejected by the Host", realEditRejected},
		{"a question is answered by the person", realQuestionByThePerson},
		{"every step of a questionnaire is answered by the Host", realQuestionnaire},
		{"a questionnaire that a person begins goes on with the Host", realQuestionnaireTogether},
	}, nil)
}

// editTask makes the agent ask whether it may write a file.
func (r *real) editTask(name string) string {
	if r.agent.Mode == realagent.ClaudePlain {
		return `TOOL:Write {"file_path":"` + filepath.Join(r.agent.Cwd, name) + `","content":"hello\n"} ;; SAY:wrote it`
	}
	return `TOOL:exec_command {"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ` + name + `\n+hello\n*** End Patch\nEOF\n"} ;; SAY:wrote it`
}

// asked waits for the n-th callback, which asks, and returns what status shows of it.
func (r *real) asked(got sent, n int, kind, about string) status {
	r.t.Helper()
	s, bodies := r.knocks(got.TurnID, n)
	if s.Turn.Status != "waiting_for_controller" || s.Callbacks[n-1].Kind != kind || !strings.Contains(bodies[n-1], about) {
		r.t.Fatalf("%s\n%q\nscreen:\n%s", dump(s), bodies, r.screen())
	}
	if p := s.Turn.Prompt; p == nil || !strings.Contains(p.Title+p.Detail, about) {
		r.t.Errorf("status does not show what is asked: %s", dump(s))
	}
	return s
}

// personPresses is what the person at the terminal does. A key is pressed again while the
// agent did not listen, which one that is just drawing its dialog may not.
func (r *real) personPresses(key string, open func() bool) {
	r.t.Helper()
	r.until("the dialog", open, r.screen)
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

func (r *real) shows(text string) func() bool {
	return func() bool { return strings.Contains(r.screen(), text) }
}

func (r *real) finishes(got sent, knocks int, answer string) {
	r.t.Helper()
	s, bodies := r.knocks(got.TurnID, knocks)
	if s.Turn.Status != "idle" || s.Callbacks[knocks-1].Kind != "completion" || bodies[knocks-1] != answer {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	r.idle()
}

// written reports whether the agent wrote the file.
func (r *real) written(name string) bool {
	_, err := os.Stat(filepath.Join(r.agent.Cwd, name))
	return err == nil
}

func realEditAllowed(r *real) {
	got := r.send(r.editTask("allowed-edit.txt"))
	r.asked(got, 1, "approval", "edit")
	if r.written("allowed-edit.txt") {
		r.t.Error("it was written before it was allowed")
	}
	key, question := "y", "make the following edits?"
	if r.agent.Mode == realagent.ClaudePlain {
		key, question = "1", "Do you want to create"
	}
	r.personPresses(key, r.shows(question))
	r.finishes(got, 2, "wrote it")
	if !r.written("allowed-edit.txt") {
		r.t.Error("it was not written")
	}
}

func realEditRejected(r *real) {
	got := r.send(r.editTask("rejected-edit.txt"))
	r.asked(got, 1, "approval", "edit")
	var a struct {
		Outcome    string `json:"outcome"`
		PromptGone bool   `json:"prompt_gone"`
	}
	r.c.MustCall("agent_knock_knock_approve", map[string]any{"turn_id": got.TurnID, "decision": "reject"}).Decode(r.t, &a)
	if a.Outcome != "rejected" || !a.PromptGone {
		r.t.Errorf("%s", dump(a))
	}
	s, _ := r.knocks(got.TurnID, 2)
	if s.Turn.Status != "failed" || s.Callbacks[1].Kind != "interrupted" || r.written("rejected-edit.txt") {
		r.t.Errorf("%s", dump(s))
	}
	r.idle()
}

// questionTask makes the agent show a questionnaire of one or two questions. Codex has them
// in its Plan mode only, into which its person brings it.
func (r *real) questionTask(two bool) string {
	r.t.Helper()
	color := `"question":"Which color should I use?","header":"Color","options":[{"label":"Red","description":"Warm"},{"label":"Blue","description":"Cold"}]`
	size := `"question":"Which size?","header":"Size","options":[{"label":"Small","description":"s"},{"label":"Large","description":"l"}]`
	tool, one, other := "AskUserQuestion", `"multiSelect":false`, `"multiSelect":false`
	if r.agent.Mode.Kind() == "codex" {
		tool, one, other = "request_user_input", `"id":"color"`, `"id":"size"`
		r.planMode()
	}
	list := "{" + one + "," + color + "}"
	if two {
		list += ",{" + other + "," + size + "}"
	}
	return "TOOL:" + tool + ` {"questions":[` + list + `]} ;; SAY:thanks`
}

func (r *real) planMode() {
	r.t.Helper()
	if r.shows("Plan mode")() {
		return
	}
	r.idle()
	r.keys("BTab")
	r.until("Plan mode", r.shows("Plan mode"), r.screen)
	r.idle()
}

func realQuestionByThePerson(r *real) {
	got := r.send(r.questionTask(false))
	r.asked(got, 1, "interaction", "Which color should I use?")
	hint := "enter to submit answer"
	if r.agent.Mode == realagent.ClaudePlain {
		hint = "Enter to select"
	}
	r.personPresses("2", r.shows(hint))
	r.finishes(got, 2, "thanks")
	r.told("Blue")
}

// told fails unless the model got the answer as the result of its question.
func (r *real) told(answers ...string) {
	r.t.Helper()
	all := r.model.Requests()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Kind != "main" {
			continue
		}
		for _, a := range answers {
			if !strings.Contains(all[i].Last, a) {
				r.t.Errorf("the model was told %q, want %q in it", all[i].Last, a)
			}
		}
		return
	}
	r.t.Error("the model was told nothing")
}

// interaction is a step of a questionnaire as the tools show it.
type interaction struct {
	ID    string `json:"interaction_id"`
	State string `json:"state"`
	Step  struct {
		Index int `json:"index"`
		Total int `json:"total"`
	} `json:"step"`
	Questions []struct {
		ID      string `json:"question_id"`
		Prompt  string `json:"prompt"`
		Kind    string `json:"response_kind"`
		Options []struct {
			ID    string `json:"option_id"`
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
	Capabilities struct {
		FreeText bool `json:"free_text"`
	} `json:"capabilities"`
}

type interactionAnswer struct {
	Outcome    string       `json:"outcome"`
	PromptGone bool         `json:"prompt_gone"`
	Next       *interaction `json:"next"`
}

// step returns the step that status shows now.
func (r *real) step(got sent) interaction {
	r.t.Helper()
	var s struct {
		Interaction *interaction `json:"interaction"`
	}
	r.c.MustCall("agent_knock_knock_status", map[string]any{"turn_id": got.TurnID}).Decode(r.t, &s)
	if s.Interaction == nil || s.Interaction.State != "pending" || len(s.Interaction.Questions) != 1 {
		r.t.Fatalf("status shows %s\nscreen:\n%s", dump(s), r.screen())
	}
	return *s.Interaction
}

// answer answers one step and returns the next one, nil for none.
func (r *real) answer(got sent, step interaction, field string, value any) *interaction {
	r.t.Helper()
	kind := map[string]string{"selected_option_ids": "single_select", "text": "free_text", "confirm": "confirm"}[field]
	var a interactionAnswer
	r.c.MustCall("agent_knock_knock_respond_interaction", map[string]any{"turn_id": got.TurnID, "interaction_id": step.ID, "answers": []any{
		map[string]any{"question_id": step.Questions[0].ID, "response_kind": kind, field: value}}}).Decode(r.t, &a)
	if a.Outcome != "accepted" || !a.PromptGone {
		r.t.Fatalf("answer to %s: %s\nscreen:\n%s", dump(step), dump(a), r.screen())
	}
	return a.Next
}

// option is the id of the choice with the label.
func (r *real) option(step interaction, label string) []string {
	r.t.Helper()
	for _, o := range step.Questions[0].Options {
		if o.Label == label {
			return []string{o.ID}
		}
	}
	r.t.Fatalf("no choice %q in %s", label, dump(step))
	return nil
}

func realQuestionnaire(r *real) {
	got := r.send(r.questionTask(true))
	r.asked(got, 1, "interaction", "Which color should I use?")
	first := r.step(got)
	if q := first.Questions[0]; q.Kind != "single_select" || len(q.Options) != 2 || !first.Capabilities.FreeText || first.Step.Index != 1 {
		r.t.Errorf("%s", dump(first))
	}
	second := r.answer(got, first, "selected_option_ids", r.option(first, "Blue"))
	if second == nil || second.Questions[0].Prompt != "Which size?" || second.Step.Index != 2 {
		r.t.Fatalf("the next step is %s\nscreen:\n%s", dump(second), r.screen())
	}
	const words = "!as big as /the house is, \"truly\" é"
	last := r.answer(got, *second, "text", words)
	if r.agent.Mode == realagent.ClaudePlain {
		if last == nil || last.Questions[0].Kind != "confirm" {
			r.t.Fatalf("the last step is %s\nscreen:\n%s", dump(last), r.screen())
		}
		last = r.answer(got, *last, "confirm", true)
	}
	if last != nil {
		r.t.Errorf("another step: %s", dump(last))
	}
	r.finishes(got, 2, "thanks")
	r.told("Blue", "as big as /the house is")
}

// The person answers the first question; the second one knocks and the Host answers it.
func realQuestionnaireTogether(r *real) {
	got := r.send(r.questionTask(true))
	r.asked(got, 1, "interaction", "Which color should I use?")
	answered := func() bool {
		if r.agent.Mode == realagent.ClaudePlain {
			return strings.Contains(r.screen(), "☒ Color")
		}
		return strings.Contains(r.screen(), "Question 2/2")
	}
	r.personPresses("1", func() bool { return !answered() })
	r.asked(got, 2, "interaction", "Which size?")
	step := r.step(got)
	last := r.answer(got, step, "selected_option_ids", r.option(step, "Large"))
	if last != nil {
		last = r.answer(got, *last, "confirm", true)
	}
	if last != nil {
		r.t.Errorf("another step: %s", dump(last))
	}
	r.finishes(got, 3, "thanks")
	r.told("Red", "Large")
}

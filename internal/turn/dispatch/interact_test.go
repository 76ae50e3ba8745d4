package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// ask is one step of a questionnaire as an adapter reads it: two choices, and one that
// opens a line for own words after the marker was moved to it.
func ask(id string, index int) *turn.Prompt {
	return &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: "fp-" + id, Title: "Which " + id + "?",
		Step: &turn.QuestionStep{ID: id, Header: "Header that is long", Text: "Which " + id + "?", Kind: turn.StepSingle, Index: index, Total: 2},
		Options: []turn.PromptOption{{ID: "o1", Label: "Red", Key: "1", Description: "the colour"}, {ID: "o2", Label: "Blue", Key: "2"},
			{ID: "o3", Label: "Other", FreeText: true, Keys: []string{"Down", "Down", "Tab"}}}}
}

// confirm is the last step.
func confirmStep() *turn.Prompt {
	return &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: "fp-end", Title: "Send?", Step: &turn.QuestionStep{ID: "end", Text: "Send?", Kind: turn.StepConfirm, Index: 2, Total: 2},
		Options: []turn.PromptOption{{ID: "o1", Label: "Submit", Key: "1"}, {ID: "o2", Label: "Cancel", Key: "2", Reject: true}}}
}

const down = "\x1b[B"

// plays makes the agent show what its input leads to: after the given bytes, that screen.
func (r *rig) plays(first *turn.Prompt, after map[string]agent.Screen) {
	r.shows(first)
	base := len(r.agent.rec.Bytes())
	r.agent.onScreen = func(int, agent.Screen) agent.Screen {
		got := string(r.agent.rec.Bytes()[base:])
		if s, ok := after[strings.ReplaceAll(got, "\x1bOB", down)]; ok {
			return s
		}
		return agent.Screen{State: agent.ScreenDialog, Prompt: first}
	}
}

func dialog(p *turn.Prompt) agent.Screen { return agent.Screen{State: agent.ScreenDialog, Prompt: p} }

// lineOpen is the step while its line for own words has the focus.
func lineOpen(p *turn.Prompt, draft string) agent.Screen {
	open := *p
	step := *p.Step
	step.Kind = turn.StepFreeText
	open.Step, open.Manual = &step, "the line for own words is open"
	s := agent.Screen{State: agent.ScreenDialog, Composer: agent.ComposerEmpty, Prompt: &open}
	if draft != "" {
		s.Composer, s.Draft = agent.ComposerDraft, draft
	}
	return s
}

// marked is the step with the marker n choices before the line.
func marked(p *turn.Prompt, n int) agent.Screen {
	m := *p
	m.Options = append([]turn.PromptOption{}, p.Options...)
	m.Options[2].Keys = append(make([]string, 0, 3), []string{"Down", "Down", "Tab"}[2-n:]...)
	return dialog(&m)
}

func choose(option string) []turn.Reply {
	return []turn.Reply{{QuestionID: "q1", Kind: turn.StepSingle, Options: []string{option}}}
}

func words(text string) []turn.Reply {
	return []turn.Reply{{QuestionID: "q1", Kind: turn.StepFreeText, Text: &text}}
}

func (r *rig) reply(call string, tn turn.Turn, id string, a []turn.Reply) (dispatch.InteractionResult, error) {
	return r.RespondInteraction(r.t.Context(), dispatch.InteractionInput{CallID: call, TurnID: tn.ID, InteractionID: id, Answers: a})
}

func TestAQuestionnaireIsAnsweredStepByStep(t *testing.T) { // spec part 2.19
	r := newRig(t)
	first := ask("q1", 1)
	tn := r.asked(first)
	r.plays(first, map[string]agent.Screen{"2": dialog(confirmStep()), "21": {State: agent.ScreenWorking}})
	s := r.review(tn.ID)
	i := s.Interaction
	if i == nil || i.State != dispatch.InteractionPending || len(i.Questions) != 1 || len(i.Questions[0].Options) != 2 || !i.Capabilities.FreeText ||
		len([]rune(i.Questions[0].Header)) > 12 || i.ExpiresAt.IsZero() || s.Actions["respond_interaction"].Arguments["interaction_id"] != i.InteractionID {
		t.Fatalf("%+v %+v", i, s.Actions)
	}
	got, err := r.reply("c1", tn, i.InteractionID, choose("o2"))
	if err != nil || got.Outcome != dispatch.OutcomeAccepted || got.Label != "Blue" || got.Next == nil || got.Next.Questions[0].ResponseKind != turn.StepConfirm {
		t.Fatalf("%+v %v", got, err)
	}
	if again, err := r.reply("c1", tn, i.InteractionID, choose("o2")); err != nil || !again.Replayed || again.Outcome != dispatch.OutcomeAccepted {
		t.Errorf("the same call: %+v %v", again, err)
	}
	if again, err := r.reply("c2", tn, i.InteractionID, choose("o1")); err != nil || again.Outcome != dispatch.OutcomeAlready {
		t.Errorf("the same step: %+v %v", again, err)
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: confirmStep()}) // the monitor sees it too
	if n := len(deliveries(t, r)); n != 1 {
		t.Errorf("%d callbacks; the result showed the second step", n)
	}
	yes := true
	got, err = r.reply("c3", tn, got.Next.InteractionID, []turn.Reply{{QuestionID: "end", Kind: turn.StepConfirm, Confirm: &yes}})
	if err != nil || got.Outcome != dispatch.OutcomeAccepted || got.Next != nil || !got.PromptGone || got.TurnStatus != turn.WaitingForAgent {
		t.Fatalf("%+v %v", got, err)
	}
	r.pressed("21")
}

// A result that nobody waits for any more shows nothing: the next step is told by a callback.
func TestTheStepAfterACallThatWasGivenUpIsToldByASweep(t *testing.T) { // spec part 2.19
	r := newRig(t)
	first := ask("q1", 1)
	tn := r.asked(first)
	r.plays(first, map[string]agent.Screen{"2": dialog(confirmStep())})
	id := r.review(tn.ID).Interaction.InteractionID
	ctx, giveUp := context.WithCancel(t.Context())
	shown := r.agent.onScreen
	r.agent.onScreen = func(n int, s agent.Screen) agent.Screen {
		s = shown(n, s)
		if s.Prompt.Fingerprint == "fp-end" {
			giveUp()
		}
		return s
	}
	if _, err := r.RespondInteraction(ctx, dispatch.InteractionInput{CallID: "c1", TurnID: tn.ID, InteractionID: id, Answers: choose("o2")}); err != nil || ctx.Err() == nil {
		t.Fatalf("%v, the call was given up: %v", err, ctx.Err())
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := deliveries(t, r); len(all) != 2 || !strings.Contains(string(all[1].Event.Body), "Send?") {
		t.Errorf("%+v", all)
	}
	r.pressed("2")
}

func TestAnAnswerInWordsIsProvedInItsLineBeforeEnter(t *testing.T) {
	r := newRig(t)
	first := ask("q1", 1)
	tn := r.asked(first)
	pasted := "\x1b[200~in my words\x1b[201~"
	r.plays(first, map[string]agent.Screen{down: marked(first, 1), down + down: marked(first, 0), down + down + "\t": lineOpen(first, ""),
		down + down + "\t" + pasted: lineOpen(first, "in my words"), down + down + "\t" + pasted + "\r": {State: agent.ScreenWorking}})
	i := r.review(tn.ID).Interaction
	// While it is answered the monitor sees the moved marker and the open line.
	onDraft := r.agent.onDraft
	r.agent.onDraft = func() {
		onDraft()
		open := lineOpen(first, "x").Prompt
		open.Fingerprint = "another"
		r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: open})
	}
	got, err := r.reply("c1", tn, i.InteractionID, words("in my words"))
	if err != nil || got.Outcome != dispatch.OutcomeAccepted || got.Label != "free text" || got.TurnStatus != turn.WaitingForAgent {
		t.Fatalf("%+v %v", got, err)
	}
	if n := len(deliveries(t, r)); n != 1 {
		t.Errorf("%d callbacks", n)
	}
	if raw := strings.ReplaceAll(string(r.agent.rec.Finish().Raw), "\x1bOB", down); raw != down+down+"\t"+pasted+"\r" {
		t.Errorf("the pane got %q", raw)
	}
}

func TestAnAnswerInWordsThatCannotBeProvedGetsNoEnter(t *testing.T) {
	r := newRig(t)
	first := ask("q1", 1)
	tn := r.asked(first)
	r.plays(first, map[string]agent.Screen{down: marked(first, 1), down + down: marked(first, 0)}) // Tab opens nothing
	i := r.review(tn.ID).Interaction
	got, err := r.reply("c1", tn, i.InteractionID, words("in my words"))
	if err != nil || got.Outcome != dispatch.OutcomeResponseUncertain || !got.DoNotRetry {
		t.Fatalf("%+v %v", got, err)
	}
	if raw := string(r.agent.rec.Finish().Raw); strings.Contains(raw, "words") || strings.Contains(raw, "\r") {
		t.Errorf("the pane got %q", raw)
	}
	if s := r.review(tn.ID); s.Interaction.State != dispatch.InteractionUncertain {
		t.Errorf("%+v", s.Interaction)
	}
	if _, err := r.reply("c2", tn, i.InteractionID, choose("o1")); !fault.Is(err, turn.CodeAnswerUncertain) {
		t.Errorf("%v", err)
	}
}

func TestAWrongReplyPressesNoKey(t *testing.T) { // spec case 60, part 2.19
	yes, secret, control := true, "token=ghp_0123456789abcdefghijABCDEFGHIJ012345", "a\x1bb"
	long := strings.Repeat("é", turn.MaxReplyText+1)
	manual := ask("q1", 1)
	manual.Manual = "several choices may be taken together"
	multi := ask("q1", 1)
	multi.Step.Kind = turn.StepMulti
	unknown := ask("q1", 1)
	unknown.Step = nil
	one := func(a turn.Reply) []turn.Reply { a.QuestionID = "q1"; return []turn.Reply{a} }
	for name, c := range map[string]struct {
		prompt  *turn.Prompt
		answers []turn.Reply
		before  func(*rig, turn.Turn)
		code    fault.Code
	}{
		"unknown option":        {answers: choose("o9"), code: turn.CodeUnknownOption},
		"the line as an option": {answers: choose("o3"), code: turn.CodeUnknownOption},
		"unknown question":      {answers: []turn.Reply{{QuestionID: "q2", Kind: turn.StepSingle, Options: []string{"o1"}}}, code: turn.CodeUnknownQuestion},
		"another kind":          {answers: one(turn.Reply{Kind: turn.StepConfirm, Confirm: &yes}), code: turn.CodeKindMismatch},
		"no answer":             {code: turn.CodeMissingAnswer},
		"no option":             {answers: one(turn.Reply{Kind: turn.StepSingle}), code: turn.CodeMissingAnswer},
		"no text":               {answers: one(turn.Reply{Kind: turn.StepFreeText}), code: turn.CodeMissingAnswer},
		"two answers":           {answers: append(choose("o1"), choose("o2")...), code: turn.CodeLimitExceeded},
		"two options":           {answers: one(turn.Reply{Kind: turn.StepSingle, Options: []string{"o1", "o2"}}), code: turn.CodeLimitExceeded},
		"an option twice":       {answers: one(turn.Reply{Kind: turn.StepSingle, Options: []string{"o1", "o1"}}), code: turn.CodeDuplicateID},
		"a field too many":      {answers: one(turn.Reply{Kind: turn.StepSingle, Options: []string{"o1"}, Confirm: &yes}), code: turn.CodeUnknownField},
		"an unknown kind":       {answers: one(turn.Reply{Kind: turn.StepMulti, Options: []string{"o1"}}), code: turn.CodeInvalidValue},
		"a control character":   {answers: words(control), code: turn.CodeControlCharacter},
		"too long a text":       {answers: words(long), code: turn.CodeLimitExceeded},
		"a secret":              {answers: words(secret), code: turn.CodeSecret},
		"a person's question":   {prompt: manual, answers: choose("o1"), code: turn.CodeResponseNotAllowed},
		"several choices":       {prompt: multi, answers: choose("o1"), code: turn.CodeResponseNotAllowed},
		"an unknown layout":     {prompt: unknown, answers: choose("o1"), code: turn.CodeResponseNotAllowed},
		"it was not shown":      {answers: choose("o1"), before: func(r *rig, _ turn.Turn) { r.shownLongAgo() }, code: turn.CodeExpired},
		"another one is open": {answers: choose("o1"), before: func(r *rig, tn turn.Turn) {
			r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Prompt: ask("q2", 2)})
		}, code: turn.CodeMismatch},
		"another one is on the screen": {answers: choose("o1"), before: func(r *rig, _ turn.Turn) { r.shows(ask("q2", 2)) }, code: turn.CodePromptChanged},
		"the Bridge died in between": {answers: choose("o1"), before: func(r *rig, tn turn.Turn) {
			r.decide(tn, func(t turn.Turn, now time.Time) (turn.Plan, error) {
				return turn.ReserveAnswer(t, turn.Answer{Fingerprint: t.Prompt.Fingerprint, Choice: "Red", By: "controller", Call: "c0"}, now)
			})
			if err := r.Sweep(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		}, code: turn.CodeAnswerUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := c.prompt
			if p == nil {
				p = ask("q1", 1)
			}
			tn := r.asked(p)
			i := r.review(tn.ID).Interaction
			if manual := c.code == turn.CodeResponseNotAllowed; manual != (i.State == dispatch.InteractionManual) || manual == i.Capabilities.Respond {
				t.Errorf("%+v", i)
			}
			if c.before != nil {
				c.before(r, tn)
			}
			_, err := r.reply("c1", tn, i.InteractionID, c.answers)
			if _, _, hint := fault.Public(err); !fault.Is(err, c.code) || hint == "" {
				t.Errorf("%v", err)
			}
			r.pressed("")
		})
	}
}

// shownLongAgo forgets that status showed the question: the Bridge started again.
func (r *rig) shownLongAgo() { r.Service = dispatch.New(r.Service.Config) }

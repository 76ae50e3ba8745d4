package turn_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func seen(fp string) turn.Observation {
	return turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: fp, Title: "Run " + fp + "?", Approvable: true}}
}

var gone = turn.Observation{Kind: turn.ObsPromptCleared, Source: "screen"}

// asked is an accepted Turn whose agent shows the prompt.
func asked(t *testing.T, fp string) turn.Turn {
	t.Helper()
	return turn.Observe(accepted(t), seen(fp), t0).Turn
}

func reserve(t *testing.T, tn turn.Turn, fp string, at time.Time) turn.Turn {
	t.Helper()
	p, err := turn.ReserveAnswer(tn, turn.Answer{Fingerprint: fp, Choice: "Yes", By: "controller", Call: "call-1"}, at)
	if err != nil {
		t.Fatal(err)
	}
	return p.Turn
}

func answered(t *testing.T, tn turn.Turn, fp string, at time.Time) turn.Turn {
	t.Helper()
	return turn.SettleAnswer(reserve(t, tn, fp, at), turn.AnswerSent, "", at).Turn
}

func TestAnAnswerGivesTheTurnBackToTheAgentAndResetsItsClock(t *testing.T) { // spec part 4.3
	at := t0.Add(50 * time.Minute)
	tn := answered(t, asked(t, "a"), "a", at)
	if tn.Status != turn.WaitingForAgent || tn.Prompt != nil || !tn.LastActivityAt.Equal(at) || tn.Answer.State != turn.AnswerSent {
		t.Fatalf("%+v %+v", tn, tn.Answer)
	}
	if p := turn.CheckDeadlines(tn, t0.Add(70*time.Minute)); len(p.Events) != 0 {
		t.Error("the inactivity clock was not reset")
	}
	if p := turn.SettleAnswer(tn, turn.AnswerUncertain, "late", at); len(p.Events) != 0 {
		t.Error("an answer was settled twice")
	}
}

func TestAPromptIsAnsweredOnceUntilItWasSeenGone(t *testing.T) { // spec cases 50 and 51
	tn := answered(t, asked(t, "a"), "a", t0)
	if p := turn.Observe(tn, seen("a"), t0.Add(time.Hour/2)); len(p.Events) != 0 {
		t.Fatal("a screen that was not repainted was told again")
	}
	if err := turn.CanAnswer(tn, "a"); !fault.Is(err, turn.CodeAnswered) {
		t.Fatalf("the second approval: %v", err)
	}
	for name, left := range map[string]turn.Turn{
		"cleared":             turn.Observe(tn, gone, t0).Turn,
		"seen by the answer":  turn.TakeAnswer(tn, "a", t0).Turn,
		"another took over":   turn.Observe(turn.Observe(tn, seen("b"), t0).Turn, gone, t0).Turn,
		"seen, then cleared":  turn.Observe(turn.TakeAnswer(tn, "a", t0).Turn, gone, t0).Turn,
		"cleared, then taken": turn.TakeAnswer(turn.Observe(tn, gone, t0).Turn, "a", t0).Turn,
	} {
		again := turn.Observe(left, seen("a"), t0)
		if len(again.Notices) != 1 || again.Turn.Status != turn.WaitingForController {
			t.Errorf("%s: the same command asked again was not told: %+v", name, again)
		}
		if err := turn.CanAnswer(again.Turn, "a"); err != nil {
			t.Errorf("%s: the new question cannot be answered: %v", name, err)
		}
	}
}

func TestAPersonWhoAnswersInThePaneCostsNoCallback(t *testing.T) { // spec case 50
	left := turn.Observe(asked(t, "a"), gone, t0)
	if left.Turn.Status != turn.WaitingForAgent || len(left.Notices) != 0 {
		t.Fatalf("%+v", left)
	}
	if p := turn.Observe(left.Turn, seen("a"), t0.Add(time.Second)); len(p.Notices) != 0 {
		t.Error("a repainted screen was told again")
	}
	if p := turn.Observe(left.Turn, seen("a"), t0.Add(time.Minute)); len(p.Notices) != 1 {
		t.Error("the same command, asked a minute later, was not told")
	}
	socket := gone
	socket.Source = "socket"
	if p := turn.Observe(turn.Observe(asked(t, "a"), socket, t0).Turn, seen("a"), t0); len(p.Notices) != 1 {
		t.Error("the server said that it was answered, and the next question was not told")
	}
}

func TestACrashBetweenReservationAndKeyIsUncertainAndToldOnce(t *testing.T) { // spec case 51
	tn := reserve(t, asked(t, "a"), "a", t0)
	p := turn.Recover(tn, t0)
	if p.Turn.Answer.State != turn.AnswerUncertain || len(p.Notices) != 1 || p.Notices[0].Type != "error" || !strings.Contains(p.Notices[0].Body, "Run a?") {
		t.Fatalf("%+v", p)
	}
	if again := turn.Recover(p.Turn, t0); len(again.Events) != 0 {
		t.Error("told twice")
	}
	if _, err := turn.ReserveAnswer(p.Turn, turn.Answer{Fingerprint: "a"}, t0); !fault.Is(err, turn.CodeAnswerUncertain) {
		t.Errorf("an uncertain answer was given again: %v", err)
	}
	if err := turn.CanAnswer(turn.Observe(turn.Observe(p.Turn, gone, t0).Turn, seen("a"), t0).Turn, "a"); err != nil {
		t.Errorf("after it was seen gone: %v", err)
	}
}

func TestAnAnswerThatProvablyDidNotLeaveMayBeGivenAgain(t *testing.T) {
	tn := turn.SettleAnswer(reserve(t, asked(t, "a"), "a", t0), turn.AnswerNotSent, "tmux is gone", t0).Turn
	if tn.Status != turn.WaitingForController || tn.Prompt == nil {
		t.Fatalf("%+v", tn)
	}
	reserve(t, tn, "a", t0)
}

func TestOnlyTheOpenPromptIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		tn   turn.Turn
		want fault.Code
	}{
		"none is open":  {accepted(t), turn.CodeNoPrompt},
		"another one":   {asked(t, "b"), turn.CodePromptChanged},
		"out of time":   {turn.CheckDeadlines(asked(t, "a"), t0.Add(2*time.Hour)).Turn, turn.CodeNotAllowed},
		"the Turn ends": {turn.Observe(asked(t, "a"), turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1"}, t0).Turn, turn.CodeNoPrompt},
	} {
		if _, err := turn.ReserveAnswer(c.tn, turn.Answer{Fingerprint: "a"}, t0); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The agent may be faster than our record of the key.
func TestAnAnswerRecordedLateRevivesNothing(t *testing.T) {
	tn := reserve(t, asked(t, "a"), "a", t0)
	ended := turn.Observe(turn.Observe(tn, gone, t0).Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "done"}, t0).Turn
	if late := turn.SettleAnswer(ended, turn.AnswerSent, "", t0).Turn; late.Status != turn.Idle || late.Answer.State != turn.AnswerSent || !late.Answer.Gone {
		t.Errorf("%+v %+v", late, late.Answer)
	}
	next := turn.Observe(tn, seen("b"), t0).Turn
	if late := turn.SettleAnswer(next, turn.AnswerSent, "", t0).Turn; late.Status != turn.WaitingForController || late.Prompt == nil || late.Prompt.Fingerprint != "b" {
		t.Errorf("the next prompt was lost: %+v", late)
	}
}

func TestAPromptThatNobodyCanAnswerHereIsAnErrorToldOnce(t *testing.T) { // spec case 50, part 8.6
	blocked := turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "a", Title: "Run it?", Reason: "a person has moved the marker"}}
	p := turn.Observe(accepted(t), blocked, t0)
	if len(p.Notices) != 1 || p.Notices[0].Type != "error" || p.Notices[0].RequiresResponse || !strings.Contains(p.Notices[0].Body, "moved the marker") {
		t.Fatalf("%+v", p.Notices)
	}
	if again := turn.Observe(p.Turn, blocked, t0); len(again.Events) != 0 {
		t.Error("told twice")
	}
}

func TestAPromptIsHeldBackWhileItIsDecidedAndToldAfterwards(t *testing.T) { // spec part 11
	held := turn.HoldPrompt(accepted(t), seen("a"), t0)
	if len(held.Notices) != 0 || !held.Turn.Untold() || held.Turn.Status != turn.WaitingForController {
		t.Fatalf("%+v", held)
	}
	for name, tell := range map[string]turn.Plan{"by decision": turn.TellPrompt(held.Turn, t0), "by the next Bridge": turn.Recover(held.Turn, t0)} {
		if len(tell.Notices) != 1 || tell.Notices[0].Type != "question" || tell.Turn.Untold() {
			t.Errorf("%s: %+v", name, tell)
		}
		if again := turn.TellPrompt(tell.Turn, t0); len(again.Events) != 0 {
			t.Errorf("%s: told twice", name)
		}
	}
	if p := turn.TellPrompt(answered(t, held.Turn, "a", t0), t0); len(p.Events) != 0 {
		t.Error("an answered question was told")
	}
	shown := turn.ShowPrompt(accepted(t), seen("b"), t0)
	if len(shown.Notices) != 0 || shown.Turn.Untold() {
		t.Errorf("%+v", shown)
	}
	if again := turn.Observe(shown.Turn, seen("b"), t0); len(again.Events) != 0 {
		t.Error("a step that a result showed was told too")
	}
}

// The monitor may see the next step before the call that answered the last one returns.
func TestTheStepAfterAnAnsweredOneIsLeftToTheAnswersResult(t *testing.T) { // spec case 50
	step := func(id string) turn.Observation {
		return turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: id, Title: id, Step: &turn.QuestionStep{ID: id, Kind: turn.StepSingle}}}
	}
	first := turn.Observe(accepted(t), step("1"), t0)
	if len(first.Notices) != 1 {
		t.Fatalf("%+v", first)
	}
	p, err := turn.ReserveAnswer(first.Turn, turn.Answer{Fingerprint: "1", Step: "1", By: "controller", Call: "call-1"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	sent := turn.SettleAnswer(p.Turn, turn.AnswerSent, "", t0).Turn
	taken := turn.TakeAnswer(sent, "1", t0).Turn // as the call sees it first
	if soon := turn.Observe(taken, step("2"), t0.Add(time.Second)); len(soon.Notices) != 0 || !soon.Turn.Untold() {
		t.Errorf("told beside the result: %+v", soon)
	}
	soon := turn.Observe(sent, step("2"), t0.Add(time.Second))
	if len(soon.Notices) != 0 || !soon.Turn.Untold() {
		t.Errorf("told beside the result: %+v", soon)
	}
	if shown := turn.ShowPrompt(soon.Turn, step("2"), t0.Add(2*time.Second)); len(shown.Notices) != 0 || shown.Turn.Untold() {
		t.Errorf("the result did not tell it: %+v", shown)
	}
	if late := turn.Recover(soon.Turn, t0.Add(time.Minute)); len(late.Notices) != 1 {
		t.Errorf("what no result showed is told by nobody: %+v", late)
	}
	if late := turn.Observe(sent, step("2"), t0.Add(time.Minute)); len(late.Notices) != 1 {
		t.Errorf("a step that comes late is told by nobody: %+v", late)
	}
}

// Whatever the order of answers and evidence: between two sightings of its absence a prompt
// is reserved at most once after which a key was possible, and what the Host hears of it
// has an id of its own.
func TestAnyStoryAnswersAPromptOnce(t *testing.T) {
	base := accepted(t)
	rapid.Check(t, func(t *rapid.T) {
		cur, now := base, t0
		keys := map[string]int{} // possible since it was seen gone
		messages := map[string]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
			fp := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "prompt")
			var p turn.Plan
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				p = turn.Observe(cur, seen(fp), now)
				if p.Turn.Prompt != nil && p.Turn.Prompt.Fingerprint == fp {
					for other := range keys {
						if other != fp {
							keys[other] = 0
						}
					}
				}
			case 1:
				p = turn.Observe(cur, gone, now)
				keys = map[string]int{}
			case 2:
				var err error
				if p, err = turn.ReserveAnswer(cur, turn.Answer{Fingerprint: fp}, now); err != nil {
					continue
				}
				keys[fp]++
			case 3:
				state := rapid.SampledFrom([]turn.AnswerState{turn.AnswerSent, turn.AnswerUncertain, turn.AnswerNotSent}).Draw(t, "state")
				if cur.AnswerPending() && state == turn.AnswerNotSent {
					keys[cur.Answer.Fingerprint] = max(0, keys[cur.Answer.Fingerprint]-1)
				}
				p = turn.SettleAnswer(cur, state, "", now)
			case 4:
				p = turn.HoldPrompt(cur, seen(fp), now)
				if p.Turn.Prompt != nil && p.Turn.Prompt.Fingerprint == fp {
					for other := range keys {
						if other != fp {
							keys[other] = 0
						}
					}
				}
			case 5:
				p = turn.Recover(cur, now)
			case 6:
				p = turn.TakeAnswer(cur, fp, now)
				if len(p.Events) > 0 {
					keys[fp] = 0
				}
			}
			for _, n := range p.Notices {
				if messages[n.MessageID] {
					t.Fatalf("message %s twice", n.MessageID)
				}
				messages[n.MessageID] = true
			}
			cur = p.Turn
			for fp, n := range keys {
				if n > 1 {
					t.Fatalf("%s was answered %d times without being gone", fp, n)
				}
			}
		}
	})
}

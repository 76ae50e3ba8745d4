package observe

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// told passes what a look saw through the facts and counts the prompts that came out.
func told(f *facts, s agent.Screen, now time.Time) (n int) {
	for _, o := range f.seen(s, "", now) {
		if f.admit(o) && o.Kind == turn.ObsPrompt {
			n++
		}
	}
	return n
}

func shown(kind turn.PromptKind, fingerprint string) agent.Screen {
	return agent.Screen{State: agent.ScreenDialog, Prompt: &turn.Prompt{Kind: kind, Fingerprint: fingerprint}}
}

func TestAHalfDrawnScreenIsNoDialog(t *testing.T) { // spec part 8.6
	now := time.Unix(1, 0)
	f := &facts{armed: true, accepted: true}
	if told(f, shown(turn.PromptDialog, "half"), now) != 0 || told(f, shown(turn.PromptApproval, "whole"), now) != 1 {
		t.Error("the half-drawn one was told, or the whole one was not")
	}
	f = &facts{armed: true, accepted: true}
	told(f, shown(turn.PromptDialog, "a"), now)
	told(f, agent.Screen{State: agent.ScreenWorking}, now)
	if told(f, shown(turn.PromptDialog, "a"), now) != 0 {
		t.Error("two glimpses with another screen between them are no dialog that stays")
	}
	if told(f, shown(turn.PromptDialog, "a"), now) != 1 {
		t.Error("a dialog that stays was not told")
	}
}

// The screen may show an approval before the server has told it: one question is one prompt.
func TestAnApprovalOfAnAgentWithAServerIsLeftToTheServerForAMoment(t *testing.T) { // spec case 50
	now := time.Unix(1, 0)
	s := shown(turn.PromptApproval, "dialog")
	f := &facts{armed: true, accepted: true, served: true}
	if told(f, s, now) != 0 {
		t.Error("the screen was faster, and was believed")
	}
	if !f.admit(turn.Observation{Kind: turn.ObsPrompt, Source: sourceSocket, At: now.Add(100 * time.Millisecond), Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "request"}}) {
		t.Error("the server was not believed")
	}
	if told(f, s, now.Add(time.Minute)) != 0 {
		t.Error("the same question was told twice")
	}
	f = &facts{armed: true, accepted: true, served: true}
	told(f, s, now)
	told(f, agent.Screen{State: agent.ScreenWorking}, now.Add(time.Second))
	if told(f, s, now.Add(serverGrace)) != 0 {
		t.Error("another dialog had not its own moment")
	}
	if told(f, s, now.Add(2*serverGrace)) != 1 {
		t.Error("what the server does not tell is not told at all")
	}
	f = &facts{armed: true, accepted: true, served: true}
	if told(f, shown(turn.PromptQuestion, "step"), now) != 1 {
		t.Error("a step of a questionnaire is told by the screen alone")
	}
}

func TestALookThatBeganBeforeAnAnswerMayShowWhatWasAnswered(t *testing.T) {
	now := time.Unix(1, 0)
	f := &facts{armed: true, accepted: true}
	s := shown(turn.PromptApproval, "a")
	if told(f, s, now) != 1 {
		t.Fatal("the prompt was not told")
	}
	f.taken("a", now.Add(time.Second))
	if !f.outdated(s.Prompt, now.Add(time.Second)) || f.outdated(s.Prompt, now.Add(time.Second+1)) || f.outdated(nil, now) {
		t.Error("only a look that began after the answer is about a new question")
	}
	if f.outdated(shown(turn.PromptApproval, "b").Prompt, now) {
		t.Error("another prompt is not the answered one")
	}
}

func TestADialogThatItsServerClosedIsNotTakenForANewOne(t *testing.T) { // spec case 50
	now := time.Unix(1, 0)
	f := &facts{armed: true, accepted: true}
	f.admit(turn.Observation{Kind: turn.ObsPrompt, Source: sourceSocket, At: now, Prompt: &turn.Prompt{Fingerprint: "request"}})
	f.admit(turn.Observation{Kind: turn.ObsPromptCleared, Source: sourceSocket, At: now})
	if told(f, shown(turn.PromptApproval, "dialog"), now.Add(closingGap/2)) != 0 {
		t.Error("the dialog of the answered request was told")
	}
	if told(f, shown(turn.PromptApproval, "dialog"), now.Add(closingGap)) != 1 {
		t.Error("a dialog that stays was not told")
	}
}

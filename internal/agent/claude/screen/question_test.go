package screen

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func edited(c tmux.Capture, old, with string) tmux.Capture {
	c.Lines = strings.Split(strings.ReplaceAll(strings.Join(c.Lines, "\n"), old, with), "\n")
	return c
}

func TestAStepIsTheSameWhereverTheMarkerStandsAndWhateverIsWrittenInIt(t *testing.T) {
	for first, others := range map[string][]string{
		"live-ask2-a":    {"live-ask2-a-free", "live-ask2-a-freetext"},
		"live-ask-long":  {"live-ask-left-text"},
		"live-plan-file": {"live-plan-file-3"},
	} {
		want := prompt(t, Classify(load(t, first)))
		for _, name := range others {
			if got := prompt(t, Classify(load(t, name))); got.Fingerprint != want.Fingerprint || got.Step.ID != want.Step.ID {
				t.Errorf("%s is another prompt than %s", name, first)
			}
		}
	}
	one, two := prompt(t, Classify(load(t, "live-ask2-a"))), prompt(t, Classify(load(t, "live-ask2-b")))
	if one.Fingerprint == two.Fingerprint || one.Step.ID == two.Step.ID {
		t.Error("two steps are one")
	}
	other := edited(load(t, "live-ask2-a"), "2. Blue", "2. Gold")
	if prompt(t, Classify(other)).Fingerprint == one.Fingerprint {
		t.Error("another choice is the same prompt")
	}
}

// A digit is text in the line for own words: no choice has a key while it has the focus.
func TestTheOpenLineForOwnWordsIsReadAsAComposerAndIsNeverIdle(t *testing.T) {
	for name, want := range map[string]agent.ComposerState{
		"live-ask2-a-free": agent.ComposerEmpty, "live-plan-file-3": agent.ComposerEmpty,
		"live-ask2-a-freetext": agent.ComposerDraft, "live-ask-free-long": agent.ComposerDraft,
	} {
		s := Classify(load(t, name))
		p := prompt(t, s)
		if s.State != agent.ScreenDialog || !s.OwnWords() || s.Composer != want || p.Manual == "" {
			t.Errorf("%s: %s, composer %s, %+v", name, s.State, s.Composer, p)
		}
		for _, o := range p.Options {
			if o.Key != "" {
				t.Errorf("%s: %s has the key %s", name, o.Label, o.Key)
			}
		}
	}
	long := Classify(load(t, "live-ask-free-long"))
	if got := DraftMatches(long, strings.Repeat("x", 150)); got != agent.MatchYes {
		t.Errorf("what was written there matches: %v", got)
	}
	if got := DraftMatches(long, strings.Repeat("x", 149)); got != agent.MatchNo {
		t.Errorf("another text matches: %v", got)
	}
}

// An agent may ask anything: what looks like an approval in a questionnaire is none.
func TestAQuestionInTheWordsOfAnApprovalIsAQuestion(t *testing.T) {
	for _, q := range []string{"Do you want to proceed?", "Would you like to proceed?", "Exit plan mode?"} {
		c := edited(edited(load(t, "live-ask-one3"), "Which color should I use?", q), "1. Red", "1. Yes")
		s := Classify(c)
		p := prompt(t, s)
		if s.State != agent.ScreenDialog || p.Kind != turn.PromptQuestion || p.Approvable || p.Step.Kind != turn.StepSingle || !p.Options[3].FreeText {
			t.Errorf("%s: %s %+v", q, s.State, p)
		}
	}
}

// And a command that holds the words of a questionnaire is still an approval.
func TestAnApprovalWithTheWordsOfAQuestionIsAnApproval(t *testing.T) {
	c := edited(load(t, "cli-perm-bash"), "   touch a.txt", "   echo Chat about this")
	if s := Classify(c); s.State != agent.ScreenApproval || !prompt(t, s).Approvable {
		t.Errorf("%s %+v", s.State, s.Prompt)
	}
}

func TestOnlyAStepOfTheKnownShapeHasKeys(t *testing.T) {
	base := load(t, "live-ask2-a")
	narrow := base
	narrow.Pane.Width = 40
	for name, c := range map[string]tmux.Capture{
		"narrow":                     narrow,
		"the top scrolled off":       edited(base, "──", "  "),
		"a secret":                   edited(base, "Which color", "Which password"),
		"a description that is none": edited(base, "     Warm", "  Warm"),
		"several choices":            edited(edited(base, "1. Red", "1. [ ] Red"), "2. Blue", "2. [ ] Blue"),
		"an unknown last choice":     edited(base, "Chat about this", "Do everything"),
		"unanswered":                 load(t, "live-ask-submit-unanswered"),
		"preview":                    load(t, "live-ask-preview"),
		"cut":                        load(t, "live-ask-40x12"),
	} {
		s := Classify(c)
		if s.State != agent.ScreenDialog || s.Prompt == nil || s.Prompt.Approvable || s.Prompt.Kind == turn.PromptQuestion && s.Prompt.Manual == "" {
			t.Errorf("%s: %s %+v", name, s.State, s.Prompt)
			continue
		}
		for _, o := range s.Prompt.Options {
			if o.Key != "" {
				t.Errorf("%s: %s has the key %s", name, o.Label, o.Key)
			}
		}
	}
}

func TestTheTabsSayWhichStepIsShown(t *testing.T) {
	for name, want := range map[string]turn.QuestionStep{
		"live-ask2-a":      {Header: "Color", Index: 1, Total: 3, Kind: turn.StepSingle},
		"live-ask2-b":      {Header: "Size", Index: 2, Total: 3, Kind: turn.StepSingle},
		"live-ask-tab2":    {Header: "Size", Index: 2, Total: 3, Kind: turn.StepSingle}, // nothing answered yet
		"live-ask2-submit": {Index: 3, Total: 3, Kind: turn.StepConfirm},
		"live-ask-one3":    {Header: "Color", Index: 1, Total: 1, Kind: turn.StepSingle},
	} {
		got := *prompt(t, Classify(load(t, name))).Step
		got.ID, got.Text = "", ""
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

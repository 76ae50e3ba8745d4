package screen

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const prompts = "0.171.0-prompts"

func edited(c tmux.Capture, old, new string) tmux.Capture {
	c.Lines = strings.Split(strings.ReplaceAll(strings.Join(c.Lines, "\n"), old, new), "\n")
	return c
}

// The line for own words has the cursor and looks like a composer (case T13).
func TestTheLineForOwnWordsIsNoComposerEvenWithoutATitle(t *testing.T) {
	_, screens := captures(t, prompts)
	seen := 0
	for name, c := range screens {
		if !c.Pane.CursorFlag {
			continue
		}
		seen++
		for _, title := range []string{c.Pane.Title, "", "Ready | x"} {
			c.Pane.Title = title
			if s := Classify(c); s.State != agent.ScreenDialog || s.Prompt == nil || s.Prompt.Manual == "" {
				t.Errorf("%s, title %q: %s", name, title, describe("", s))
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d recorded screens have the cursor", seen)
	}
}

func TestAStepIsTheSameWhereverTheMarkerStandsAndWhateverIsInTheNotes(t *testing.T) {
	_, screens := captures(t, prompts)
	want := Classify(screens["79-question-default-mode"]).Prompt
	for _, n := range []string{"89-question-own-words-open", "90-question-own-words-typed"} {
		s := Classify(screens[n])
		if got := s.Prompt; got.Fingerprint != want.Fingerprint || got.Step.ID != want.Step.ID || !s.OwnWords() {
			t.Errorf("%s is another step", n)
		}
	}
	if second := Classify(screens["73-question-second"]).Prompt; second.Step.ID == want.Step.ID {
		t.Error("two questions have one step id")
	}
}

func TestTheKeysToTheLineForOwnWordsStartAtTheMarker(t *testing.T) {
	_, screens := captures(t, prompts)
	base := screens["70-question"]
	keys := func(c tmux.Capture) []string {
		o := Classify(c).Prompt.Options
		return o[len(o)-1].Keys
	}
	second := edited(edited(base, "  › 1. Red", "    1. Red"), "    2. Blue", "  › 2. Blue")
	third := edited(edited(base, "  › 1. Red", "    1. Red"), "    3. None", "  › 3. None")
	for i, c := range []tmux.Capture{base, second, third} {
		want := append(slices.Repeat([]string{"Down"}, 2-i), "Tab")
		if d := cmp.Diff(want, keys(c)); d != "" {
			t.Errorf("marker on %d: %s", i+1, d)
		}
	}
	if got, want := Classify(third).Prompt.Fingerprint, Classify(base).Prompt.Fingerprint; got != want {
		t.Error("a moved marker is another prompt")
	}
}

func TestOnlyAStepOfTheKnownShapeHasKeys(t *testing.T) {
	_, screens := captures(t, prompts)
	base := screens["70-question"]
	narrow := base
	narrow.Pane.Width = 40
	for name, c := range map[string]tmux.Capture{
		"narrow":               narrow,
		"no marker":            edited(base, "  › 1. Red", "    1. Red"),
		"two markers":          edited(base, "    2. Blue", "  › 2. Blue"),
		"scrolled":             edited(base, "  tab to add notes", "  option 1/3 | tab to add notes"),
		"another footer":       edited(base, "enter to submit answer", "space to toggle"),
		"a secret":             edited(base, "Which color should I use?", "Which password should I use?"),
		"a row in between":     edited(base, "    2. Blue", "  what is this\n    2. Blue"),
		"two questions":        edited(base, "  Which color", "  Question 1/2 (2 unanswered)\n  Which color"),
		"choices out of order": edited(base, "    3. None", "    4. None"),
	} {
		s := Classify(c)
		if s.State != agent.ScreenDialog || s.Prompt == nil || s.Prompt.Kind != turn.PromptQuestion || s.Prompt.Manual == "" || s.Prompt.Approvable {
			t.Errorf("%s: %s", name, describe("", s))
			continue
		}
		for _, o := range s.Prompt.Options {
			if o.Key != "" || len(o.Keys) > 0 {
				t.Errorf("%s: %s has keys", name, o.Label)
			}
		}
	}
}

func TestAnMCPQuestionGrantsOneCallOnlyInItsKnownShape(t *testing.T) {
	_, screens := captures(t, prompts)
	base := screens["87-mcp-tool-lasting"]
	if p := Classify(base).Prompt; !p.Approvable || p.Options[0].Key != "1" {
		t.Fatalf("%s", describe("", Classify(base)))
	}
	for name, c := range map[string]tmux.Capture{
		"two fields":       edited(base, "Field 1/1", "Field 1/2"),
		"lasting first":    edited(base, "1. Allow ", "1. Allow for now "),
		"two one-time yes": edited(base, "2. Allow for this session", "2. Allow                 "),
		"no refusal":       edited(base, "4. Cancel", "4. Maybe "),
		"other footer":     edited(base, "enter to submit", "space to toggle"),
		"left out rows":    edited(base, "  text: hello", "  [… 12 lines] ^a view all"),
	} {
		s := Classify(c)
		if s.State != agent.ScreenApproval || s.Prompt.Approvable || s.Prompt.Reason == "" {
			t.Errorf("%s: %s", name, describe("", s))
		}
	}
	other := edited(base, `Allow the notes MCP server to run tool "add_note"?`, "Which project?")
	if s := Classify(other); s.State != agent.ScreenDialog || s.Prompt.Manual == "" {
		t.Errorf("another form: %s", describe("", s))
	}
}

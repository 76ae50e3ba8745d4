package screen

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func prompt(t *testing.T, s agent.Screen) turn.Prompt {
	t.Helper()
	if s.Prompt == nil {
		t.Fatalf("%s has no prompt (%s)", s.State, s.Reason)
	}
	return *s.Prompt
}

func TestOutputAboveAnUnchangedPromptKeepsTheFingerprintT20(t *testing.T) {
	c := load(t, "rig-03-permission-dialog")
	before := prompt(t, Classify(c))
	for i := 0; i < 6; i++ {
		c.Lines[i] = "other output scrolled by"
	}
	c.Lines, c.Styled = append([]string{"one more line"}, c.Lines...), append([]string{""}, c.Styled...)
	c.Pane.CursorY++
	c.Pane.Title = "another title"
	if after := prompt(t, Classify(c)); after.Fingerprint != before.Fingerprint || !after.Approvable {
		t.Errorf("changed: %+v", after)
	}
}

func TestAnyByteOfThePromptRegionChangesTheFingerprintT20(t *testing.T) {
	base := load(t, "rig-03-permission-dialog")
	want := prompt(t, Classify(base)).Fingerprint
	top := base.Pane.CursorY
	for !isRule(base.Lines[top]) {
		top--
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := base
		c.Lines = slices.Clone(base.Lines)
		i := rapid.IntRange(top+1, base.Pane.CursorY+3).Draw(rt, "line")
		r := []rune(c.Lines[i])
		if len(r) == 0 {
			return
		}
		j := rapid.IntRange(0, len(r)-1).Draw(rt, "rune")
		if r[j] == '#' || r[j] == ' ' && strings.TrimRight(c.Lines[i], " ") == "" {
			return
		}
		r[j] = '#'
		c.Lines[i] = string(r)
		if s := Classify(c); s.Prompt != nil && s.Prompt.Fingerprint == want {
			rt.Fatalf("line %d rune %d: same fingerprint", i, j)
		}
	})
	other := base
	other.Pane.ID = "%2"
	if prompt(t, Classify(other)).Fingerprint == want {
		t.Error("another pane has the same fingerprint")
	}
}

func TestPersistentChoiceIsNeverOneTime(t *testing.T) {
	n := 0
	for _, name := range recorded(t) {
		s := Classify(load(t, name))
		if s.State != agent.ScreenApproval {
			continue
		}
		n++
		once := 0
		for _, o := range s.Prompt.Options {
			if o.OneTime {
				once++
				if o.Label != "Yes" || o.Key != "1" {
					t.Errorf("%s: %+v", name, o)
				}
			}
			if o.OneTime && o.Reject {
				t.Errorf("%s: %+v grants and rejects", name, o)
			}
		}
		if s.Prompt.Approvable && once != 1 {
			t.Errorf("%s: approvable with %d one-time choices", name, once)
		}
	}
	if n < 9 {
		t.Fatalf("only %d approvals among the recorded screens", n)
	}
}

func TestApprovalIsRefusedWhenItsShapeIsNotProved(t *testing.T) {
	cases := map[string]struct{ from, to string }{
		"the marker on the persistent choice (case 50)": {" ❯ 1. Yes\n   2. Yes, and", "   1. Yes\n ❯ 2. Yes, and"},
		"two plain yes":        {"2. Yes, and allow access to etc/ and touch made-by-claude.txt commands", "2. Yes"},
		"no refusal":           {"3. No", "3. Maybe"},
		"another first label":  {"1. Yes", "1. Yes, for ever"},
		"the top scrolled off": {"──", "  "},
	}
	for name, k := range cases {
		c := load(t, "rig-03-permission-dialog")
		text := strings.Join(c.Lines, "\n")
		if !strings.Contains(text, k.from) {
			t.Fatalf("%s: the screen has no %q", name, k.from)
		}
		c.Lines = strings.Split(strings.ReplaceAll(text, k.from, k.to), "\n")
		for y, l := range c.Lines {
			if strings.HasPrefix(l, " ❯ ") {
				c.Pane.CursorY = y
			}
		}
		s := Classify(c)
		if s.State != agent.ScreenApproval || prompt(t, s).Approvable || prompt(t, s).Reason == "" {
			t.Errorf("%s: %s %+v", name, s.State, s.Prompt)
		}
	}
}

func TestUnknownQuestionWithAPlainYesIsADialogForAPerson(t *testing.T) {
	c := load(t, "rig-03-permission-dialog")
	for i, l := range c.Lines {
		c.Lines[i] = strings.Replace(l, "Do you want to proceed?", "Do you want to give away everything?", 1)
	}
	if s := Classify(c); s.State != agent.ScreenDialog || prompt(t, s).Approvable {
		t.Errorf("got %s", s.State)
	}
}

func TestPromptDrawnInTheTranscriptViewIsNoApproval(t *testing.T) {
	c := load(t, "rig-03-permission-dialog")
	c.Pane.CursorX, c.Pane.CursorY = 0, 39 // the view parks the cursor at the end
	c.Lines = append(c.Lines, "  Showing detailed transcript · ctrl+o to toggle")
	if s := Classify(c); s.State != agent.ScreenDialog || s.Prompt != nil {
		t.Errorf("got %s %+v", s.State, s.Prompt)
	}
}

func TestApprovalTellsWhatIsAskedFor(t *testing.T) {
	p := prompt(t, Classify(load(t, "rig-18-write-permission")))
	if p.Title != "Do you want to create w.txt?" || !strings.Contains(p.Detail, "1 hello") || strings.Contains(p.Detail, "╌") {
		t.Errorf("title %q detail %q", p.Title, p.Detail)
	}
	p = prompt(t, Classify(load(t, "cli-narrow-perm")))
	if len(p.Options) != 3 || p.Options[1].Label != "Yes, and always allow access to proj/ from this project" {
		t.Errorf("wrapped label: %+v", p.Options)
	}
	if len(p.Excerpt) > 4000 || !strings.Contains(p.Excerpt, "Bash command") {
		t.Errorf("excerpt %q", p.Excerpt)
	}
}

func TestSecretInAPromptIsMaskedAndStillPartOfTheFingerprint(t *testing.T) {
	secret := "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz0123456789"
	c := load(t, "rig-03-permission-dialog")
	for i, l := range c.Lines {
		c.Lines[i] = strings.Replace(l, "made-by-claude.txt", secret, 1)
	}
	p := prompt(t, Classify(c))
	if strings.Contains(p.Excerpt+p.Detail+p.Title, secret) {
		t.Errorf("shown: %q", p.Detail)
	}
	if p.Fingerprint == prompt(t, Classify(load(t, "rig-03-permission-dialog"))).Fingerprint {
		t.Error("the same fingerprint")
	}
}

func TestRewindSaysIdleInTheStatusFileAndIsADialogOnTheScreen(t *testing.T) {
	if s := Classify(load(t, "cli-rewind")); s.State != agent.ScreenDialog || s.Composer != agent.ComposerAbsent {
		t.Errorf("got %s, %s", s.State, s.Composer)
	}
}

func FuzzClassifyNeverPanicsAndNeverInventsAComposer(f *testing.F) {
	for _, name := range []string{"rig-03-permission-dialog", "rig-31-queued", "cli-narrow-draft"} {
		c := load(&testing.T{}, name)
		f.Add(strings.Join(c.Styled, "\n"), c.Pane.CursorX, c.Pane.CursorY)
	}
	f.Fuzz(func(t *testing.T, text string, x, y int) {
		c := drawn("t", "")
		c.Styled = strings.Split(text, "\n")
		c.Lines = plain(c.Styled)
		c.Pane.CursorX, c.Pane.CursorY = x, y
		s := Classify(c)
		if (s.Composer == agent.ComposerEmpty || s.Composer == agent.ComposerDraft) && !strings.Contains(text, "❯") {
			t.Errorf("a composer without its glyph: %q", text)
		}
		if s.State == agent.ScreenApproval && s.Prompt == nil {
			t.Error("an approval without a prompt")
		}
	})
}

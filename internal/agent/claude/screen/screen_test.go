package screen

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var update = flag.Bool("update", false, "rewrite testdata/expected.txt")

// recorded returns the names of all recorded screens.
func recorded(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.screen")
	if err != nil || len(paths) < 60 {
		t.Fatalf("only %d recorded screens: %v", len(paths), err)
	}
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(filepath.Base(p), ".screen"))
	}
	return out
}

func TestEveryRecordedScreenIsClassified(t *testing.T) {
	var b strings.Builder
	for _, name := range recorded(t) {
		s := Classify(load(t, name))
		fmt.Fprintf(&b, "%s: %s, composer %s", name, s.State, s.Composer)
		if s.Draft != "" {
			fmt.Fprintf(&b, " %q", s.Draft)
		}
		if p := s.Prompt; p != nil {
			fmt.Fprintf(&b, ", %s %q approvable=%v (%s)", p.Kind, p.Title, p.Approvable, p.Reason)
			if st := p.Step; st != nil {
				fmt.Fprintf(&b, "\n\tstep %d/%d %s header %q detail %q", st.Index, st.Total, st.Kind, st.Header, p.Detail)
			}
			if p.Manual != "" {
				fmt.Fprintf(&b, "\n\tmanual: %s", p.Manual)
			}
			for _, o := range p.Options {
				fmt.Fprintf(&b, "\n\t%q key=%s once=%v reject=%v", o.Label, o.Key, o.OneTime, o.Reject)
				if o.FreeText {
					b.WriteString(" free_text")
				}
				if o.Description != "" {
					fmt.Fprintf(&b, " %q", o.Description)
				}
			}
		}
		b.WriteByte('\n')
	}
	const golden = "testdata/expected.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("classification changed (-want +got):\n%s", d)
	}
}

// Without the title, the screen alone must still tell a working agent (T16: markers drift).
func TestWorkingIsSeenWithoutTheTitleFromTheFooterOrTheSpinnerAlone(t *testing.T) {
	for _, name := range recorded(t) {
		c := load(t, name)
		want := Classify(c)
		if want.State != agent.ScreenWorking || name == "cli-bg-agent" { // that one says so in the title only
			continue
		}
		c.Pane.Title = "myhost"
		if got := Classify(c); got.State != agent.ScreenWorking {
			t.Errorf("%s without title: %s, want working", name, got.State)
		}
		for i, l := range c.Lines {
			if strings.Contains(l, "esc to interrupt") {
				c.Lines[i] = "  something new here"
			}
		}
		if got := Classify(c); got.State != agent.ScreenWorking {
			t.Errorf("%s without title and footer: %s (%s), want working by the spinner", name, got.State, got.Reason)
		}
	}
}

func TestStaleSpinnerAboveACurrentPromptIsIdleT15(t *testing.T) {
	c := drawn("✳ title", `
❯ first
✻ Thinking… (3s · ↓ 12 tokens)
● the answer

✻ Crunched for 3s

────────────────────
❯ ▮
────────────────────
  ? for shortcuts`)
	if s := Classify(c); s.State != agent.ScreenIdle || s.Composer != agent.ComposerEmpty {
		t.Errorf("got %s, %s (%s)", s.State, s.Composer, s.Reason)
	}
}

func TestBypassFooterWithASpinnerIsWorkingAndNotApprovalT15(t *testing.T) {
	c := load(t, "cli-bypass-working")
	c.Pane.Title = "host"
	if s := Classify(c); s.State != agent.ScreenWorking {
		t.Errorf("got %s", s.State)
	}
}

func TestUnknownSpinnerGlyphIsStillASpinnerT16(t *testing.T) {
	for _, glyph := range []string{"◐", "✦", "⣷", "◆"} {
		c := drawn("host", glyph+" Doing something… (12s · ↑ 3 tokens)\n\n────────────────────\n❯\u00a0▮\n────────────────────\n  footer")
		if s := Classify(c); s.State != agent.ScreenWorking {
			t.Errorf("%s: %s", glyph, s.State)
		}
	}
}

func TestScreenWithoutAProvedComposerIsNeverIdle(t *testing.T) {
	idle := load(t, "rig-02-after-turn")
	mutations := map[string]func(*tmux.Capture){
		"cursor left of the prompt": func(c *tmux.Capture) { c.Pane.CursorX = 1 },
		"cursor elsewhere":          func(c *tmux.Capture) { c.Pane.CursorY = 2 },
		"cursor outside":            func(c *tmux.Capture) { c.Pane.CursorY = 400 },
		"cursor negative":           func(c *tmux.Capture) { c.Pane.CursorY = -1 },
		"plain blank":               func(c *tmux.Capture) { c.Lines[c.Pane.CursorY] = "❯ "; c.Styled = nil },
		"bare glyph without style":  func(c *tmux.Capture) { c.Lines[c.Pane.CursorY] = "❯"; c.Styled = nil },
		"another glyph":             func(c *tmux.Capture) { c.Lines[c.Pane.CursorY] = "»\u00a0" },
		"no rule above":             func(c *tmux.Capture) { c.Lines[c.Pane.CursorY-1] = "" },
		"no rule below":             func(c *tmux.Capture) { c.Lines[c.Pane.CursorY+1] = "text" },
		"indented":                  func(c *tmux.Capture) { c.Lines[c.Pane.CursorY] = " ❯\u00a0" },
		"dead pane":                 func(c *tmux.Capture) { c.Pane.Dead = true },
		"no lines":                  func(c *tmux.Capture) { c.Lines, c.Styled = nil, nil },
	}
	for name, mutate := range mutations {
		c := load(t, "rig-02-after-turn")
		mutate(&c)
		s := Classify(c)
		if s.State == agent.ScreenIdle || s.Composer == agent.ComposerEmpty || s.Composer == agent.ComposerDraft {
			t.Errorf("%s: %s, %s", name, s.State, s.Composer)
		}
	}
	if s := Classify(idle); s.State != agent.ScreenIdle {
		t.Fatalf("the unchanged screen is %s", s.State)
	}
}

func TestTrimmedBlankAfterThePromptIsProvedByTheStyledLine(t *testing.T) {
	c := load(t, "rig-02-after-turn")
	c.Lines[c.Pane.CursorY] = "❯"
	if s := Classify(c); s.State != agent.ScreenIdle || s.Composer != agent.ComposerEmpty {
		t.Errorf("got %s, %s (%s)", s.State, s.Composer, s.Reason)
	}
}

func TestQueuedMessagesHintIsNoDraftT17(t *testing.T) {
	s := Classify(load(t, "rig-31-queued"))
	if s.Composer != agent.ComposerEmpty || s.Draft != "" || s.State != agent.ScreenWorking {
		t.Errorf("got %s, %s, draft %q", s.State, s.Composer, s.Draft)
	}
	c := load(t, "rig-31-queued")
	c.Styled = nil // without styles nothing proves that the text is a hint
	if s := Classify(c); s.Composer != agent.ComposerDraft {
		t.Errorf("without styles: %s", s.Composer)
	}
}

func TestAgentsViewIsNotThisSessionsComposer(t *testing.T) {
	c := load(t, "cli-left-agents")
	for _, title := range []string{c.Pane.Title, "host"} {
		c.Pane.Title = title
		if s := Classify(c); s.State != agent.ScreenDialog || s.Composer != agent.ComposerAbsent {
			t.Errorf("title %q: %s, %s", title, s.State, s.Composer)
		}
	}
	for i, l := range c.Lines { // even if its blank were the composer's
		c.Lines[i] = strings.Replace(l, "❯ describe", "❯\u00a0describe", 1)
	}
	if s := Classify(c); s.Composer != agent.ComposerAbsent {
		t.Errorf("with U+00A0: %s", s.Composer)
	}
}

func TestPaneInATmuxModeHasNoProvedComposerT03(t *testing.T) {
	c := load(t, "rig-02-after-turn")
	c.Pane.InMode = true
	if s := Classify(c); s.Composer != agent.ComposerUnknown || s.Reason == "" {
		t.Errorf("got %s (%s)", s.Composer, s.Reason)
	}
}

func TestTrustDialogBelowAnEchoedPromptIsADialogT14(t *testing.T) {
	c := load(t, "rig-30-trust-dialog")
	for i := range c.Lines {
		if strings.TrimSpace(c.Lines[i]) == "" && i < 2 {
			c.Lines[i] = "> x"
		}
	}
	s := Classify(c)
	if s.State != agent.ScreenDialog || s.Prompt == nil || s.Prompt.Kind != turn.PromptDialog || s.Prompt.Approvable {
		t.Errorf("got %s %+v", s.State, s.Prompt)
	}
}

func TestNumberedListInAPromptOrAnAnswerIsNoDialog(t *testing.T) {
	c := drawn("✳ t", "❯ 1. do this\n  2. do that\n\n● done▮\n\n  3. more")
	if s := Classify(c); s.State != agent.ScreenUnknown || s.Prompt != nil {
		t.Errorf("got %s %+v", s.State, s.Prompt)
	}
	c = drawn("✳ t", "● Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n────────────────────\n❯\u00a0▮\n────────────────────\n  ? for shortcuts")
	if s := Classify(c); s.State != agent.ScreenIdle {
		t.Errorf("a prompt drawn by the model above the composer: %s", s.State)
	}
}

package screen

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var metaLine = regexp.MustCompile(`^cursor=(\d+),(\d+) alt=(\d) cmd=(\S*) title=(.*) bracketed=\? flag=(\d)(?: size=(\d+)x(\d+))?`)

// captures reads the recorded screens of one version in their order.
func captures(t testing.TB, version string) (names []string, screens map[string]tmux.Capture) {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "codex-"+version+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	screens = map[string]tmux.Capture{}
	var pane tmux.Pane
	for _, f := range ar.Files {
		if name, ok := strings.CutSuffix(f.Name, ".meta"); ok {
			m := metaLine.FindStringSubmatch(string(f.Data))
			if m == nil {
				t.Fatalf("%s: bad meta line", name)
			}
			pane = tmux.Pane{Socket: "/tmp/s", ID: "%1", PID: 7, Width: 120, Height: 40, Title: m[5], CursorFlag: m[6] == "1", AlternateOn: m[3] == "1"}
			pane.CursorX, _ = strconv.Atoi(m[1])
			pane.CursorY, _ = strconv.Atoi(m[2])
			if m[7] != "" {
				pane.Width, _ = strconv.Atoi(m[7])
				pane.Height, _ = strconv.Atoi(m[8])
			}
			continue
		}
		name := strings.TrimSuffix(f.Name, ".screen")
		names = append(names, name)
		screens[name] = capture(pane, string(f.Data))
	}
	return names, screens
}

func capture(pane tmux.Pane, styled string) tmux.Capture {
	c := tmux.Capture{Pane: pane, Styled: strings.Split(strings.TrimSuffix(styled, "\n"), "\n")}
	for _, l := range c.Styled {
		c.Lines = append(c.Lines, strings.TrimRight(plain(l), " "))
	}
	return c
}

func plain(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if _, rest, ok := cutSGR(s); ok {
			s = rest
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

func describe(name string, s agent.Screen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, composer %s", name, s.State, s.Composer)
	if s.Draft != "" {
		fmt.Fprintf(&b, ", draft %.60q", s.Draft)
	}
	if s.Reason != "" {
		fmt.Fprintf(&b, " (%s)", s.Reason)
	}
	b.WriteByte('\n')
	if p := s.Prompt; p != nil {
		fmt.Fprintf(&b, "    %s %q approvable=%v detail %q\n", p.Kind, p.Title, p.Approvable, p.Detail)
		if st := p.Step; st != nil {
			fmt.Fprintf(&b, "    step %d/%d %s %q\n", st.Index, st.Total, st.Kind, st.Text)
		}
		if p.Manual != "" {
			fmt.Fprintf(&b, "    manual: %s\n", p.Manual)
		}
		for _, o := range p.Options {
			fmt.Fprintf(&b, "    [%s] %s one_time=%v reject=%v", o.Key+strings.Join(o.Keys, " "), o.Label, o.OneTime, o.Reject)
			if o.FreeText {
				b.WriteString(" free_text")
			}
			if o.Description != "" {
				fmt.Fprintf(&b, " %q", o.Description)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestEveryRecordedScreenIsClassified(t *testing.T) {
	for _, version := range []string{"0.98.0", "0.130.0", "0.150.0", "0.171.0", "0.171.0-prompts"} {
		t.Run(version, func(t *testing.T) {
			names, screens := captures(t, version)
			var got strings.Builder
			for _, n := range names {
				got.WriteString(describe(n, Classify(screens[n])))
			}
			golden := filepath.Join("testdata", "codex-"+version+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// Without the cursor nothing is a composer, whatever the text looks like.
func TestNoScreenIsIdleWhileTheCursorIsHidden(t *testing.T) {
	for _, version := range []string{"0.98.0", "0.130.0", "0.150.0", "0.171.0"} {
		names, screens := captures(t, version)
		for _, n := range names {
			c := screens[n]
			c.Pane.CursorFlag = false
			if s := Classify(c); s.State == agent.ScreenIdle || s.State == agent.ScreenWorking || s.Composer != agent.ComposerAbsent {
				t.Errorf("%s %s: %s, composer %s", version, n, s.State, s.Composer)
			}
		}
	}
}

// Case T16: a release that changes the prompt glyph gives unknown, never idle.
func TestAnUnknownPromptGlyphIsUnknown(t *testing.T) {
	_, screens := captures(t, "0.171.0")
	c := screens["00-fresh-idle"]
	if s := Classify(c); s.State != agent.ScreenIdle {
		t.Fatalf("the recorded screen is %s", s.State)
	}
	for i := range c.Lines {
		c.Lines[i] = strings.ReplaceAll(c.Lines[i], "›", "❯")
	}
	if s := Classify(c); s.State != agent.ScreenUnknown || s.Composer != agent.ComposerUnknown {
		t.Errorf("%s, composer %s", s.State, s.Composer)
	}
}

// Degraded mode: an unknown title, other footer and lost colours still prove a composer.
func TestAnUnknownTitleAndFooterStillProveTheComposer(t *testing.T) {
	_, screens := captures(t, "0.171.0")
	c := screens["02-after-turn"]
	c.Pane.Title = "◇ something new"
	for i, l := range c.Lines {
		if strings.Contains(l, "fake-model default") {
			c.Lines[i] = "  ▸ another status line"
		}
	}
	if s := Classify(c); s.State != agent.ScreenIdle || s.Composer != agent.ComposerEmpty {
		t.Errorf("%s, composer %s", s.State, s.Composer)
	}
	c.Styled = nil
	if s := Classify(c); s.Composer != agent.ComposerEmpty {
		t.Errorf("a known placeholder without colours: composer %s", s.Composer)
	}
	for i, l := range c.Lines {
		c.Lines[i] = strings.ReplaceAll(l, "Ask Codex to do anything", "Ask me something")
	}
	if s := Classify(c); s.Composer != agent.ComposerUnknown {
		t.Errorf("an unknown placeholder without colours: composer %s", s.Composer)
	}
}

// 0.171 hides its working line while the answer streams (agents-live 0.5): the title
// still tells, and without it the screen alone cannot.
func TestStreamingIsWorkingByTheTitle(t *testing.T) {
	_, screens := captures(t, "0.171.0")
	for _, n := range []string{"08-streaming", "46-noalt-streaming"} {
		if s := Classify(screens[n]); s.State != agent.ScreenWorking {
			t.Errorf("%s: %s", n, s.State)
		}
	}
}

// The status line tells as well as the title does, on every version.
func TestTheWorkingLineIsEnoughWithoutATitle(t *testing.T) {
	seen := 0
	for _, version := range []string{"0.98.0", "0.130.0", "0.150.0", "0.171.0"} {
		names, screens := captures(t, version)
		for _, n := range names {
			c := screens[n]
			if !c.Pane.CursorFlag || !strings.Contains(strings.Join(c.Lines, "\n"), "esc to interrupt)") {
				continue
			}
			c.Pane.Title = ""
			if s := Classify(c); s.State != agent.ScreenWorking {
				t.Errorf("%s %s: %s", version, n, s.State)
			}
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("only %d recorded screens show the line", seen)
	}
}

// Case T15: a working line in the history is not work.
func TestAWorkingLineAboveTheLastPromptIsHistory(t *testing.T) {
	_, screens := captures(t, "0.171.0")
	c := screens["02-after-turn"]
	for i, l := range c.Lines {
		if strings.HasPrefix(l, "› SLEEP") {
			c.Lines[i-1] = "• Working (1s • esc to interrupt)"
		}
	}
	if s := Classify(c); s.State != agent.ScreenIdle {
		t.Errorf("%s", s.State)
	}
}

// Case T20: what scrolls above an approval does not change it; any byte of it does.
func TestTheFingerprintCoversThePromptAndNothingElse(t *testing.T) {
	_, screens := captures(t, "0.171.0")
	base := screens["05-approval-dialog"]
	want := Classify(base).Prompt.Fingerprint
	scrolled := base
	scrolled.Lines = append([]string(nil), base.Lines...)
	moved := false
	for i, l := range scrolled.Lines {
		if strings.Contains(l, "hello there") {
			scrolled.Lines[i], moved = "• other output", true
		}
	}
	if got := Classify(scrolled).Prompt; !moved || got.Fingerprint != want || !got.Approvable {
		t.Error("output above the prompt changed it")
	}
	marked := base
	marked.Lines = append([]string(nil), base.Lines...)
	for i, l := range marked.Lines {
		switch {
		case strings.HasPrefix(l, "› 1."):
			marked.Lines[i] = "  " + strings.TrimPrefix(l, "› ")
		case strings.HasPrefix(l, "  3. No"):
			marked.Lines[i] = "› " + strings.TrimPrefix(l, "  ")
		}
	}
	if got := Classify(marked).Prompt; got.Fingerprint != want {
		t.Error("marking another choice changed the prompt, although its key does not depend on it")
	}
	start := 0
	for i, l := range base.Lines {
		if strings.Contains(l, "Would you like") {
			start = i
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := base
		c.Lines = append([]string(nil), base.Lines...)
		i := rapid.IntRange(start, len(c.Lines)-1).Draw(rt, "row")
		r := []rune(c.Lines[i])
		if len(r) == 0 || strings.Contains(c.Lines[i], "›") {
			return
		}
		j := rapid.IntRange(0, len(r)-1).Draw(rt, "col")
		r[j] = '¤'
		c.Lines[i] = string(r)
		if p := Classify(c).Prompt; p != nil && p.Approvable && p.Fingerprint == want {
			rt.Fatalf("row %d column %d changed and the fingerprint did not", i, j)
		}
	})
	other := base
	other.Pane.PID++
	if Classify(other).Prompt.Fingerprint == want {
		t.Error("another pane has the same fingerprint")
	}
}

func approvalWith(replace func(rows []string) []string) agent.Screen {
	rows := strings.Split(`• Running touch x

  Would you like to run the following command?

  Reason: ok?

  $ touch x

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with
     touch x (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel`, "\n")
	return Classify(tmux.Capture{Lines: replace(rows)})
}

func TestOnlyAnApprovalOfTheKnownShapeIsApprovable(t *testing.T) {
	swap := func(old, new string) func([]string) []string {
		return func(rows []string) []string {
			return strings.Split(strings.ReplaceAll(strings.Join(rows, "\n"), old, new), "\n")
		}
	}
	for _, tc := range []struct {
		name string
		edit func([]string) []string
		want bool
	}{
		{"as recorded", swap("", ""), true},
		{"edits", swap("run the following command?", "make the following edits?"), true},
		{"permissions", swap("Would you like to run the following command?", "Would you like to grant these permissions?"), true},
		{"network", swap("Would you like to run the following command?", `Do you want to approve network access to "x.org"?`), true},
		{"MCP", swap("Would you like to run the following command?", "files needs your approval."), true},
		{"a second question", swap("Reason: ok?", "Would you like to make the following edits?"), false},
		{"no y on the first choice", swap("proceed (y)", "proceed"), false},
		{"the first choice lasts", swap("Yes, proceed (y)", "Yes, for this session (y)"), false},
		{"two one-time choices", swap("Yes, and don't ask again for commands that start with\n     touch x (p)", "Yes, once (y)"), false},
		{"out of order", swap("  3. No", "  4. No"), false},
		{"the last is no refusal", swap("No, and tell", "Maybe, and tell"), false},
		{"text after the choices", swap("Press enter to confirm or esc to cancel", "Something else"), false},
		{"the command looks like choices", swap("$ touch x\n\n", "$ cat <<E\n  1. Yes, proceed (y)\n  2. No (n)\n\n"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := approvalWith(tc.edit)
			if got := s.Prompt != nil && s.Prompt.Approvable; got != tc.want {
				t.Errorf("approvable = %v: %s", got, describe("", s))
			}
			if s.State == agent.ScreenIdle || s.Composer != agent.ComposerAbsent {
				t.Errorf("state %s, composer %s", s.State, s.Composer)
			}
		})
	}
	if s := approvalWith(func(r []string) []string { return r[4:] }); s.State != agent.ScreenApproval || s.Prompt.Approvable {
		t.Errorf("a cut approval: %s", describe("", s))
	}
}

func FuzzClassifyNeverPanicsAndNeverCallsGarbageIdle(f *testing.F) {
	names, screens := captures(f, "0.171.0")
	for _, n := range names {
		c := screens[n]
		f.Add(strings.Join(c.Styled, "\n"), c.Pane.CursorX, c.Pane.CursorY, c.Pane.CursorFlag)
	}
	f.Fuzz(func(t *testing.T, styled string, x, y int, flag bool) {
		s := Classify(capture(tmux.Pane{CursorX: x, CursorY: y % 200, CursorFlag: flag}, styled))
		if s.State == agent.ScreenIdle && !flag {
			t.Error("idle with a hidden cursor")
		}
	})
}

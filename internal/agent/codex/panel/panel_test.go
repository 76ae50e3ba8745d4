package panel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// recorded returns the screens of one version.
func recorded(t testing.TB) map[string]tmux.Capture {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/0.171.0.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tmux.Capture{}
	for _, f := range ar.Files {
		head, body, _ := strings.Cut(string(f.Data), "\n")
		c := tmux.Capture{Pane: tmux.Pane{Width: 120, Height: 40}, Lines: strings.Split(body, "\n")}
		var flag int
		if _, err := fmt.Sscan(head, &c.Pane.CursorX, &c.Pane.CursorY, &flag); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		c.Pane.CursorFlag = flag == 1
		out[f.Name] = c
	}
	return out
}

var idle = agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}

func TestRecordedPickersAreRead(t *testing.T) {
	for name, want := range map[string]struct {
		kind    kind
		rows    int
		cursor  string
		cut     bool
		session bool
	}{
		"embedded-models":       {models, 8, "GPT-6.1 Terra", true, false},
		"embedded-models-2":     {models, 8, "GPT-6.1 Terra", true, false},
		"embedded-models-end":   {models, 8, "GPT-5.5", true, false},
		"embedded-efforts":      {efforts, 5, "Low", false, true},
		"embedded-efforts-more": {efforts, 5, "More reasoning…", false, false},
		"embedded-advanced":     {advanced, 2, "Max", false, true},
		"embedded-permissions":  {permissions, 4, "Ask for approval", false, false},
	} {
		c := recorded(t)[name]
		l, ok := read(c)
		if !ok || l.kind != want.kind || len(l.rows) != want.rows || l.at().label != want.cursor || l.cut != want.cut || l.session != want.session {
			t.Errorf("%s: %+v %v", name, l, ok)
		}
		if Shown(c) != string(want.kind) {
			t.Errorf("%s is shown as %q", name, Shown(c))
		}
		c.Pane.CursorFlag = true // something else has the keyboard
		if Shown(c) != "" {
			t.Errorf("%s is read although the composer has the focus", name)
		}
	}
	if got := effortsOf(must(t, "embedded-efforts")); !slices.Equal(got, []string{"low", "medium", "high", "xhigh", "max", "ultra"}) {
		t.Errorf("%v", got)
	}
	if p := permissionsOf(must(t, "embedded-permissions")); p.Current != "ask_for_approval" || !p.Choices[2].NeedsPerson || p.Choices[3].ID != "read_only" || p.Choices[0].Description != "What it is for. and more of it" {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"embedded-idle", "embedded-status-typed", "embedded-status-shown", "embedded-models-closed"} {
		if got := Shown(recorded(t)[name]); got != "" {
			t.Errorf("%s is shown as %q", name, got)
		}
	}
}

func must(t *testing.T, name string) list {
	t.Helper()
	l, ok := read(recorded(t)[name])
	if !ok {
		t.Fatal(name)
	}
	return l
}

func TestACutOrForeignPickerIsNotRead(t *testing.T) {
	whole := recorded(t)["embedded-efforts"]
	for name, change := range map[string]func(string) string{
		"another title":  func(l string) string { return strings.Replace(l, "Select Reasoning Level", "Choose Level", 1) },
		"another footer": func(l string) string { return strings.Replace(l, "enter default", "tab choose", 1) },
		"no cursor":      func(l string) string { return strings.Replace(l, "› 1", "  1", 1) },
		"two cursors":    func(l string) string { return strings.Replace(l, "  3.", "› 3.", 1) },
		"a new row":      func(l string) string { return strings.Replace(l, "  4. Extra high", "[x] Extra high", 1) },
		"twice the same": func(l string) string { return strings.Replace(l, "Medium", "High  ", 1) },
	} {
		c := whole
		c.Lines = slices.Clone(whole.Lines)
		for i := range c.Lines {
			c.Lines[i] = change(c.Lines[i])
		}
		if slices.Equal(c.Lines, whole.Lines) {
			t.Fatalf("%s changes nothing", name)
		}
		if l, ok := read(c); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func status(before, now tmux.Capture) (*Status, bool) {
	p := new(Status)
	p.Begin(before)
	p.Next(now, idle)
	return p, p.Next(now, idle).Do == agent.DoDone
}

func TestOnlyAFreshCardIsTheAnswer(t *testing.T) { // spec part 2.5: a historical panel is never accepted
	r := recorded(t)
	shown := r["embedded-status-shown"] // with two cards
	if _, ok := status(shown, shown); ok {
		t.Error("a card that stood there before was taken for a new one")
	}
	p, ok := status(r["embedded-idle"], shown)
	if !ok || p.Status().ThreadID != "01a23471-30c3-7f53-a074-d3001dcf5135" || p.Setting() != (agent.Setting{Model: "gpt-6.1-terra", Effort: "medium"}) {
		t.Errorf("%v %+v", ok, p.Status())
	}
	if _, ok := status(r["embedded-models-closed"], r["embedded-models-closed"]); ok {
		t.Error("a card above other output was taken")
	}
	if p := new(Status); p.Next(shown, agent.Screen{State: agent.ScreenWorking}).Do != agent.DoWait {
		t.Error("a card was read while the agent works")
	}
	daemon := r["daemon-status-shown"]
	if fields, ok := freshStatus(nil, conversation(daemon)[slices.Index(conversation(daemon), statusCommand):]); !ok || fields[0].Name != "Server" {
		t.Errorf("%v %v", fields, ok)
	}
}

// simulator behaves as Codex's pickers were seen to.
type simulator struct {
	labels  []string
	efforts [][]string // further ones, behind "More reasoning…", begin with a capital M or U
	current agent.Setting
	open    kind // "" for the composer
	at, sub int
	in      int // the model whose efforts are open
	keys    int
	frames  []tmux.Capture // drawn late
}

const shownRows = 8

func (s *simulator) rows() (rows []string, cursor int, session bool) {
	text := "  What it is for."
	switch s.open {
	case models:
		for i, l := range s.labels {
			if s.current.Model == agent.LabelID(l) {
				l += " (current)"
			}
			if i < 9 {
				l = fmt.Sprintf("%d. %s", i+1, l)
			} else {
				l = "    " + l
			}
			rows = append(rows, l+text)
		}
		return rows, s.at, false
	case efforts:
		base, more := s.split()
		for i, l := range base {
			if s.current.Model == agent.LabelID(s.labels[s.in]) && s.current.Effort == effortID(l) {
				l += " (current)"
			}
			rows = append(rows, fmt.Sprintf("%d. %s%s", i+1, l, text))
		}
		if len(more) > 0 {
			label := "More reasoning…"
			if s.current.Model == agent.LabelID(s.labels[s.in]) && (s.current.Effort == "max" || s.current.Effort == "ultra") {
				label += " (current)"
			}
			rows = append(rows, fmt.Sprintf("%d. %s  %s cost more", len(rows)+1, label, strings.Join(more, " and ")))
		}
		return rows, s.sub, s.sub < len(base)
	}
	_, more := s.split()
	for i, l := range more {
		if s.current.Model == agent.LabelID(s.labels[s.in]) && s.current.Effort == effortID(l) {
			l += " (current)"
		}
		rows = append(rows, fmt.Sprintf("%d. %s%s", i+1, l, text))
	}
	return rows, s.sub, true
}

func (s *simulator) split() (base, more []string) {
	for _, e := range s.efforts[s.in] {
		if e == "Max" || e == "Ultra" {
			more = append(more, e)
		} else {
			base = append(base, e)
		}
	}
	return base, more
}

func (s *simulator) draw() tmux.Capture {
	c := tmux.Capture{Pane: tmux.Pane{Width: 120, Height: 40}, Lines: []string{"• An answer."}}
	if s.open == "" {
		c.Pane.CursorFlag = true
		return c
	}
	title := map[kind]string{models: "Select Model and Effort", efforts: "Select Reasoning Level for " + s.labels[s.in], advanced: "Advanced Reasoning"}[s.open]
	c.Lines = append(c.Lines, "  "+title, "")
	rows, cursor, session := s.rows()
	from := max(0, min(cursor-shownRows/2, len(rows)-shownRows))
	to := min(len(rows), from+shownRows)
	if from > 0 {
		c.Lines = append(c.Lines, "↑")
	}
	for i := from; i < to; i++ {
		mark := "  "
		if i == cursor {
			mark = "› "
		}
		c.Lines = append(c.Lines, mark+rows[i])
	}
	if to < len(rows) {
		c.Lines = append(c.Lines, "↓")
	}
	foot := "  enter select · esc back"
	if session {
		foot = "  enter default · s session · esc back"
	}
	c.Lines = append(c.Lines, "", foot)
	return c
}

func (s *simulator) press(rt *rapid.T, k tmux.Key) {
	s.keys++
	n := 0
	if s.open != "" {
		rows, _, _ := s.rows()
		n = len(rows)
	}
	base, more := s.split()
	switch {
	case s.open == "":
		rt.Fatalf("the key %s was pressed in the composer", k)
	case k == tmux.Down && s.open == models:
		s.at = (s.at + 1) % n
	case k == tmux.Down:
		s.sub = (s.sub + 1) % n
	case k == tmux.Escape && s.open == models:
		s.open = ""
	case k == tmux.Escape && s.open == efforts:
		s.open = models
	case k == tmux.Escape:
		s.open, s.sub = efforts, len(base)
	case k == tmux.Enter && s.open == models:
		s.open, s.in, s.sub = efforts, s.at, 0
	case k == tmux.Enter && s.open == efforts && s.sub == len(base):
		s.open, s.sub = advanced, 0
	case k == tmux.Char('s') && s.open == efforts && s.sub < len(base):
		s.open, s.current = "", agent.Setting{Model: agent.LabelID(s.labels[s.in]), Effort: effortID(base[s.sub])}
	case k == tmux.Char('s') && s.open == advanced:
		s.open, s.current = "", agent.Setting{Model: agent.LabelID(s.labels[s.in]), Effort: effortID(more[s.sub])}
	default:
		rt.Fatalf("the key %s in the %s", k, s.open)
	}
}

// fly runs a pilot; the screen is drawn late and in any number of looks.
func (s *simulator) fly(rt *rapid.T, p agent.Pilot) agent.Step {
	p.Begin(s.draw())
	s.open = models
	s.frames = []tmux.Capture{s.draw()}
	for range 5000 {
		c := s.frames[0]
		if len(s.frames) > 1 && rapid.Bool().Draw(rt, "drawn") {
			s.frames = s.frames[1:]
			continue
		}
		screen := agent.Screen{State: agent.ScreenDialog, Composer: agent.ComposerAbsent}
		if c.Pane.CursorFlag {
			screen = idle
		}
		switch step := p.Next(c, screen); step.Do {
		case agent.DoPress:
			s.press(rt, step.Key)
			s.frames = append(s.frames, s.draw())
		case agent.DoWait:
			if len(s.frames) > 1 {
				s.frames = s.frames[1:]
			}
		default:
			return step
		}
	}
	rt.Fatalf("the pilot waits for ever in the %s", s.open)
	return agent.Step{}
}

func drawn(rt *rapid.T) *simulator {
	s := &simulator{}
	for i := range rapid.IntRange(1, 14).Draw(rt, "models") {
		s.labels = append(s.labels, fmt.Sprintf("GPT-%d.1 Terra", i+1))
		all := []string{"Low", "Medium", "High", "Extra high", "Max", "Ultra"}
		s.efforts = append(s.efforts, all[rapid.IntRange(0, 2).Draw(rt, "from"):rapid.IntRange(3, 6).Draw(rt, "to")])
	}
	if i := rapid.IntRange(-1, len(s.labels)-1).Draw(rt, "current"); i >= 0 {
		e := rapid.SampledFrom(s.efforts[i]).Draw(rt, "effort")
		s.current, s.at = agent.Setting{Model: agent.LabelID(s.labels[i]), Effort: effortID(e)}, i
	}
	return s
}

func (s *simulator) catalogue(rt *rapid.T) agent.ModelCatalogue {
	p := new(Catalogue)
	if step := s.fly(rt, p); step.Do != agent.DoDone {
		rt.Fatalf("%+v", step)
	}
	return p.Catalogue()
}

func TestReadingTheModelsIsCompleteAndChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawn(rt)
		before := s.current
		got := s.catalogue(rt)
		if s.current != before || s.open != "" || len(got.Models) != len(s.labels) {
			rt.Fatalf("%+v after %+v", got, s)
		}
		for i, m := range got.Models {
			var want []string
			for _, e := range s.efforts[i] {
				want = append(want, effortID(e))
			}
			if m.Label != s.labels[i] || !slices.Equal(m.Efforts, want) {
				rt.Fatalf("%d: %+v, want %v", i, m, want)
			}
		}
		if got.Effective.Model != before.Model || got.Effective.Effort != "" && got.Effective.Effort != before.Effort {
			rt.Fatalf("%+v, want %+v", got.Effective, before)
		}
	})
}

func TestAChoiceIsExactlyTheWantedOneOrNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawn(rt)
		cat := s.catalogue(rt)
		m := rapid.SampledFrom(cat.Models).Draw(rt, "model")
		want := agent.Setting{Model: m.ID, Effort: rapid.SampledFrom(m.Efforts).Draw(rt, "wanted")}
		before := s.current
		p := NewChoose(cat, want)
		if rapid.IntRange(0, 3).Draw(rt, "drift") == 0 { // another catalogue meanwhile
			s.labels[len(s.labels)-1] += "x"
			if len(s.labels) <= shownRows {
				if step := s.fly(rt, p); step.Do != agent.DoFail || s.current != before || s.keys == 0 && s.open == "" {
					rt.Fatalf("%+v %+v", step, s)
				}
				return
			}
		}
		step := s.fly(rt, p)
		switch {
		case step.Do == agent.DoFail && s.current == before:
		case step.Do == agent.DoDone && s.current == want && p.Already() == (before == want) && s.open == "":
		default:
			rt.Fatalf("want %+v, got %+v, %+v", want, s.current, step)
		}
	})
}

func TestDefaultsAreTheRootKeysOfTheConfiguration(t *testing.T) {
	got := Defaults("# model = \"no\"\nmodel = \"gpt-6.1-terra\" # mine\nmodel_reasoning_effort='high'\n[profiles.x]\nmodel = \"other\"\n")
	if got != (agent.Setting{Model: "gpt-6.1-terra", Effort: "high"}) {
		t.Errorf("%+v", got)
	}
	if Defaults("[x]\nmodel = \"a\"") != (agent.Setting{}) {
		t.Error("a key of a table was taken")
	}
}

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
	ar, err := txtar.ParseFile("testdata/2.1.197.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tmux.Capture{}
	for _, f := range ar.Files {
		_, body, _ := strings.Cut(string(f.Data), "\n")
		out[strings.TrimPrefix(f.Name, "claude-")] = tmux.Capture{Pane: tmux.Pane{Width: 120, Height: 40}, Lines: strings.Split(body, "\n")}
	}
	return out
}

var (
	idle   = agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
	dialog = agent.Screen{State: agent.ScreenDialog, Composer: agent.ComposerAbsent}
)

func TestRecordedPanelsAreReadAndOthersAreNot(t *testing.T) {
	r := recorded(t)
	for name, want := range map[string]kind{"status-shown": settings, "models": models, "models-right": models, "models-haiku": models,
		"status-typed": "", "status-closed": "", "models-closed": "", "plan": "", "default": ""} {
		if got := Shown(r[name]); got != string(want) {
			t.Errorf("%s is shown as %q", name, got)
		}
	}
	l, ok := read(r["models-right"])
	if !ok || len(l.rows) != 5 || l.at().label != "Sonnet 5 (1M context)" || !l.at().current || l.effort != "max" {
		t.Errorf("%+v %v", l, ok)
	}
	p := new(Status)
	if p.Next(r["status-shown"], dialog).Do != agent.DoWait {
		t.Error("the page was taken at the first look")
	}
	if step := p.Next(r["status-shown"], dialog); step.Key != tmux.Escape || p.Status().ThreadID != "7948792e-048a-4f7e-b1c4-fe279f6e2fc4" || p.Status().Dismissals != 1 {
		t.Errorf("%+v %+v", step, p.Status())
	}
	if p.Next(r["status-shown"], dialog).Do != agent.DoWait {
		t.Error("Escape was asked for twice")
	}
	if p.Next(r["status-closed"], idle).Do != agent.DoDone {
		t.Error("the free composer was not taken for the end")
	}
}

func TestTheModeIsTheLineBelowTheComposer(t *testing.T) {
	r := recorded(t)
	for name, want := range map[string]string{"default": "default", "accept-edits": "accept_edits", "plan": "plan", "auto": "auto"} {
		p := new(Permissions)
		if step := p.Next(r[name], idle); step.Do != agent.DoDone || p.Permissions().Current != want {
			t.Errorf("%s: %+v %+v", name, step, p.Permissions())
		}
		if new(Permissions).Next(r[name], dialog).Do != agent.DoWait {
			t.Errorf("%s was read below a dialog", name)
		}
	}
	// From default over accept edits to plan, each proved by the screen.
	p := NewChoosePermission(agent.Permissions{}, "plan")
	for _, name := range []string{"default", "accept-edits"} {
		if step := p.Next(r[name], idle); step.Key != tmux.BackTab || !step.Commits {
			t.Fatalf("%s: %+v", name, step)
		}
		if p.Next(r[name], idle).Do != agent.DoWait {
			t.Fatalf("%s: a key before the last one did anything", name)
		}
	}
	if p.Next(r["plan"], idle).Do != agent.DoDone {
		t.Error("not done")
	}
	// A walk that is cut off must not leave the agent in a mode that needs a person.
	for _, name := range []string{"plan", "auto"} {
		if step := NewChoosePermission(agent.Permissions{}, "default").Next(r[name], idle); step.Do != agent.DoFail {
			t.Errorf("from %s: %+v", name, step)
		}
	}
	q := new(Permissions)
	q.Next(r["plan"], idle)
	for _, c := range q.Permissions().Choices {
		if c.NeedsPerson != (c.ID != "plan") {
			t.Errorf("from plan: %+v", c)
		}
	}
}

// simulator behaves as the model picker was seen to: the effort is one for all rows, and
// its line is drawn after the mark of the row.
type simulator struct {
	labels  []string
	efforts [][]string // in the order of the circle; none for a model without
	open    bool
	at      int
	effort  string // shown, while the row has it
	current agent.Setting
	drawnAt string // the effort line of the last drawing
}

func (s *simulator) line() string {
	if len(s.efforts[s.at]) == 0 {
		return "  ○ Effort not supported for " + strings.TrimSuffix(s.labels[s.at], " (recommended)")
	}
	if !slices.Contains(s.efforts[s.at], s.effort) {
		return "  ● " + s.efforts[s.at][0] + " effort ←/→ to adjust"
	}
	return "  ● " + s.effort + " effort (default) ←/→ to adjust"
}

func (s *simulator) draw(effortLine string) tmux.Capture {
	bar := strings.Repeat("─", 60)
	c := tmux.Capture{Lines: []string{"❯ /model", "", bar}}
	if !s.open {
		c.Lines = append(c.Lines, "❯\u00a0", bar, "  ? for shortcuts")
		return c
	}
	c.Lines = append(c.Lines, "  Select model", "  What it does.", "")
	for i, l := range s.labels {
		mark := "  "
		if i == s.at {
			mark = "❯ "
		}
		if modelID(l) == s.current.Model {
			l += " ✔"
		}
		c.Lines = append(c.Lines, fmt.Sprintf("  %s%d. %s  What it is for", mark, i+1, l))
	}
	c.Lines = append(c.Lines, "", effortLine, "", "  Enter to set as default · s to use this session only · Esc to cancel")
	return c
}

func (s *simulator) press(rt *rapid.T, k tmux.Key) {
	all := s.efforts[s.at]
	switch {
	case !s.open:
		rt.Fatalf("the key %s was pressed in the composer", k)
	case k == tmux.Down:
		s.at = (s.at + 1) % len(s.labels)
	case k == tmux.Right && len(all) > 0:
		s.effort = all[(max(slices.Index(all, s.effort), 0)+1)%len(all)]
	case k == tmux.Escape:
		s.open = false
	case k == tmux.Char('s'):
		s.open = false
		s.current = agent.Setting{Model: modelID(s.labels[s.at]), Effort: agent.NoEffort}
		if len(all) > 0 {
			s.current.Effort = s.effort
		}
	case k != tmux.Right:
		rt.Fatalf("the key %s in the picker", k)
	}
}

func (s *simulator) fly(rt *rapid.T, p agent.Pilot) agent.Step {
	p.Begin(s.draw(""))
	s.open = true
	for i, l := range s.labels {
		if modelID(l) == s.current.Model {
			s.at = i
		}
	}
	if s.current.Effort != agent.NoEffort {
		s.effort = s.current.Effort
	}
	s.drawnAt = s.line()
	looks := 0
	for range 5000 {
		screen := idle
		if s.open {
			screen = dialog
		}
		// Late by any number of looks when the line tells so itself, else by one.
		late := strings.Contains(s.drawnAt, "not supported")
		if looks++; looks > 1 && !late || looks > 20 || rapid.Bool().Draw(rt, "whole") {
			s.drawnAt = s.line()
		}
		switch step := p.Next(s.draw(s.drawnAt), screen); step.Do {
		case agent.DoPress:
			s.press(rt, step.Key)
			looks = 0
		case agent.DoWait:
		default:
			return step
		}
	}
	rt.Fatalf("the pilot waits for ever")
	return agent.Step{}
}

func drawn(rt *rapid.T) *simulator {
	s := &simulator{labels: []string{"Default (recommended)"}}
	for i := range rapid.IntRange(0, 5).Draw(rt, "models") {
		s.labels = append(s.labels, fmt.Sprintf("Model %d (1M context)", i+1))
	}
	circle := []string{"low", "medium", "high", "xhigh", "max", "ultracode"}
	for range s.labels {
		// Each model with efforts has the same ones: it is not known what another does.
		s.efforts = append(s.efforts, rapid.SampledFrom([][]string{circle, circle, nil}).Draw(rt, "efforts"))
	}
	i := rapid.IntRange(0, len(s.labels)-1).Draw(rt, "current")
	s.current = agent.Setting{Model: modelID(s.labels[i]), Effort: agent.NoEffort}
	if s.effort = "high"; len(s.efforts[i]) > 0 {
		s.current.Effort = rapid.SampledFrom(circle).Draw(rt, "effort")
	}
	return s
}

func TestReadingTheModelsIsCompleteAndChoosesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawn(rt)
		before := s.current
		p := new(Catalogue)
		if step := s.fly(rt, p); step.Do != agent.DoDone {
			rt.Fatalf("%+v", step)
		}
		got := p.Catalogue()
		if s.current != before || s.open || got.Effective != before || len(got.Models) != len(s.labels) {
			rt.Fatalf("%+v after %+v", got, s)
		}
		for i, m := range got.Models {
			want := s.efforts[i]
			if want == nil {
				want = []string{agent.NoEffort}
			}
			if m.Label != s.labels[i] || !slices.Equal(m.Efforts, want) {
				rt.Fatalf("%d: %+v, want %v", i, m, want)
			}
		}
	})
}

func TestAChoiceIsExactlyTheWantedOneOrNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawn(rt)
		read := new(Catalogue)
		s.fly(rt, read)
		cat := read.Catalogue()
		m := rapid.SampledFrom(cat.Models).Draw(rt, "model")
		want := agent.Setting{Model: m.ID, Effort: rapid.SampledFrom(m.Efforts).Draw(rt, "wanted")}
		before := s.current
		if rapid.IntRange(0, 3).Draw(rt, "drift") == 0 {
			s.labels[len(s.labels)-1] += " x"
			if step := s.fly(rt, NewChoose(cat, want)); step.Do != agent.DoFail || s.current != before {
				rt.Fatalf("%+v", step)
			}
			return
		}
		p := NewChoose(cat, want)
		if step := s.fly(rt, p); step.Do != agent.DoDone || s.current != want || s.open || p.Already() != (before == want) {
			rt.Fatalf("want %+v, got %+v, %+v", want, s.current, step)
		}
		check := new(Setting)
		if step := s.fly(rt, check); step.Do != agent.DoDone || check.Setting() != want {
			rt.Fatalf("%+v is read as %+v", want, check.Setting())
		}
	})
}

package panel

import (
	"slices"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Bounds of a walk.
const (
	maxModels  = 32
	maxEfforts = 12
)

// Catalogue reads the model picker: for each row the efforts are turned once round, so
// that in the end everything is as it was, and the picker is left.
type Catalogue struct {
	seen      []agent.Model
	effective agent.Setting
	leaving   bool
	from      string // the row that the last Down left
	turned    string // the effort that the last Right left
	settled   settled
	shut      Close
}

// settled waits until a row is shown twice with the same effort: the line of the effort is
// drawn later than the mark of the row.
type settled struct{ label, effort string }

func (s *settled) at(l list) bool {
	now := settled{l.at().label, l.effort}
	same := *s == now
	*s = now
	return same
}

var _ agent.CataloguePilot = (*Catalogue)(nil)

func (p *Catalogue) Command() string    { return modelCommand }
func (p *Catalogue) Begin(tmux.Capture) {}

// Catalogue begins with the first row of the picker.
func (p *Catalogue) Catalogue() agent.ModelCatalogue {
	return agent.ModelCatalogue{Models: p.seen, Effective: p.effective}
}

func (p *Catalogue) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.leaving {
		return p.shut.Next(c, s)
	}
	l, ok := read(c)
	if !ok || l.at().label == p.from || p.turned == "" && !p.settled.at(l) {
		return agent.Wait()
	}
	p.from = ""
	at := l.at()
	if p.seen == nil { // the first look
		p.seen = make([]agent.Model, 0, len(l.rows))
		if at.current {
			p.effective = agent.Setting{Model: modelID(at.label), Effort: l.effort}
		}
		for _, r := range l.rows {
			m := agent.Model{ID: modelID(r.label), Label: r.label, Description: r.text}
			if m.ID == "" || len(p.seen) == maxModels || slices.ContainsFunc(p.seen, func(o agent.Model) bool { return o.ID == m.ID }) {
				return agent.Fail("the list of models is not of a known form")
			}
			p.seen = append(p.seen, m)
		}
	}
	if len(l.rows) != len(p.seen) || p.seen[l.cursor].Label != at.label {
		return agent.Fail("the list of models changed while it was read")
	}
	m := &p.seen[l.cursor]
	switch {
	case p.turned == "" && m.Efforts != nil: // once round
		p.leaving = true
		return p.shut.Next(c, s)
	case p.turned == l.effort:
		return agent.Wait()
	case len(m.Efforts) > 0 && l.effort == m.Efforts[0]: // once round
		p.turned = ""
		m.Efforts = fromLowest(m.Efforts)
		return p.down(l)
	case slices.Contains(m.Efforts, l.effort) || len(m.Efforts) == maxEfforts:
		return agent.Fail("the efforts do not go round")
	}
	if l.effort == agent.NoEffort { // what was shown before was the last row's
		m.Efforts, p.turned = []string{agent.NoEffort}, ""
		return p.down(l)
	}
	m.Efforts = append(m.Efforts, l.effort)
	p.turned = l.effort
	return agent.Press(tmux.Right)
}

func (p *Catalogue) down(l list) agent.Step {
	if len(l.rows) == 1 {
		return agent.Wait() // the next look sees it again, once round
	}
	p.from = l.at().label
	return agent.Press(tmux.Down)
}

func fromLowest(ids []string) []string {
	i := max(slices.Index(ids, lowestEffort), 0)
	return append(slices.Clone(ids[i:]), ids[:i]...)
}

// Setting reads the row that is marked and its effort.
type Setting struct {
	got     agent.Setting
	read    bool
	settled settled
	shut    Close
}

var _ agent.SettingPilot = (*Setting)(nil)

func (p *Setting) Command() string        { return modelCommand }
func (p *Setting) Begin(tmux.Capture)     {}
func (p *Setting) Setting() agent.Setting { return p.got }

func (p *Setting) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if !p.read {
		l, ok := read(c)
		if !ok || !p.settled.at(l) {
			return agent.Wait()
		}
		p.read = true
		if l.at().current { // the effort that is shown is the marked row's
			p.got = agent.Setting{Model: modelID(l.at().label), Effort: l.effort}
		}
	}
	return p.shut.Next(c, s)
}

// Choose chooses one model and effort for this session.
type Choose struct {
	cat     agent.ModelCatalogue
	want    agent.Setting
	looked  bool
	already bool
	leaving bool
	from    string
	turned  string
	keys    int
	settled settled
	shut    Close
}

var _ agent.ModelPilot = (*Choose)(nil)

// NewChoose returns the pilot that chooses want, which must be in cat.
func NewChoose(cat agent.ModelCatalogue, want agent.Setting) *Choose {
	return &Choose{cat: cat, want: want}
}

func (p *Choose) Command() string    { return modelCommand }
func (p *Choose) Begin(tmux.Capture) {}
func (p *Choose) Already() bool      { return p.already }

func (p *Choose) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.leaving {
		return p.shut.Next(c, s)
	}
	l, ok := read(c)
	if !ok || l.at().label == p.from || !p.settled.at(l) {
		return agent.Wait()
	}
	p.from = ""
	if !p.same(l) {
		return agent.Fail("the picker shows other models than before")
	}
	at := l.at()
	first := !p.looked
	p.looked = true
	if first && at.current && modelID(at.label) == p.want.Model && l.effort == p.want.Effort {
		p.already, p.leaving = true, true
		return p.shut.Next(c, s)
	}
	if p.keys++; p.keys > maxModels+maxEfforts {
		return agent.Fail("the picker does not come to the wanted row")
	}
	switch {
	case modelID(at.label) != p.want.Model:
		p.from = at.label
		return agent.Press(tmux.Down)
	case l.effort == p.want.Effort:
		p.leaving, p.shut.pressed = true, true // the choice closes it
		return agent.Commit(tmux.Char('s'))
	case l.effort == p.turned:
		p.keys--
		return agent.Wait()
	case l.effort == agent.NoEffort:
		return agent.Fail("the model has no efforts now")
	}
	p.turned = l.effort
	return agent.Press(tmux.Right)
}

func (p *Choose) same(l list) bool {
	return slices.EqualFunc(l.rows, p.cat.Models, func(r row, m agent.Model) bool { return r.label == m.Label })
}

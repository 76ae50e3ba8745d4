package panel

import (
	"slices"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Catalogue reads the model picker: each row is opened for its efforts and left again.
type Catalogue struct {
	phase   phase
	from    string // the row that the last Down left
	seen    []agent.Model
	first   int // index of the row numbered 1
	current string
	effort  string
	close   Close
}

type phase int

const (
	inModels phase = iota
	inEfforts
	inAdvanced
	leaving
)

var _ agent.CataloguePilot = (*Catalogue)(nil)

func (p *Catalogue) Command() string    { return modelCommand }
func (p *Catalogue) Begin(tmux.Capture) {}

// Catalogue is in the order of the picker.
func (p *Catalogue) Catalogue() agent.ModelCatalogue {
	out := agent.ModelCatalogue{Models: append(slices.Clone(p.seen[p.first:]), p.seen[:p.first]...)}
	if p.current != "" {
		out.Effective = agent.Setting{Model: p.current, Effort: p.effort}
	}
	return out
}

func (p *Catalogue) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.phase == leaving {
		return p.close.Next(c, s)
	}
	l, ok := read(c)
	switch {
	case !ok && p.phase == inEfforts && s.Free():
		return agent.Fail("the row did not open a list of efforts")
	case !ok:
		return agent.Wait()
	case p.phase == inEfforts:
		return p.efforts(l)
	case l.kind != models || l.at().label == p.from:
		return agent.Wait()
	}
	at := l.at()
	id := agent.LabelID(at.label)
	for _, m := range p.seen {
		if m.Label == at.label { // once round
			p.phase = leaving
			return p.close.Next(c, s)
		}
		if m.ID == id {
			return agent.Fail("two rows would have the id " + id)
		}
	}
	if len(p.seen) == maxMoves || id == "" {
		return agent.Fail("the list of models is not of a known form")
	}
	if at.first {
		p.first = len(p.seen)
	}
	if at.current {
		p.current = id
	}
	p.seen = append(p.seen, agent.Model{ID: id, Label: at.label, Description: at.text, Efforts: []string{}})
	if !manyEfforts.MatchString(at.label) {
		p.from = at.label
		return agent.Press(tmux.Down)
	}
	p.from, p.phase = "", inEfforts
	return agent.Commit(tmux.Enter) // a row without a list of efforts would be chosen
}

func (p *Catalogue) efforts(l list) agent.Step {
	m := &p.seen[len(p.seen)-1]
	switch {
	case l.kind == efforts && l.subject == m.Label && p.from != m.Label:
		m.Efforts = effortsOf(l)
		for _, r := range l.rows {
			if r.current && p.current == m.ID && !moreEfforts.MatchString(r.label) {
				p.effort = effortID(r.label)
			}
		}
		p.from = m.Label // read; the row stays where it is
		return agent.Press(tmux.Escape)
	case l.kind == models && p.from == m.Label && l.at().label == m.Label:
		p.phase = inModels
		if len(l.rows) == 1 {
			p.from = "" // the next look sees it again, once round
			return agent.Wait()
		}
		return agent.Press(tmux.Down)
	}
	return agent.Wait()
}

// effortsOf lists the ids of a picker of efforts, with those behind its last row.
func effortsOf(l list) []string {
	out := []string{}
	for _, r := range l.rows {
		if !moreEfforts.MatchString(r.label) {
			out = append(out, effortID(r.label))
			continue
		}
		m := moreNames.FindStringSubmatch(r.text)
		for i := 1; i < len(m); i++ {
			if m[i] != "" {
				out = append(out, effortID(m[i]))
			}
		}
	}
	return out
}

// Choose chooses one model and effort for this session.
type Choose struct {
	cat     agent.ModelCatalogue
	want    agent.Setting
	model   agent.Model
	phase   phase
	mover   mover
	current bool // the model is the current one
	already bool
	close   Close
}

var _ agent.ModelPilot = (*Choose)(nil)

// NewChoose returns the pilot that chooses want, which must be in cat.
func NewChoose(cat agent.ModelCatalogue, want agent.Setting) *Choose {
	p := &Choose{cat: cat, want: want}
	for _, m := range cat.Models {
		if m.ID == want.Model {
			p.model = m
		}
	}
	return p
}

func (p *Choose) Command() string    { return modelCommand }
func (p *Choose) Begin(tmux.Capture) {}
func (p *Choose) Already() bool      { return p.already }

func (p *Choose) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.phase == leaving {
		return p.close.Next(c, s)
	}
	l, ok := read(c)
	if !ok {
		return agent.Wait()
	}
	switch {
	case p.phase == inModels && l.kind == models:
		return p.inModels(l)
	case p.phase == inEfforts && l.kind == efforts && l.subject == p.model.Label:
		return p.inEfforts(l, c, s)
	case p.phase == inAdvanced && l.kind == advanced:
		return p.take(l, p.want.Effort)
	}
	return agent.Wait()
}

func (p *Choose) inModels(l list) agent.Step {
	labels := make([]string, len(p.cat.Models))
	for i, m := range p.cat.Models {
		labels[i] = m.Label
	}
	if !l.shows(labels) || !manyEfforts.MatchString(p.model.Label) {
		return agent.Fail("the picker shows other models than before")
	}
	there, step := p.mover.to(l, p.model.Label)
	if !there {
		return step
	}
	p.phase, p.mover, p.current = inEfforts, mover{}, l.at().current
	return agent.Commit(tmux.Enter)
}

func (p *Choose) inEfforts(l list, c tmux.Capture, s agent.Screen) agent.Step {
	if !slices.Equal(effortsOf(l), p.model.Efforts) {
		return agent.Fail("the picker shows other efforts than before")
	}
	for _, r := range l.rows {
		if effortID(r.label) != p.want.Effort || moreEfforts.MatchString(r.label) {
			continue
		}
		if r.current && p.current {
			p.already, p.phase = true, leaving
			return p.close.Next(c, s)
		}
		return p.take(l, p.want.Effort)
	}
	for _, r := range l.rows {
		if !moreEfforts.MatchString(r.label) {
			continue
		}
		there, step := p.mover.to(l, r.label)
		if !there {
			return step
		}
		p.phase, p.mover = inAdvanced, mover{}
		return agent.Press(tmux.Enter) // the row opens a list and chooses nothing
	}
	return agent.Fail("the picker does not show the effort")
}

// take goes to the effort and chooses it for this session.
func (p *Choose) take(l list, effort string) agent.Step {
	for _, r := range l.rows {
		if effortID(r.label) != effort {
			continue
		}
		there, step := p.mover.to(l, r.label)
		switch {
		case !there:
			return step
		case r.current && p.current:
			p.already, p.phase = true, leaving
			p.close.last, p.close.n = string(l.kind)+l.subject, 1
			return agent.Press(tmux.Escape)
		case !l.session:
			return agent.Fail("the picker does not offer to choose for this session only")
		}
		p.phase = leaving
		p.close.last = string(l.kind) + l.subject // the choice closes it
		return agent.Commit(tmux.Char('s'))
	}
	return agent.Fail("the picker does not show the effort")
}

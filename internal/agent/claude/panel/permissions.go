package panel

import (
	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// mode is the index in modes of what the line below the composer shows, -1 when that is
// none of them.
func mode(c tmux.Capture, s agent.Screen) int {
	lines := visible(c.Lines)
	if !s.Free() || len(lines) < 2 || !rule.MatchString(lines[len(lines)-2]) {
		return -1
	}
	for i, m := range modes {
		if m.footer.MatchString(lines[len(lines)-1]) {
			return i
		}
	}
	return -1
}

// risky reports whether the way round from one mode to another may pass one that only a
// person may choose: a walk that is cut off there would leave the agent in it.
func risky(from, to int) bool {
	for at := (from + 1) % len(modes); from != to && at != to; at = (at + 1) % len(modes) {
		if modes[at].needsPerson {
			return true
		}
	}
	return false
}

// Permissions reads the mode that is shown. It needs no key.
type Permissions struct{ got agent.Permissions }

var _ agent.PermissionsPilot = (*Permissions)(nil)

func (p *Permissions) Command() string                { return "" }
func (p *Permissions) Begin(tmux.Capture)             {}
func (p *Permissions) Permissions() agent.Permissions { return p.got }

func (p *Permissions) Next(c tmux.Capture, s agent.Screen) agent.Step {
	at := mode(c, s)
	if at < 0 {
		return agent.Wait()
	}
	p.got = agent.Permissions{Current: modes[at].id}
	for i, m := range modes {
		if m.always || i == at {
			p.got.Choices = append(p.got.Choices, agent.Permission{ID: m.id, Label: m.label, Description: m.text, NeedsPerson: m.needsPerson || risky(at, i)})
		}
	}
	return agent.Done()
}

// ChoosePermission goes round with Shift+Tab until the mode is shown.
type ChoosePermission struct {
	id      string
	start   int
	from    int // the mode that the last key left, -1 when none is awaited
	started bool
	moves   int
}

var _ agent.Pilot = (*ChoosePermission)(nil)

// NewChoosePermission returns the pilot that goes to the mode with the id.
func NewChoosePermission(_ agent.Permissions, id string) *ChoosePermission {
	return &ChoosePermission{id: id, from: -1}
}

func (p *ChoosePermission) Command() string    { return "" }
func (p *ChoosePermission) Begin(tmux.Capture) {}

func (p *ChoosePermission) Next(c tmux.Capture, s agent.Screen) agent.Step {
	at := mode(c, s)
	if at < 0 || at == p.from {
		return agent.Wait()
	}
	if !p.started {
		p.started, p.start = true, at
	}
	switch {
	case modes[at].id == p.id:
		return agent.Done()
	case p.moves > 0 && at == p.start:
		return agent.Fail("the mode is not in the circle of Shift+Tab; the mode is what it was")
	case p.moves > len(modes):
		return agent.Fail("Shift+Tab does not go round")
	}
	if next := (at + 1) % len(modes); modes[next].needsPerson {
		return agent.Fail("the next mode in the circle of Shift+Tab may be one that only a person may choose")
	}
	p.moves++
	p.from = at
	return agent.Commit(tmux.BackTab)
}

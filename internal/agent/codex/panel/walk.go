package panel

import (
	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// maxMoves bounds the keys that look for one row.
const maxMoves = 64

// mover brings the cursor of a picker to a row, one key at a time.
type mover struct {
	from  string // the row that the last key left, "" when none is awaited
	moves int
}

// to reports that the cursor is on label, or what to do until it is.
func (m *mover) to(l list, label string) (there bool, step agent.Step) {
	at := l.at().label
	switch {
	case at == m.from:
		return false, agent.Wait()
	case at == label:
		m.from = ""
		return true, agent.Step{}
	case m.moves == maxMoves:
		return false, agent.Fail("the row " + label + " is not in the picker")
	}
	m.from = at
	m.moves++
	return false, agent.Press(tmux.Down)
}

// Close leaves the pickers, from the innermost outwards.
type Close struct {
	last string // the picker that the last Escape was for
	n    int
}

func (p *Close) Command() string    { return "" }
func (p *Close) Begin(tmux.Capture) {}

// Next asks for one Escape per picker. It never asks for one on the free composer, where
// two of them would open another view.
func (p *Close) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if s.Free() {
		return agent.Done()
	}
	l, ok := read(c)
	if !ok {
		return agent.Wait()
	}
	sign := string(l.kind) + l.subject
	if sign == p.last {
		return agent.Wait()
	}
	if p.n++; p.n > len(titles)+1 {
		return agent.Fail("the pickers do not close")
	}
	p.last = sign
	return agent.Press(tmux.Escape)
}

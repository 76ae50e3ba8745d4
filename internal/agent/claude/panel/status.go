package panel

import (
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Status reads the status page of the settings and closes it. The page has the focus while
// it is shown and leaves only a word behind, so what is read is never an old one.
type Status struct {
	last  []agent.Field
	panel agent.StatusPanel
	shut  Close
}

var _ agent.StatusPilot = (*Status)(nil)

func (p *Status) Command() string           { return statusCommand }
func (p *Status) Begin(tmux.Capture)        {}
func (p *Status) Status() agent.StatusPanel { return p.panel }

func (p *Status) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.panel.Fields != nil {
		return p.shut.Next(c, s)
	}
	fields, ok := readStatus(c)
	if !ok {
		p.last = nil
		return agent.Wait()
	}
	if !slices.Equal(fields, p.last) { // it fills in by and by
		p.last = fields
		return agent.Wait()
	}
	p.panel.Fields, p.panel.Dismissals = fields, 1
	for _, f := range fields {
		if f.Name == fieldSession && threadID.MatchString(f.Value) {
			p.panel.ThreadID = f.Value
		}
	}
	return p.shut.Next(c, s)
}

func readStatus(c tmux.Capture) (out []agent.Field, ok bool) {
	p, shown := open(c)
	if !shown || p.kind != settings {
		return nil, false
	}
	needed := 0
	for _, line := range p.rows[:len(p.rows)-1] {
		if m := statusField.FindStringSubmatch(line); m != nil {
			out = append(out, agent.Field{Name: m[1], Value: strings.TrimSpace(m[2])})
			if m[1] == fieldVersion || m[1] == fieldSession {
				needed++
			}
		} else if m := statusMore.FindStringSubmatch(line); m != nil && len(out) > 0 {
			out[len(out)-1].Value += " " + m[1]
		}
	}
	return out, needed == 2
}

package panel

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Permissions reads the permission picker.
type Permissions struct {
	got  agent.Permissions
	read bool
	shut Close
}

var _ agent.PermissionsPilot = (*Permissions)(nil)

func (p *Permissions) Command() string                { return permissionCommand }
func (p *Permissions) Begin(tmux.Capture)             {}
func (p *Permissions) Permissions() agent.Permissions { return p.got }

func (p *Permissions) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.read {
		return p.shut.Next(c, s)
	}
	l, ok := read(c)
	if !ok || l.kind != permissions {
		return agent.Wait()
	}
	if l.cut {
		return agent.Fail("the pane is too low for the list of permissions")
	}
	p.got, p.read = permissionsOf(l), true
	return p.shut.Next(c, s)
}

func permissionsOf(l list) (out agent.Permissions) {
	for _, r := range l.rows {
		id := permissionID(r.label)
		out.Choices = append(out.Choices, agent.Permission{ID: id, Label: r.label, Description: r.text, NeedsPerson: !freePermission.MatchString(r.label)})
		if r.current {
			out.Current = id
		}
	}
	return out
}

func permissionID(label string) string { return strings.ReplaceAll(agent.LabelID(label), "-", "_") }

// ChoosePermission chooses one mode.
type ChoosePermission struct {
	offered agent.Permissions
	id      string
	chosen  bool
	mover   mover
	shut    Close
}

var _ agent.Pilot = (*ChoosePermission)(nil)

// NewChoosePermission returns the pilot that chooses the mode with the id.
func NewChoosePermission(offered agent.Permissions, id string) *ChoosePermission {
	return &ChoosePermission{offered: offered, id: id}
}

func (p *ChoosePermission) Command() string    { return permissionCommand }
func (p *ChoosePermission) Begin(tmux.Capture) {}

func (p *ChoosePermission) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if p.chosen {
		return p.shut.Next(c, s)
	}
	l, ok := read(c)
	if !ok || l.kind != permissions {
		return agent.Wait()
	}
	var labels []string
	label := ""
	for _, ch := range p.offered.Choices {
		labels = append(labels, ch.Label)
		if ch.ID == p.id && !ch.NeedsPerson {
			label = ch.Label
		}
	}
	if label == "" || !l.shows(labels) {
		return agent.Fail("the picker shows other permissions than before")
	}
	there, step := p.mover.to(l, label)
	if !there {
		return step
	}
	p.chosen = true
	p.shut.last = string(l.kind) // the choice closes it
	return agent.Commit(tmux.Enter)
}

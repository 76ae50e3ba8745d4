package panel

import (
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Status reads the status card, which is part of the conversation and takes no focus.
type Status struct {
	before []string
	last   []agent.Field
	panel  agent.StatusPanel
}

var (
	_ agent.StatusPilot  = (*Status)(nil)
	_ agent.SettingPilot = (*Status)(nil)
)

func (p *Status) Command() string           { return statusCommand }
func (p *Status) Begin(before tmux.Capture) { p.before = conversation(before) }
func (p *Status) Status() agent.StatusPanel { return p.panel }

// Next is done when a card that was not there before is the end of the conversation, with
// the composer free below it, in two looks.
func (p *Status) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if !s.Free() {
		return agent.Wait()
	}
	fields, ok := freshStatus(p.before, conversation(c))
	if !ok {
		p.last = nil
		return agent.Wait()
	}
	if !slices.Equal(fields, p.last) {
		p.last = fields
		return agent.Wait()
	}
	p.panel.Fields = fields
	for _, f := range fields {
		if f.Name == fieldSession && threadID.MatchString(f.Value) {
			p.panel.ThreadID = f.Value
		}
	}
	return agent.Done()
}

// Setting is the model of the card, as the id that its label has in the picker.
func (p *Status) Setting() agent.Setting {
	for _, f := range p.panel.Fields {
		if f.Name != fieldModel {
			continue
		}
		if m := statusModel.FindStringSubmatch(f.Value); m != nil {
			return agent.Setting{Model: agent.LabelID(m[1]), Effort: m[2]}
		}
	}
	return agent.Setting{}
}

// conversation is the rows above a free composer.
func conversation(c tmux.Capture) []string {
	y := c.Pane.CursorY - c.FirstRow
	if y < 0 || y > len(c.Lines) {
		return nil
	}
	return visible(c.Lines[:y])
}

// freshStatus reads the card at the end of now, if it came after before: the rows above
// its command must be the rows with which before ended. A card that stood there already
// is below rows that before continued.
func freshStatus(before, now []string) ([]agent.Field, bool) {
	echo := -1
	for i, line := range now {
		if line == statusCommand {
			echo = i
		}
	}
	if echo < 0 {
		return nil, false
	}
	above := now[:echo]
	if len(above) == 0 && slices.Contains(before, statusCommand) {
		return nil, false // nothing tells the new one from the old one
	}
	n := min(len(above), len(before))
	if !slices.Equal(above[len(above)-n:], before[len(before)-n:]) {
		return nil, false
	}
	return readStatus(now[echo+1:])
}

func readStatus(rows []string) (out []agent.Field, ok bool) {
	if len(rows) == 0 || !statusHead.MatchString(rows[0]) {
		return nil, false
	}
	needed := 0
	for _, line := range rows[1:] {
		if m := statusMore.FindStringSubmatch(line); m != nil && len(out) > 0 {
			out[len(out)-1].Value += " " + m[1]
			continue
		}
		m := statusField.FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		if m[1] == fieldModel || m[1] == fieldSession {
			needed++
		}
		out = append(out, agent.Field{Name: m[1], Value: strings.TrimSpace(m[2])})
	}
	return out, needed == 2
}

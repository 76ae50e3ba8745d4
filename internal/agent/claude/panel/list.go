// Package panel is what Claude Code's own command panels look like and how they are
// walked: the status page, the model picker with its efforts, the permission modes of
// Shift+Tab. Each walk is a state machine over captures that asks for one key at a time.
//
// It is pure. It must never know a terminal, a Turn or a file, and it never guesses: a
// screen that does not fit the data is waited for, and then nothing more is pressed.
package panel

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

type kind string

const (
	settings kind = "settings"
	models   kind = "model picker"
	rules    kind = "permission rules"
)

// panel is what stands below the last rule of the screen.
type panel struct {
	kind kind
	rows []string // below the title, with the footer
}

func open(c tmux.Capture) (panel, bool) {
	if c.Pane.InMode {
		return panel{}, false
	}
	lines := visible(c.Lines)
	at := -1
	for i, l := range lines {
		if rule.MatchString(l) {
			at = i
		}
	}
	if at < 0 || at+2 >= len(lines) || !escFooter.MatchString(lines[len(lines)-1]) {
		return panel{}, false
	}
	for _, t := range titles {
		if t.find.MatchString(lines[at+1]) {
			return panel{t.kind, lines[at+2:]}, true
		}
	}
	return panel{}, false
}

// list is the open model picker.
type list struct {
	rows   []row
	cursor int
	effort string // id; [agent.NoEffort] when the row has none
}

type row struct {
	label, text string
	current     bool
}

func (l list) at() row { return l.rows[l.cursor] }

func read(c tmux.Capture) (list, bool) {
	p, ok := open(c)
	if !ok || p.kind != models || !modelFooter.MatchString(p.rows[len(p.rows)-1]) {
		return list{}, false
	}
	l, without := list{cursor: -1}, ""
	for _, line := range p.rows {
		if m := modelRow.FindStringSubmatch(line); m != nil {
			if strings.HasPrefix(m[1], "❯") {
				if l.cursor >= 0 {
					return list{}, false
				}
				l.cursor = len(l.rows)
			}
			parts := labelAndText.FindStringSubmatch(m[3])
			r := row{label: parts[1], text: parts[2]}
			if m := currentMark.FindStringSubmatch(r.label); m != nil {
				r.label, r.current = m[1], true
			}
			l.rows = append(l.rows, r)
		} else if m := effortRow.FindStringSubmatch(line); m != nil {
			l.effort = agent.LabelID(m[1])
		} else if m := noEffortRow.FindStringSubmatch(line); m != nil {
			l.effort, without = agent.NoEffort, m[1]
		} else if m := continuedRow.FindStringSubmatch(line); m != nil && len(l.rows) > 0 && l.effort == "" {
			last := &l.rows[len(l.rows)-1]
			last.text = strings.TrimSpace(last.text + " " + m[1])
		}
	}
	if l.cursor < 0 || l.effort == "" {
		return list{}, false
	}
	// The line of the effort is drawn later than the mark of the row; this form names its row.
	return l, without == "" || strings.HasPrefix(l.at().label, without) || strings.HasPrefix(without, l.at().label)
}

// modelID is the id that the row's label gets.
func modelID(label string) string {
	if m := adviceMark.FindStringSubmatch(label); m != nil {
		label = m[1]
	}
	return agent.LabelID(label)
}

// Shown names the panel that has the focus, "" for none.
func Shown(c tmux.Capture) string {
	p, ok := open(c)
	if !ok {
		return ""
	}
	return string(p.kind)
}

func visible(lines []string) (out []string) {
	for _, l := range lines {
		if l = strings.TrimRight(l, " \t\u00a0"); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// Close leaves a panel with one Escape.
type Close struct{ pressed bool }

func (p *Close) Command() string    { return "" }
func (p *Close) Begin(tmux.Capture) {}

// Next never asks for Escape on the free composer, where two of them would open another
// view.
func (p *Close) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if s.Free() {
		return agent.Done()
	}
	if _, ok := open(c); !ok || p.pressed {
		return agent.Wait()
	}
	p.pressed = true
	return agent.Press(tmux.Escape)
}

// Package panel is what Codex's own command panels look like and how they are walked: the
// status card, the pickers of models, efforts and permissions. Each walk is a state
// machine over captures that asks for one key at a time.
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
	models      kind = "model picker"
	efforts     kind = "effort picker"
	advanced    kind = "picker of further efforts"
	permissions kind = "permission picker"
)

// list is an open picker.
type list struct {
	kind    kind
	subject string // of efforts: the label of the model
	rows    []row
	cursor  int
	cut     bool // there are rows that are not shown
	session bool // "s" chooses for this session
}

type row struct {
	first         bool // numbered 1
	label, text   string
	current, deft bool
}

func (l list) at() row { return l.rows[l.cursor] }

// read reads the picker that has the focus. It reports false for anything else, and for a
// picker that is not whole or not well formed.
func read(c tmux.Capture) (list, bool) {
	if c.Pane.CursorFlag || c.Pane.InMode {
		return list{}, false
	}
	lines := visible(c.Lines)
	if len(lines) == 0 {
		return list{}, false
	}
	end := footer.FindStringSubmatch(lines[len(lines)-1])
	if end == nil {
		return list{}, false
	}
	l, from := list{cursor: -1, session: end[1] != ""}, -1
	for i, line := range lines {
		for _, t := range titles {
			if m := t.find.FindStringSubmatch(line); m != nil {
				l.kind, l.subject, from = t.kind, "", i+1
				if len(m) > 1 {
					l.subject = m[1]
				}
			}
		}
	}
	if from < 0 {
		return list{}, false
	}
	for _, line := range lines[from : len(lines)-1] {
		if !l.add(line) {
			return list{}, false
		}
	}
	return l, l.cursor >= 0 && l.distinct()
}

// add takes one row; it reports false for one that no picker has.
func (l *list) add(line string) bool {
	mark, rest, first := "", "", false
	if m := numberedRow.FindStringSubmatch(line); m != nil {
		mark, rest, first = m[1], m[3], m[2] == "1"
	} else if m := unnumberedRow.FindStringSubmatch(line); m != nil {
		mark, rest = m[1], m[2]
	} else if m := continuedRow.FindStringSubmatch(line); m != nil && len(l.rows) > 0 {
		last := &l.rows[len(l.rows)-1]
		last.text = strings.TrimSpace(last.text + " " + m[1])
		return true
	} else if hiddenRows.MatchString(line) {
		l.cut = true
		return true
	} else {
		return noteRow.MatchString(line)
	}
	r := row{first: first}
	m := labelAndText.FindStringSubmatch(rest)
	r.label, r.text = m[1], m[2]
	for {
		m := labelMark.FindStringSubmatch(r.label)
		if m == nil {
			break
		}
		r.label, r.current, r.deft = m[1], r.current || m[2] == "current", r.deft || m[2] == "default"
	}
	if strings.HasPrefix(mark, cursorGlyph) {
		if l.cursor >= 0 {
			return false
		}
		l.cursor = len(l.rows)
	}
	l.rows = append(l.rows, r)
	return true
}

func (l list) distinct() bool {
	seen := map[string]bool{}
	for _, r := range l.rows {
		if seen[r.label] {
			return false
		}
		seen[r.label] = true
	}
	return true
}

// find returns the index of the row with the label, -1 when it is not shown.
func (l list) find(label string) int {
	for i, r := range l.rows {
		if r.label == label {
			return i
		}
	}
	return -1
}

// shows reports whether the rows are labels, or a run of them when some are hidden.
func (l list) shows(labels []string) bool {
	if !l.cut && len(l.rows) != len(labels) {
		return false
	}
	for from := 0; from+len(l.rows) <= len(labels); from++ {
		same := true
		for i, r := range l.rows {
			same = same && r.label == labels[from+i]
		}
		if same {
			return true
		}
	}
	return false
}

// visible returns the rows that show something, without blanks at their ends.
func visible(lines []string) (out []string) {
	for _, l := range lines {
		if l = strings.TrimRight(l, " \t"); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// Shown names the picker that has the focus, "" for none.
func Shown(c tmux.Capture) string {
	l, ok := read(c)
	if !ok {
		return ""
	}
	return string(l.kind)
}

func effortID(label string) string {
	if id, ok := effortNames[label]; ok {
		return id
	}
	return agent.LabelID(label)
}

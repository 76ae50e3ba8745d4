package tmux

import (
	"bytes"
	"strconv"
	"strings"
)

// A row is printed as START field SEP field SEP ... END. The three marks hold a nonce of
// this one command, so no value can imitate them, whatever blanks, line feeds or escape
// characters it holds; and they are plain letters, so no tmux version rewrites them.
type marks struct{ start, sep, end string }

func newMarks() marks {
	n := newNonce()
	return marks{start: "<<" + n + "<", sep: "=" + n + "=", end: ">" + n + ">>"}
}

// numbers are the fields that tmux makes itself; texts are the ones that people and
// programs make. Each text is preceded by its length in bytes, because versions 3.4 and
// 3.5 print control characters as escapes: the length tells whether that happened.
var (
	numbers = []string{
		"pane_id", "pane_pid", "pane_dead", "pane_in_mode", "pane_input_off", "pane_synchronized",
		"window_index", "pane_index", "pane_width", "pane_height", "cursor_x", "cursor_y",
		"cursor_flag", "alternate_on", "bracket_paste_flag", "pid", "version",
	}
	texts = []string{"session_name", "pane_current_command", "pane_current_path", "pane_title"}
)

func (m marks) format() string {
	fields := make([]string, 0, len(numbers)+2*len(texts))
	for _, f := range numbers {
		fields = append(fields, "#{"+f+"}")
	}
	for _, f := range texts {
		fields = append(fields, "#{n:"+f+"}", "#{"+f+"}")
	}
	return m.start + strings.Join(fields, m.sep) + m.end
}

// parse reads every row of out. It returns the panes and how many rows were rejected.
func (m marks) parse(out []byte, socket string) (panes []Pane, rejected int) {
	parts := bytes.Split(out, []byte(m.start))
	for _, part := range parts[1:] {
		row, _, ok := bytes.Cut(part, []byte(m.end))
		if !ok {
			rejected++
			continue
		}
		p, ok := parseRow(strings.Split(string(row), m.sep))
		if !ok {
			rejected++
			continue
		}
		p.Socket = socket
		panes = append(panes, p)
	}
	return panes, rejected
}

// empty reports that tmux printed a row for a pane that does not exist.
func (m marks) empty(out []byte) bool { return bytes.Contains(out, []byte(m.start+m.sep)) }

func parseRow(f []string) (Pane, bool) {
	if len(f) != len(numbers)+2*len(texts) {
		return Pane{}, false
	}
	r := reader{fields: f, ok: true}
	var p Pane
	p.ID = r.paneID()
	p.PID = r.number()
	p.Dead = r.bit()
	p.InMode = r.number() > 0 // the number of stacked modes
	p.InputOff, p.Synced = r.bit(), r.bit()
	p.Window, p.Index, p.Width, p.Height = r.number(), r.number(), r.number(), r.number()
	p.CursorX, p.CursorY = r.number(), r.number()
	p.CursorFlag, p.AlternateOn = r.bit(), r.bit()
	p.BracketedPaste = r.flag()
	p.ServerPID = r.number()
	p.Version = r.next()
	p.Session, p.Command, p.Path, p.Title = r.text(), r.text(), r.text(), r.text()
	return p, r.ok
}

// reader takes fields in order; ok turns false at the first one that is not what it
// should be.
type reader struct {
	fields []string
	ok     bool
}

func (r *reader) next() string {
	s := r.fields[0]
	r.fields = r.fields[1:]
	return s
}

func (r *reader) paneID() string {
	s := r.next()
	r.ok = r.ok && validPaneID(s)
	return s
}

func (r *reader) number() int {
	n, err := strconv.Atoi(r.next())
	if err != nil || n < -1 { // tmux prints -1 for the pid of an empty pane
		r.ok = false
	}
	return max(n, 0)
}

// bit reads 0 or 1. Empty is 0: tmux prints nothing for some flags that are off.
func (r *reader) bit() bool {
	switch r.next() {
	case "1":
		return true
	case "", "0":
	default:
		r.ok = false
	}
	return false
}

func (r *reader) flag() Flag {
	switch r.next() {
	case "1":
		return FlagOn
	case "0":
		return FlagOff
	}
	return FlagUnknown
}

// text reads a length and a value. A value that cannot be told exactly is empty, which
// matches nothing; the row is kept, so that nobody can hide a pane by its title.
func (r *reader) text() string {
	n, err := strconv.Atoi(r.next())
	s := r.next()
	if err != nil {
		r.ok = false
		return ""
	}
	if len(s) == n {
		return s
	}
	if s := unvis(s); len(s) == n {
		return s
	}
	return ""
}

func validPaneID(s string) bool {
	digits, ok := strings.CutPrefix(s, "%")
	if !ok || digits == "" || len(digits) > 10 {
		return false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// unvis undoes the escapes of vis(3) with octal and C styles. A backslash that begins no
// escape stands for itself, as tmux does not double it.
func unvis(s string) string {
	const letters, values = "abfnrtvs", "\a\b\f\n\r\t\v "
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) && s[i+1] < '4' {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		if k := strings.IndexByte(letters, s[i+1]); k >= 0 {
			b.WriteByte(values[k])
			i++
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

package term

import (
	"fmt"
	"io"
	"strings"
)

// Frame is a whole screen: lines (with SGR sequences, no other controls) and the cursor.
type Frame struct {
	Lines      []string
	CursorX    int
	CursorY    int
	ShowCursor bool
	Title      string
}

// Painter draws frames, only the lines that changed, in one write each.
type Painter struct {
	W       io.Writer
	last    []string
	title   string
	shown   bool
	started bool
}

// Reset ends every style.
const Reset = "\x1b[0m"

// Dim is s dimmed.
func Dim(s string) string { return "\x1b[2m" + s + Reset }

// Bold is s in bold.
func Bold(s string) string { return "\x1b[1m" + s + Reset }

// Invalidate makes the next Paint draw everything.
func (p *Painter) Invalidate() { p.last, p.started = nil, false }

// Paint brings the screen to f.
func (p *Painter) Paint(f Frame) {
	var b strings.Builder
	if p.shown && !f.ShowCursor {
		b.WriteString("\x1b[?25l")
	}
	if !p.started {
		b.WriteString("\x1b[2J")
		p.started = true
	}
	for i, l := range f.Lines {
		if i >= len(p.last) || p.last[i] != l {
			fmt.Fprintf(&b, "\x1b[%d;1H%s%s\x1b[K", i+1, Reset+l, Reset)
		}
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", f.CursorY+1, f.CursorX+1)
	if f.ShowCursor && !p.shown {
		b.WriteString("\x1b[?25h")
	}
	if f.Title != p.title {
		fmt.Fprintf(&b, "\x1b]0;%s\x07", f.Title)
	}
	p.last, p.title, p.shown = f.Lines, f.Title, f.ShowCursor
	io.WriteString(p.W, b.String()) // a terminal that is gone ends the program through SIGHUP
}

// Fit returns exactly h lines: the last ones when there are too many, blank ones after
// them when there are too few.
func Fit(lines []string, h int) []string {
	h = max(h, 0)
	if len(lines) > h {
		return lines[len(lines)-h:]
	}
	out := make([]string, h)
	copy(out, lines)
	return out
}

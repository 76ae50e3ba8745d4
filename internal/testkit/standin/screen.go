package standin

import (
	"fmt"
	"io"
	"strings"
)

// frame is a whole screen: lines (with SGR sequences, no other controls) and the cursor.
type frame struct {
	lines      []string
	cursorX    int
	cursorY    int
	showCursor bool
	title      string
}

// painter draws frames, only the lines that changed, in one write each.
type painter struct {
	w     io.Writer
	last  []string
	title string
	shown bool
	first bool
}

const reset = "\x1b[0m"

func dim(s string) string  { return "\x1b[2m" + s + reset }
func bold(s string) string { return "\x1b[1m" + s + reset }

func (p *painter) invalidate() { p.last, p.first = nil, true }

func (p *painter) paint(f frame) {
	var b strings.Builder
	if p.shown && !f.showCursor {
		b.WriteString("\x1b[?25l")
	}
	if p.first {
		b.WriteString("\x1b[2J")
		p.first = false
	}
	for i, l := range f.lines {
		if i >= len(p.last) || p.last[i] != l {
			fmt.Fprintf(&b, "\x1b[%d;1H%s%s\x1b[K", i+1, reset+l, reset)
		}
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", f.cursorY+1, f.cursorX+1)
	if f.showCursor && !p.shown {
		b.WriteString("\x1b[?25h")
	}
	if f.title != p.title {
		fmt.Fprintf(&b, "\x1b]0;%s\x07", f.title)
	}
	p.last, p.title, p.shown = f.lines, f.title, f.showCursor
	io.WriteString(p.w, b.String()) // a terminal that is gone ends the program through SIGHUP
}

// fit returns exactly h lines: the last ones when there are too many, blank ones after
// them when there are too few.
func fit(lines []string, h int) []string {
	h = max(h, 0)
	if len(lines) > h {
		return lines[len(lines)-h:]
	}
	out := make([]string, h)
	copy(out, lines)
	return out
}

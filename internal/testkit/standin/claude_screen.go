package standin

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

// promptSign is the composer's sign and the NO-BREAK SPACE after it; everywhere else the
// sign is followed by a plain blank.
const promptSign = "❯\u00a0"

func (c *claude) sign() string {
	if c.a.cfg.Mode.OtherGlyphs {
		return "▷\u00a0"
	}
	return promptSign
}

func gray(s string) string { return "\x1b[38;5;246m" + s + "\x1b[39m" }

func (c *claude) title() string {
	if c.session == "" {
		return ""
	}
	name := "Claude Code"
	if c.titled {
		name = "fake title"
	}
	if c.a.state == working {
		return "⠐ " + name
	}
	return "✳ " + name
}

// draw flows from the top; the cursor is never shown, a reversed blank stands for it.
func (c *claude) draw(cols, rows int) term.Frame {
	f := term.Frame{Title: c.title()}
	lines := c.conversation(cols)
	rule := "\x1b[38;5;244m" + strings.Repeat("─", cols) + "\x1b[39m"
	if d := c.a.dlg; d != nil {
		part := c.dialog(d)
		if d.kind == dialogApproval {
			lines = append(lines, "", rule)
		} else {
			lines = []string{"", rule}
		}
		f.CursorX = 1
		f.CursorY = len(lines) + c.selectedLine(part)
		lines = append(lines, part...)
	} else {
		lines = append(lines, c.activity(cols)...)
		if len(c.a.queue) == 0 {
			lines = append(lines, "")
		}
		draft, foot := c.composer(cols)
		lines = append(append(lines, rule), draft...)
		f.CursorY = len(lines) - 1
		f.CursorX = 2 + term.Width(term.Strip(draft[len(draft)-1])) - 3
		if c.a.comp.empty() {
			f.CursorX = 2
		}
		lines = append(lines, rule, foot)
	}
	over := max(0, len(lines)-rows)
	f.CursorY -= over
	f.Lines = term.Fit(lines, rows)
	return f
}

func (c *claude) selectedLine(lines []string) int {
	for i, l := range lines {
		if strings.Contains(l, "❯") {
			return i
		}
	}
	return 0
}

// activity is the working line and the queued prompts.
func (c *claude) activity(cols int) []string {
	var out []string
	if t := c.a.turn; t != nil && c.a.state == working {
		star := "✶"
		if c.a.cfg.Mode.OtherGlyphs {
			star = "◐"
		}
		out = append(out, "", fmt.Sprintf("\x1b[38;5;174m%s Wrangling…\x1b[39m (%ds · ↓ %d tokens)", star,
			int(time.Since(t.started).Seconds()), len(t.partial)/4))
	}
	if len(c.a.queue) > 0 {
		out = append(out, "", "")
		for _, q := range c.a.queue {
			out = append(out, term.Clip("  ❯ "+firstLine(q), cols))
		}
	}
	return out
}

// composer is the draft with the cursor, and the line below it.
func (c *claude) composer(cols int) (lines []string, foot string) {
	const cursor = "\x1b[7m \x1b[27m"
	switch {
	case len(c.a.queue) > 0 || c.a.parked:
		lines = []string{c.sign() + term.Dim("Press up to edit queued messages")}
	case c.a.comp.empty():
		lines = []string{c.sign() + cursor}
	default:
		for i, l := range term.Wrap(c.a.comp.shown(), cols-4) {
			lead := "  "
			if i == 0 {
				lead = c.sign()
			}
			lines = append(lines, lead+l)
		}
		lines[len(lines)-1] += cursor
	}
	switch {
	case c.a.state == working:
		foot = "  " + gray("esc to interrupt · ← for agents")
	case time.Since(c.a.lastCtrlC) < ctrlCTwice:
		foot = "  " + gray("Press Ctrl-C again to exit")
	case c.a.comp.empty():
		foot = "  " + gray("? for shortcuts · ← for agents")
	}
	return lines, foot
}

func (c *claude) dialog(d *dialog) []string {
	mark := func(n int, text string) string {
		if n == d.selected {
			return " \x1b[38;5;153m❯\x1b[39m " + text
		}
		return "   " + text
	}
	switch d.kind {
	case dialogTrust:
		return []string{" " + term.Bold("Accessing workspace:"), "", " " + c.a.cfg.Cwd, "",
			" Quick safety check: Is this a project you created or one you trust?", "",
			" Claude Code'll be able to read, edit, and execute files here.", "",
			mark(0, "1. Yes, I trust this folder"), mark(1, "2. No, exit"), "", " Enter to confirm · Esc to cancel"}
	case dialogOnboarding:
		return []string{" Let's get started.", "", " Choose the look of your terminal", ""}
	}
	return []string{" " + term.Bold("Bash command"), "", "   " + d.call.cmd, "   " + gray("Run "+d.call.cmd), "",
		" Do you want to proceed?", mark(0, "1. Yes"), mark(1, "2. Yes, and don't ask again for "+firstWord(d.call.cmd)+" commands"),
		mark(2, "3. No"), "", " " + gray("Esc to cancel · Tab to amend · ctrl+e to explain")}
}

func (c *claude) conversation(cols int) []string {
	out := []string{
		"\x1b[38;5;174m ▐▛███▜▌\x1b[39m   " + term.Bold("Claude") + " " + term.Bold("Code") + " " + gray("v"+ClaudeVersion),
		"\x1b[38;5;174m▝▜█████▛▘\x1b[39m  " + gray("Opus 4.8 (1M context) · API Usage Billing"),
		"\x1b[38;5;174m  ▘▘ ▝▝\x1b[39m    " + gray(c.a.cfg.Cwd), "",
	}
	for _, b := range c.a.blocks {
		out = append(append(out, ""), c.block(b, cols)...)
	}
	if t := c.a.turn; t != nil {
		switch {
		case t.call != nil:
			out = append(out, "", "● "+callTitle(t.call), "  ⎿  Waiting…")
		case t.partial != "":
			out = append(append(out, ""), term.Indent("● ", term.Wrap(t.partial, cols-2))...)
		}
	}
	return out
}

func (c *claude) block(b block, cols int) []string {
	switch b.kind {
	case blockUser:
		return term.Indent("\x1b[38;5;239m❯\x1b[39m ", term.Wrap(b.text, cols-2))
	case blockAgent:
		return term.Indent("● ", term.Wrap(b.text, cols-2))
	case blockTool:
		return append(term.Indent("● ", term.Wrap(b.text, cols-2)), term.Indent("  ⎿  ", term.Wrap(b.more, cols-5))...)
	case blockShell:
		return append(term.Indent("! ", term.Wrap(b.text, cols-2)), term.Indent("  ⎿  ", term.Wrap(b.more, cols-5))...)
	case blockWorked:
		return []string{gray("✻ " + b.text)}
	}
	return term.Wrap(b.text, cols)
}

package standin

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

const placeholder = "Ask Codex to do anything"

// glyph is the composer's prompt sign.
func (c *codex) glyph() string {
	if c.a.cfg.Mode.OtherGlyphs {
		return "»"
	}
	return "›"
}

// title is what the pane shows: by default the folder with a spinner or a call for
// action; state and thread id when the configuration asks for them.
func (c *codex) title() string {
	if c.thread == "" {
		return ""
	}
	if c.threadTitle {
		id := c.thread
		if len(id) > 29 {
			id = id[:29] + "..."
		}
		return map[state]string{idle: "Ready", working: "Working", waiting: "[ ! ] Action Required"}[c.a.state] + " | " + id
	}
	name := filepath.Base(c.a.cfg.Cwd)
	if c.titled {
		name = "fake title | " + name
	}
	switch c.a.state {
	case working:
		return "⠴ " + name
	case waiting:
		return "[ . ] Action Required | " + name
	}
	return name
}

func (c *codex) draw(cols, rows int) term.Frame {
	f := term.Frame{Title: c.title()}
	var bottom []string
	switch {
	case c.a.dlg != nil:
		bottom = c.dialog(c.a.dlg)
		f.CursorX, f.CursorY = cols-1, rows-1
	default:
		bottom, f.CursorX = c.composer(cols, rows)
		f.CursorY, f.ShowCursor = rows-4, true
	}
	above := c.conversation(cols)
	f.Lines = append(term.Fit(above, rows-len(bottom)), bottom...)
	f.Lines = term.Fit(f.Lines, rows)
	return f
}

// composer is the lower part of the screen and the cursor's column. The composer's last
// line is the fourth from below.
func (c *codex) composer(cols, rows int) (lines []string, x int) {
	if w := c.workingLine(); w != "" {
		lines = append(lines, "", w)
	}
	if len(c.a.queue) > 0 {
		lines = append(lines, "", "• "+term.Bold("Queued follow-up inputs"))
		for _, q := range c.a.queue {
			lines = append(lines, "  ↳ "+firstLine(q))
		}
		lines = append(lines, "    shift+← edit last queued message")
	}
	lines = append(lines, "", "")
	x = 2
	hint := "  " + term.Bold("←") + " for agents · " + term.Bold("?") + " for shortcuts"
	if c.a.comp.empty() {
		lines = append(lines, term.Bold(c.glyph())+" "+term.Dim(placeholder))
	} else {
		draft := term.Wrap(c.a.comp.shown(), cols-3)
		if limit := max(1, rows/2); len(draft) > limit {
			draft = draft[len(draft)-limit:]
		}
		for i, l := range draft {
			lead := "  "
			if i == 0 {
				lead = term.Bold(c.glyph()) + " "
			}
			lines = append(lines, lead+l)
		}
		x = 2 + term.Width(draft[len(draft)-1])
		hint = ""
		if c.a.state == working {
			hint = "  tab to queue message"
		}
	}
	foot := "  fake-model default · " + c.a.cfg.Cwd
	if c.titled {
		foot += " · fake title"
	}
	return append(lines, "", term.Clip(foot, cols), hint), x
}

// workingLine is shown until the answer streams; then the screen looks idle although the
// turn goes on.
func (c *codex) workingLine() string {
	t := c.a.turn
	if c.a.state != working || t == nil || t.partial != "" {
		return ""
	}
	bullet := "• "
	if c.threadTitle {
		bullet = "" // animations are off in that configuration
	}
	return fmt.Sprintf("%s%s (%ds • %s to interrupt)", bullet, term.Dim("Working"), int(time.Since(t.started).Seconds()), term.Bold("esc"))
}

func (c *codex) dialog(d *dialog) []string {
	mark := func(n int, text string) string {
		if n == d.selected {
			return "\x1b[1;7m" + "› " + text + term.Reset
		}
		return "  " + text
	}
	switch d.kind {
	case dialogTrust:
		return []string{"", "  " + term.Bold("Folder access"), "", "  " + c.a.cfg.Cwd, "",
			"  Trust this folder? Codex can read, edit, and run files here, subject to your permission settings.", "",
			mark(0, "1. Trust and continue"), mark(1, "2. Back to Agent Command Center"), "", "  enter continue · esc back"}
	case dialogOnboarding:
		return []string{"", "  Welcome aboard", "", "  Sign in to go on.", ""}
	}
	lines := []string{"", "", "  " + term.Bold("Would you like to run the following command?"), "", "  Environment: " + term.Bold("local"), ""}
	if d.call.reason != "" {
		lines = append(lines, "  Reason: \x1b[3m"+d.call.reason+term.Reset, "")
	}
	return append(lines, "  $ "+d.call.cmd, "", "",
		mark(0, "1. Yes, proceed (y)"),
		mark(1, "2. Yes, and don't ask again for commands that start with `"+firstWord(d.call.cmd)+"` (p)"),
		mark(2, "3. No, and tell Codex what to do differently (esc)"), "",
		"  "+term.Dim("Press ")+term.Bold("enter")+term.Dim(" to confirm or ")+term.Bold("esc")+term.Dim(" to cancel"))
}

// conversation is everything above the composer or the dialog.
func (c *codex) conversation(cols int) []string {
	out := []string{"", "  >_ " + term.Bold("OpenAI Codex") + term.Dim(" (v"+CodexVersion+")"), "     " + term.Dim(c.a.cfg.Cwd), ""}
	for _, b := range c.a.blocks {
		out = append(out, c.block(b, cols)...)
		out = append(out, "")
	}
	if t := c.a.turn; t != nil {
		switch {
		case t.call != nil && t.call.cmd != "":
			out = append(out, "• "+term.Bold("Running")+" "+t.call.cmd, "")
		case t.partial != "":
			out = append(out, term.Indent("• ", term.Wrap(t.partial, cols-2))...)
			out = append(out, "")
		}
	}
	return out
}

func (c *codex) block(b block, cols int) []string {
	switch b.kind {
	case blockUser:
		lines := term.Indent(term.Bold(c.glyph())+" ", term.Wrap(b.text, cols-2))
		return append(append([]string{""}, lines...), "")
	case blockAgent:
		return term.Indent("• ", term.Wrap(b.text, cols-2))
	case blockTool, blockShell:
		verb := "Ran"
		if b.kind == blockShell {
			verb = "You ran"
		}
		out := strings.TrimRight(b.more, "\n")
		if out == "" {
			out = "(no output)"
		}
		return append(term.Indent("• ", term.Wrap(verb+" "+b.text, cols-2)), term.Indent("  └ ", term.Wrap(out, cols-4))...)
	case blockApproved:
		return term.Wrap("✔ You approved codex to run "+b.text+" this time", cols)
	case blockCanceled:
		return term.Wrap("✗ You canceled the request to run "+b.text, cols)
	case blockInterrupted, blockError:
		return term.Wrap("■ "+b.text, cols)
	case blockWorked:
		return []string{"  " + term.Dim(b.text)}
	}
	return strings.Split(b.text, "\n")
}

func firstLine(s string) string { l, _, _ := strings.Cut(s, "\n"); return l }

func firstWord(s string) string { w, _, _ := strings.Cut(s, " "); return w }

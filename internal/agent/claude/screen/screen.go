package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Classify classifies a capture. The composer must be proved by its place and the cursor;
// only then can the screen be idle, working by its live region, or hold a draft. Without
// it, a dialog must be recognised, or the screen is unknown.
func Classify(c tmux.Capture) agent.Screen {
	if c.Pane.Dead {
		return agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerAbsent, Reason: "the pane is dead"}
	}
	if mark := foreignComposer(c); mark != "" {
		return agent.Screen{
			State: agent.ScreenDialog, Composer: agent.ComposerAbsent,
			Reason: "another view has the focus: " + mark,
		}
	}
	b, reason := findComposer(c)
	if reason != "" {
		return readDialog(c, reason)
	}
	s := agent.Screen{Draft: draft(c, b)}
	s.Composer = composerState(s.Draft)
	if c.Pane.InMode {
		s.Composer, s.Reason = agent.ComposerUnknown, "the pane is in a tmux mode"
	}
	s.State = agent.ScreenIdle
	if why := working(c, b); why != "" {
		s.State = agent.ScreenWorking
		if s.Reason == "" {
			s.Reason = why
		}
	}
	return s
}

// foreignComposer returns the mark of a view whose input line is not this session's.
func foreignComposer(c tmux.Capture) string {
	for _, m := range known.ForeignTitles {
		if strings.HasSuffix(c.Pane.Title, m) {
			return m
		}
	}
	for i := len(c.Lines) - 1; i >= 0 && !isRule(c.Lines[i]); i-- {
		for _, m := range known.ForeignFooters {
			if strings.Contains(c.Lines[i], m) {
				return m
			}
		}
	}
	return ""
}

// working says why the screen is working, or "". The live region is what stands right
// above the composer, and the footer below it; anything further up is history (T15).
func working(c tmux.Capture, b box) string {
	if r, _ := utf8.DecodeRuneInString(c.Pane.Title); r >= known.BrailleLow && r <= known.BrailleHigh {
		return "the title shows a spinner"
	}
	for _, l := range c.Lines[b.bottom+1:] {
		for _, m := range known.WorkingFooters {
			if strings.Contains(l, m) {
				return "the footer says " + m
			}
		}
	}
	for i := b.top - 1; i >= 0; i-- {
		l := strings.TrimRight(c.Lines[i], " ")
		if l == "" || strings.HasPrefix(l, " ") { // tips, queued prompts, task lists
			continue
		}
		if isSpinner(l) {
			return "a spinner stands above the composer"
		}
		break
	}
	return ""
}

// isSpinner reports whether a line of the live region is the spinner. Its symbol changes
// between releases, so the shape decides.
func isSpinner(line string) bool {
	r, _ := utf8.DecodeRuneInString(line)
	if strings.ContainsRune(known.AnswerGlyphs, r) || !spinnerStart(r) {
		return false
	}
	for _, m := range known.RetryMarks {
		if strings.Contains(line, m) {
			return true
		}
	}
	return known.SpinnerLine.MatchString(line)
}

func spinnerStart(r rune) bool { return r > 0x7f || r == '*' || r == '+' || r == '.' }

// lastLines returns the last n lines that are not blank, in order.
func lastLines(lines []string, n int) []string {
	var out []string
	for i := len(lines) - 1; i >= 0 && len(out) < n; i-- {
		if strings.TrimSpace(lines[i]) != "" {
			out = append(out, lines[i])
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Package screen says what a capture of the Codex terminal program shows: the composer and
// what is in it, a working line, an approval, another dialog.
//
// It is pure: it reads a capture and nothing else, and whatever it does not recognise is
// unknown, never idle. It must never know a thread, a file or a socket.
package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

const (
	// statusReach bounds how far above the composer its status line is looked for; queued
	// messages and tips may stand between.
	statusReach = 16
)

// Classify classifies a capture. The composer is proved by four things that must agree: the
// program shows its cursor, the cursor stands in a block that begins with the prompt
// glyph, nothing above it works, and no list is open that would take Enter. Whatever is
// not proved is unknown.
//
// An idle screen is not yet an idle agent: 0.171 hides its working line while the answer
// streams. The caller lets [agent.Native] Activity and the title win over it.
func Classify(c tmux.Capture) agent.Screen {
	rows := make([]string, len(c.Lines))
	for i, l := range c.Lines {
		rows[i] = strings.TrimRight(l, " \t")
	}
	title := ReadTitle(c.Pane.Title)
	if !c.Pane.CursorFlag {
		return dialogScreen(c, rows, title)
	}
	if s, ok := notesScreen(c, rows); ok {
		return s
	}
	comp, ok := findComposer(c, rows)
	if !ok {
		return agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerUnknown, Reason: "no composer is at the cursor"}
	}
	s := agent.Screen{Composer: comp.state, Draft: comp.draft}
	switch {
	case comp.shell:
		s.State, s.Composer, s.Reason = agent.ScreenDialog, agent.ComposerUnknown, "the composer is in shell mode: text would run as a command"
	case title == TitleAction:
		s.State, s.Reason = agent.ScreenUnknown, "the title asks for a decision but no dialog is shown"
	case comp.popup:
		s.State, s.Reason = agent.ScreenDialog, "a completion list is open: Enter would insert, not send"
	case title == TitleWorking:
		s.State, s.Reason = agent.ScreenWorking, "the title says working"
	case workingAbove(rows, comp.first):
		s.State = agent.ScreenWorking
	case strings.TrimSpace(comp.footer) == known.StartingFooter:
		s.State, s.Reason = agent.ScreenUnknown, "no session is shown yet (sign-in or start)"
	default:
		s.State = agent.ScreenIdle
	}
	return s
}

// Title is what the pane title says.
type Title int

const (
	TitleSilent Title = iota
	TitleReady
	TitleWorking
	TitleAction
)

// ReadTitle reads the pane title. An unknown title says nothing; 0.98 sets none at all.
func ReadTitle(title string) Title {
	if strings.Contains(title, known.TitleAction) {
		return TitleAction
	}
	if known.TitleSpinner.MatchString(title) {
		return TitleWorking
	}
	for _, f := range strings.Split(title, known.TitleFields) {
		switch f = strings.TrimSpace(f); {
		case known.TitleWorking[f]:
			return TitleWorking
		case f == known.TitleReady:
			return TitleReady
		}
	}
	return TitleSilent
}

// ThreadPrefix returns the thread id, or its beginning, that the title shows.
func ThreadPrefix(title string) string {
	for _, f := range strings.Split(title, known.TitleFields) {
		if m := known.TitleThread.FindStringSubmatch(strings.TrimSpace(f)); m != nil {
			return m[1]
		}
	}
	return ""
}

type composer struct {
	first  int // row of the prompt glyph
	state  agent.ComposerState
	draft  string
	footer string
	popup  bool
	shell  bool
}

// findComposer finds the block around the cursor that begins with the prompt glyph in
// column 0; its further lines are indented or blank. What follows after the last blank
// line is the footer.
func findComposer(c tmux.Capture, rows []string) (composer, bool) {
	y := c.Pane.CursorY
	if y < 0 || c.Pane.CursorX < known.ComposerCol {
		return composer{}, false
	}
	for len(rows) <= y {
		rows = append(rows, "")
	}
	first := y
	for ; first >= 0; first-- {
		r := []rune(rows[first])
		if len(r) > 0 && (r[0] == known.ComposerGlyph || r[0] == known.ShellGlyph) && (len(r) == 1 || r[1] == ' ') {
			break
		}
		if rows[first] != "" && !strings.HasPrefix(rows[first], "  ") {
			return composer{}, false
		}
	}
	if first < 0 {
		return composer{}, false
	}
	end, footer := composerEnd(rows, y)
	comp := composer{first: first, footer: footer, shell: []rune(rows[first])[0] == known.ShellGlyph}
	for i := first; i <= end; i++ {
		if i > first && rows[i] != "" && !strings.HasPrefix(rows[i], "  ") {
			return composer{}, false // something else stands below the cursor
		}
	}
	text := make([]string, 0, end-first+1)
	for i := first; i <= end; i++ {
		r := withoutEdgeMark([]rune(rows[i]), c.Pane.Width)
		text = append(text, string(r[min(known.ComposerCol, len(r)):]))
	}
	comp.draft = strings.TrimRight(strings.Join(text, "\n"), "\n ")
	comp.state = composerState(c, first, end, comp.draft)
	if comp.state == agent.ComposerEmpty {
		comp.draft = ""
	}
	comp.popup = popupAbove(rows, first) || (comp.state == agent.ComposerDraft && first > 0 && slashListAbove(rows, first, comp.draft))
	return comp, true
}

// withoutEdgeMark drops the arrow that a composer higher than its room has at its edge.
func withoutEdgeMark(r []rune, width int) []rune {
	if n := len(r); n > 1 && n >= width-1 && r[n-2] == ' ' && known.EdgeMarks[string(r[n-1])] {
		return []rune(strings.TrimRight(string(r[:n-1]), " "))
	}
	return r
}

// composerEnd returns the last row of the composer and the footer's text. y is in it.
func composerEnd(rows []string, y int) (end int, footer string) {
	last := len(rows) - 1
	for last > y && rows[last] == "" {
		last--
	}
	top := last
	for top > y && rows[top] != "" {
		top--
	}
	if top == y { // no blank line between: either no footer, or nothing below
		return last, ""
	}
	end = top
	for end > y && rows[end] == "" {
		end--
	}
	return end, strings.Join(rows[top+1:last+1], "\n")
}

// composerState tells the placeholder from a draft: the placeholder is dim.
func composerState(c tmux.Capture, first, end int, draft string) agent.ComposerState {
	atStart := c.Pane.CursorX == known.ComposerCol && c.Pane.CursorY == first
	if draft == "" {
		if atStart && end == first {
			return agent.ComposerEmpty
		}
		return agent.ComposerDraft // blank lines or blanks: not what a placeholder looks like
	}
	if len(c.Styled) == 0 {
		switch {
		case atStart && known.Placeholders[draft]:
			return agent.ComposerEmpty
		case atStart:
			return agent.ComposerUnknown
		}
		return agent.ComposerDraft
	}
	switch dim := dimText(c.Styled, first, end); {
	case dim && atStart && end == first:
		return agent.ComposerEmpty
	case dim:
		return agent.ComposerUnknown
	}
	return agent.ComposerDraft
}

// dimText reports whether all visible text of the rows right of the prompt is dim. tmux
// writes a style once and keeps it over line ends, so all rows above are read too.
func dimText(styled []string, first, end int) bool {
	dim, seen := false, false
	for i := 0; i <= end && i < len(styled); i++ {
		col := 0
		s := styled[i]
		for len(s) > 0 {
			if params, rest, ok := cutSGR(s); ok {
				dim = applySGR(dim, params)
				s = rest
				continue
			}
			r, size := utf8.DecodeRuneInString(s)
			s = s[size:]
			if i >= first && col >= known.ComposerCol && r != ' ' {
				if !dim {
					return false
				}
				seen = true
			}
			col++
		}
	}
	return seen
}

// workingAbove looks for the status line between the composer and the conversation's
// last prompt. One further up is history (case T15).
func workingAbove(rows []string, composer int) bool {
	for i, n := composer-1, 0; i >= 0 && n < statusReach; i-- {
		if rows[i] == "" {
			continue
		}
		n++
		if known.WorkingLine.MatchString(rows[i]) {
			return true
		}
		if strings.HasPrefix(rows[i], string(known.ComposerGlyph)+" ") || strings.HasPrefix(rows[i], "  Worked for ") {
			return false
		}
	}
	return false
}

func popupAbove(rows []string, composer int) bool {
	for i := composer - 1; i >= 0 && i >= composer-3; i-- {
		if known.PopupHint.MatchString(rows[i]) {
			return true
		}
	}
	return false
}

// slashListAbove reports an open list of slash commands: it stands directly above a draft
// that is one word with "/", each row a command and its description.
func slashListAbove(rows []string, composer int, draft string) bool {
	if !strings.HasPrefix(draft, "/") || strings.ContainsAny(draft, " \n") {
		return false
	}
	for i := composer - 1; i >= 0 && i >= composer-3; i-- {
		if t := strings.TrimLeft(rows[i], string(known.ComposerGlyph)+" "); strings.HasPrefix(t, "/") {
			return true
		}
	}
	return false
}

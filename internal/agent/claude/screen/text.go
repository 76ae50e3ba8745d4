package screen

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// Literal returns text as it must be pasted so that Claude Code takes it as a plain
// prompt. It prefixes a blank to text that begins with "!" or "/" and appends one where
// Enter would otherwise insert a newline (a last backslash) or accept a completion (a last
// word that begins with "@"). It refuses text that quits the program, is empty, or holds
// control characters, with fault.Invalid.
func Literal(text string) (string, error) {
	const op = "claude.literal"
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if !utf8.ValidString(text) {
		return "", fault.New(fault.Invalid, op, "the text is not valid UTF-8").WithHint("send UTF-8 text")
	}
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return "", fault.New(fault.Invalid, op, "the text holds the control character U+%04X", r).
			WithHint("remove control characters other than newline and tab")
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return "", fault.New(fault.Invalid, op, "the text is empty").WithHint("send at least one word")
	}
	if known.ExitWords[trimmed] {
		return "", fault.New(fault.Invalid, op, "Claude Code quits when the whole prompt is %q", trimmed).
			WithHint("put the word into a sentence")
	}
	if strings.IndexByte(known.CommandGlyphs, text[0]) >= 0 {
		text = " " + text
	}
	last := text[strings.LastIndexAny(text, " \t\n")+1:]
	if strings.HasSuffix(text, `\`) || strings.HasPrefix(last, "@") {
		text += " "
	}
	return text, nil
}

// isControl reports whether r may steer a terminal: C0 other than newline and tab, DEL
// and C1.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r)
}

// unspaced drops every blank, so that text can be compared with its own wrapped display.
func unspaced(text string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text))
}

// DraftMatches compares the composer with what was pasted. Blanks are not compared, since
// the composer wraps. A collapsed paste is compared by its number of newlines, which is
// all that the screen shows of it.
func DraftMatches(s agent.Screen, pasted string) agent.Match {
	switch s.Composer {
	case agent.ComposerEmpty:
		return agent.MatchNo
	case agent.ComposerDraft:
	default:
		return agent.MatchUnknown
	}
	pasted = strings.ReplaceAll(pasted, "\r\n", "\n")
	if m := known.PastedMark.FindStringSubmatch(unwrapped(s.Draft)); m != nil && !known.PastedMark.MatchString(strings.TrimSpace(pasted)) {
		return matchCollapsed(m[1], pasted)
	}
	if strings.Contains(s.Draft, "[Pasted text #") && !strings.Contains(pasted, "[Pasted text #") {
		return agent.MatchUnknown // hidden parts and visible ones
	}
	if unspaced(s.Draft) == unspaced(pasted) {
		return agent.MatchYes
	}
	return agent.MatchNo
}

// unwrapped joins the lines of a draft with single blanks.
func unwrapped(draft string) string { return strings.Join(strings.Fields(draft), " ") }

func matchCollapsed(lines, pasted string) agent.Match {
	newlines := strings.Count(pasted, "\n")
	shown := 0
	if lines != "" {
		n, err := strconv.Atoi(lines)
		if err != nil {
			return agent.MatchUnknown
		}
		shown = n
	}
	switch {
	case shown != newlines:
		return agent.MatchNo
	case newlines > known.PasteInlineNewlines || utf8.RuneCountInString(pasted) > known.PasteInlineChars:
		return agent.MatchYes
	}
	return agent.MatchUnknown // this text should have been shown
}

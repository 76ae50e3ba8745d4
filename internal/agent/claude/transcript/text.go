package transcript

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-knock-knock/akk/internal/turn"
)

// Canonical is the form in which a request and the agent's record of it are compared.
// Claude Code normalises short pastes (NFC, a tab becomes four blanks), trims the end of
// some, and keeps a leading blank that made a
// prompt literal.
func Canonical(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	text = strings.ReplaceAll(text, "\t", "    ")
	return norm.NFC.String(strings.TrimSpace(text))
}

// capText cuts s to turn.MaxText bytes at a rune boundary.
func capText(s string) (text string, truncated bool) {
	if len(s) <= turn.MaxText {
		return s, false
	}
	n := turn.MaxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// OneLine returns the first line of s, cut to at most 300 bytes at a rune boundary.
func OneLine(s string) string {
	const limit = 300
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

package transcript

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-knock-knock/akk/internal/redact"
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

// maxDetail bounds the detail of an observation, in bytes.
const maxDetail = 300

// OneLine returns the first line of s for a person: redacted and cut to maxDetail bytes.
func OneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return redact.Line(s, maxDetail)
}

package toolkit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// line makes s one printable line of at most max bytes.
func line(s string, max int) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsControl(c) || c == utf8.RuneError || unicode.Is(unicode.Cf, c):
			return -1
		}
		return c
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= max {
		return s
	}
	cut := max - len("...")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

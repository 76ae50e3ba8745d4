// Package redact takes secrets out of text that leaves the process: log lines, error
// lines, tool errors. It also holds the one log format of this module.
//
// It knows the shapes of secrets, not their values: a controller session, which has no
// shape, must never be given to it. It is a second net; the first is not to format a
// secret at all. Ordinary absolute paths are kept.
package redact

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// ellipsis marks a cut.
const ellipsis = "..."

// rule replaces what a pattern finds. The marks are cheap substrings, one of which any
// match has, so that a line without them costs no regular expression; matching is on the
// lower-cased text.
type rule struct {
	marks   []string
	pattern *regexp.Regexp
	with    string
}

// keyWords end the names whose values are secret.
const keyWords = `(?:authorization|api[_-]?key|token|secret|password|passwd|credential|private[_-]?key)`

var rules = sync.OnceValue(func() []rule {
	r := func(pattern, with string, marks ...string) rule {
		return rule{marks: marks, pattern: regexp.MustCompile(pattern), with: with}
	}
	value := `(?:\[redacted\]|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+)`
	return []rule{
		r(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`, Mask, "private key-----"),
		r(`(?i)\b([a-z_]*proxy=)`+value, "${1}"+Mask, "proxy="),
		// scheme://user:password@host keeps the user, loses the password.
		r(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:)[^\s/?#]+@`, "${1}"+Mask+"@", "://"),
		r(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]+`, "${1}${2}"+Mask, "bearer", "basic"),
		// --token X, --api-key=X, --my-secret "X"
		r(`(?i)(--[a-z0-9-]*`+keyWords+`(?:\s+|=))`+value, "${1}"+Mask, "--"),
		// NAME_TOKEN=X, "api_key": "X", password: X
		r(`(?i)([a-z0-9_.-]*`+keyWords+`["']?\s*[=:]\s*)(?:(?:bearer|basic)\s+)?`+value, "${1}"+Mask, "=", ":"),
		r(`\bsk-[A-Za-z0-9_-]{8,}`, Mask, "sk-"),
		r(`\bgh[a-z]_[A-Za-z0-9]{8,}`, Mask, "gh"),
		r(`\bgithub_pat_[A-Za-z0-9_]{8,}`, Mask, "github_pat_"),
		r(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}`, Mask, "akia", "asia"),
		r(`\bxox[a-z]-[A-Za-z0-9-]{8,}`, Mask, "xox"),
		r(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, Mask, "eyj"),
	}
})

// String returns s with every secret of a known shape replaced by [Mask]. It keeps all
// other text, line breaks included, and does not shorten.
func String(s string) string {
	lower := strings.ToLower(s)
	for _, r := range rules() {
		for _, mark := range r.marks {
			if strings.Contains(lower, mark) {
				s = r.pattern.ReplaceAllString(s, r.with)
				break
			}
		}
	}
	return s
}

// Line returns s as one line for people and logs: redacted, invalid UTF-8 replaced,
// control and direction characters removed (line breaks and tabs become a blank), and at
// most max bytes of whole characters, "..." included when it was cut. max under 3 gives
// an empty string when a cut is needed.
func Line(s string, max int) string {
	return cut(flatten(String(s)), max)
}

// Whole is [Line], and whether nothing was cut off.
func Whole(s string, max int) (line string, whole bool) {
	line = flatten(String(s))
	return cut(line, max), len(line) <= max
}

// flatten leaves no character that could start a new line or steer a terminal.
func flatten(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\r' || c == '\t' || c == '\u2028' || c == '\u2029':
			return ' '
		case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c):
			return -1
		}
		return c
	}, s)
	return strings.TrimSpace(s)
}

// cut bounds s to max bytes on a character's edge.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	keep := max - len(ellipsis)
	if keep < 0 {
		return ""
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep] + ellipsis
}

// sensitiveKey reports whether the value under a log or JSON key is secret by its name.
func sensitiveKey(key string) bool {
	k := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' {
			return -1
		}
		return unicode.ToLower(c)
	}, key)
	for _, word := range []string{"authorization", "apikey", "token", "secret", "password", "passwd", "credential", "privatekey", "proxy"} {
		if strings.HasSuffix(k, word) {
			return true
		}
	}
	return false
}

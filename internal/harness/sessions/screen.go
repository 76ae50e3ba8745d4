package sessions

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/redact"
)

const (
	screenKept  = 32 << 10 // of what a login program wrote, the newest
	screenShown = 4 << 10  // of that, as text
	// shortSecret is the length from which what a person typed is taken out of the output.
	shortSecret = 4
)

// screen is what a login program wrote to its terminal: its newest words, as lines and
// without what draws on a screen. It is no terminal: a program that paints a whole screen is
// read as the order in which it wrote.
type screen struct {
	raw   []byte
	total int
	typed []string
}

func (s *screen) add(b []byte) {
	s.total += len(b)
	s.raw = append(s.raw, b...)
	if over := len(s.raw) - screenKept; over > 0 {
		s.raw = slices.Clone(s.raw[over:])
	}
}

// entered remembers what a person entered, which is shown to nobody.
func (s *screen) entered(text string) {
	if len(text) >= shortSecret && !slices.Contains(s.typed, text) {
		s.typed = append(s.typed, text)
	}
}

// plain is the newest text, with its secrets.
func (s *screen) plain() string {
	text := escapeForm().ReplaceAllString(strings.ToValidUTF8(string(s.raw), ""), "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
			line = line[i+1:] // it was written over
		}
		line = strings.TrimRight(strings.Map(func(r rune) rune {
			if r == '\t' || unicode.IsPrint(r) {
				return r
			}
			return -1
		}, line), " \t")
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// text is the newest text for people: masked, and bounded.
func (s *screen) text() string {
	text := s.plain()
	for _, typed := range s.typed {
		text = strings.ReplaceAll(text, typed, "[entered]")
	}
	text = redact.Strict(text)
	if over := len(text) - screenShown; over > 0 {
		for over < len(text) && !utf8.RuneStart(text[over]) {
			over++
		}
		text = text[over:]
	}
	return text
}

// page is the newest page that the program names. Its address is whole: a login needs all of
// it.
func (s *screen) page() string {
	found := urlForm().FindAllString(s.plain(), -1)
	if len(found) == 0 {
		return ""
	}
	return strings.TrimRight(found[len(found)-1], ".,;:)]}")
}

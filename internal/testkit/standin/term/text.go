package term

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// runeWidth is the number of columns of r.
func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Width is the number of columns of s.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Wrap breaks text into lines of at most cols columns, at blanks where there is one, and
// keeps every character but the blank at the break.
func Wrap(text string, cols int) []string {
	cols = max(cols, 4)
	var out []string
	for _, line := range strings.Split(text, "\n") {
		out = append(out, wrapLine(line, cols)...)
	}
	return out
}

func wrapLine(line string, cols int) []string {
	var out []string
	r := []rune(strings.ReplaceAll(line, "\t", "    "))
	for {
		w, i, blank := 0, 0, -1
		for i < len(r) && w+runeWidth(r[i]) <= cols {
			if r[i] == ' ' {
				blank = i
			}
			w += runeWidth(r[i])
			i++
		}
		switch {
		case i == len(r):
			return append(out, string(r))
		case r[i] == ' ':
			out, r = append(out, string(r[:i])), r[i+1:]
		case blank > 0:
			out, r = append(out, string(r[:blank])), r[blank+1:]
		default:
			out, r = append(out, string(r[:i])), r[i:]
		}
	}
}

// Indent puts lead before the first line and blanks of its width before the others.
func Indent(lead string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if i == 0 {
			out[i] = lead + l
		} else {
			out[i] = strings.Repeat(" ", Width(Strip(lead))) + l
		}
	}
	return out
}

// Strip is s without SGR sequences.
func Strip(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], 'm')
		if end < 0 {
			return b.String()
		}
		s = s[i+end+1:]
	}
}

// Clip is at most cols runes of s.
func Clip(s string, cols int) string {
	if r := []rune(s); len(r) > cols {
		return string(r[:cols])
	}
	return s
}

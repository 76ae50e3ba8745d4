package screen

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// cell is one rune of a styled line with what matters of its style.
type cell struct {
	r       rune
	dim     bool
	reverse bool // the drawn cursor, or a highlight
}

// maxStyledLine bounds the work on one line of a capture.
const maxStyledLine = 64 << 10

// cells reads a line with SGR sequences. The style at the start of the line is *dim and
// *reverse, and they are left as they are at its end, because tmux carries a style over
// line ends. Other escape sequences are skipped.
func cells(line string, dim, reverse *bool) []cell {
	if len(line) > maxStyledLine {
		line = line[:maxStyledLine]
	}
	out := make([]cell, 0, len(line))
	for i := 0; i < len(line); {
		if line[i] == 0x1b {
			i += escape(line[i:], dim, reverse)
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		out = append(out, cell{r: r, dim: *dim, reverse: *reverse})
		i += n
	}
	return out
}

// escape reads the sequence at the start of s, applies an SGR, and returns its length.
func escape(s string, dim, reverse *bool) int {
	if len(s) < 2 || s[1] != '[' {
		return min(2, len(s))
	}
	end := 2
	for end < len(s) && (s[end] < 0x40 || s[end] > 0x7e) {
		end++
	}
	if end == len(s) {
		return len(s)
	}
	if s[end] == 'm' {
		applySGR(s[2:end], dim, reverse)
	}
	return end + 1
}

func applySGR(params string, dim, reverse *bool) {
	fields := strings.Split(params, ";")
	for i := 0; i < len(fields); i++ {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			n = 0 // "" is 0; sub-parameters (4:3) concern underlines only
			if fields[i] != "" {
				continue
			}
		}
		switch n {
		case 0:
			*dim, *reverse = false, false
		case 2:
			*dim = true
		case 7:
			*reverse = true
		case 22:
			*dim = false
		case 27:
			*reverse = false
		case 38, 48, 58: // an extended colour takes its own parameters
			if i+1 < len(fields) && fields[i+1] == "5" {
				i += 2
			} else if i+1 < len(fields) && fields[i+1] == "2" {
				i += 4
			}
		}
	}
}

// typedText returns what a person or a paste put into cells: dim text is a placeholder or
// a suggestion, and so is the rune under the drawn cursor when dim text follows it.
func typedText(cs []cell) string {
	var b strings.Builder
	for i, c := range cs {
		if c.dim || c.reverse && i+1 < len(cs) && cs[i+1].dim {
			continue
		}
		b.WriteRune(c.r)
	}
	return strings.TrimRight(b.String(), " ")
}

package screen

import "strings"

// cutSGR cuts one escape sequence from the front of s. params is what stands between
// "ESC[" and "m" ("0" for none), and "" for a sequence that is no style.
func cutSGR(s string) (params, rest string, ok bool) {
	switch {
	case !strings.HasPrefix(s, "\x1b"):
		return "", s, false
	case strings.HasPrefix(s, "\x1b]"): // a hyperlink: up to BEL or ESC \
		if i := strings.IndexAny(s[2:], "\x07\x1b"); i >= 0 {
			return "", strings.TrimPrefix(s[2+i+1:], "\\"), true
		}
		return "", "", true
	case !strings.HasPrefix(s, "\x1b["):
		return "", s[min(2, len(s)):], true
	}
	for i := 2; i < len(s); i++ {
		if s[i] < 0x40 || s[i] > 0x7e {
			continue
		}
		if s[i] != 'm' {
			return "", s[i+1:], true
		}
		if params = s[2:i]; params == "" {
			params = "0"
		}
		return params, s[i+1:], true
	}
	return "", "", true
}

// applySGR returns whether text is dim after the sequence. Colours carry numbers of their
// own (38;5;N, 38;2;R;G;B), which are skipped.
func applySGR(dim bool, params string) bool {
	p := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case "0", "22":
			dim = false
		case "2":
			dim = true
		case "38", "48", "58":
			if i+1 < len(p) && p[i+1] == "5" {
				i += 2
			} else if i+1 < len(p) && p[i+1] == "2" {
				i += 4
			}
		}
	}
	return dim
}

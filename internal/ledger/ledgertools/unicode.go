package ledgertools

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// isUnicode reports whether the strings of a JSON value can be taken as they are. Decoding
// replaces bytes that are no UTF-8, and escaped halves of a pair without the other half:
// what was stored would not be what was sent.
func isUnicode(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // what is escaped is looked at, never taken for the start of another escape
		r, ok := escaped(raw[i:])
		if !ok || !utf16.IsSurrogate(r) {
			continue
		}
		const one = len("uD800")
		if len(raw) <= i+one || raw[i+one] != '\\' {
			return false
		}
		second, ok := escaped(raw[i+one+1:])
		if !ok || utf16.DecodeRune(r, second) == utf8.RuneError {
			return false
		}
		i += one + 1
	}
	return true
}

// escaped reads "uD83D", the rest of an escape of four digits.
func escaped(raw []byte) (rune, bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 32)
	return rune(n), err == nil
}

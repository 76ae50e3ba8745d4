package claude

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
)

// projectSlug returns the directory name that Claude Code gives the transcripts of a
// working directory. Every UTF-16 unit that is not an ASCII letter or digit becomes "-"
// (so a rune outside the BMP gives two); more than known.SlugMaxUnits are cut, and a hash of
// the whole path is appended. Two directories may share a slug; session ids tell them
// apart.
func projectSlug(cwd string) string {
	units := utf16.Encode([]rune(cwd))
	var b strings.Builder
	for _, u := range units {
		if u < 0x80 && (u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z') {
			b.WriteByte(byte(u))
			continue
		}
		b.WriteByte('-')
	}
	s := b.String()
	if len(s) <= known.SlugMaxUnits {
		return s
	}
	var h int32
	for _, u := range units {
		h = h<<5 - h + int32(u)
	}
	abs := int64(h)
	if abs < 0 {
		abs = -abs
	}
	return s[:known.SlugMaxUnits] + "-" + strconv.FormatInt(abs, 36)
}

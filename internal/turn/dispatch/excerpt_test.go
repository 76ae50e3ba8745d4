package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// What status shows of a screen: its last rows, bounded, valid text, secrets masked.
func TestTheScreenThatStatusShowsIsBoundedAndMasked(t *testing.T) {
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf("row %03d %s", i, strings.Repeat("日", 60)))
	}
	rows = append(rows, "export API_KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789", "broken \xff byte", "", "   ")
	got := excerpt(rows)
	if len(got) > screenBytes+len("…") || strings.Count(got, "\n") >= screenLines || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %d line ends, valid %v", len(got), strings.Count(got, "\n"), utf8.ValidString(got))
	}
	if strings.Contains(got, "sk-abcdef") || strings.Contains(got, "row 000") || !strings.HasSuffix(got, "byte") {
		t.Errorf("…%q", got[max(0, len(got)-200):])
	}
	if got := excerpt(rows[:100]); !strings.Contains(got, "row 099") || strings.Contains(got, "row 001") {
		t.Errorf("%q", got)
	}
	if got := excerpt(nil); got != "" {
		t.Errorf("%q", got)
	}
}

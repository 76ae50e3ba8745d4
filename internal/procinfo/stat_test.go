package procinfo

import (
	"slices"
	"strings"
	"testing"
)

const goodStat = "4242 (a) b (c) S 1 4242 4242 34816 4250 4194304 1 2 3 4 5 6 7 8 20 0 12 0 987654 1 2 18446744073709551615\n"

func TestStatNameMayHoldParenthesesAndBlanks(t *testing.T) {
	for _, name := range []string{"a) b (c", ") S 1 (", "x\ny", "(", ""} {
		r, err := parseStat([]byte(strings.Replace(goodStat, "a) b (c", name, 1)))
		if err != nil || r.pid != 4242 || r.ppid != 1 || r.state != 'S' || r.start != 987654 || r.name != name {
			t.Errorf("%q: %+v, %v", name, r, err)
		}
	}
}

func TestStatRefusesTornRows(t *testing.T) {
	for n := range strings.Index(goodStat, "987654") {
		if r, err := parseStat([]byte(goodStat[:n])); err == nil {
			t.Errorf("%q was read as %+v", goodStat[:n], r)
		}
	}
	for _, s := range []string{"x (a) S 1", "-1" + goodStat[4:], strings.Replace(goodStat, "987654", "98x", 1), strings.Replace(goodStat, " S ", " SS ", 1), strings.Replace(goodStat, " S 1 ", " S -1 ", 1)} {
		if _, err := parseStat([]byte(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func FuzzStatNeverPanics(f *testing.F) {
	f.Add([]byte(goodStat))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseStat(b); err == nil && (r.pid <= 0 || r.ppid < 0) {
			t.Errorf("%q gave %+v", b, r)
		}
	})
}

func TestArgumentsKeepEmptyOnesAndLosePadding(t *testing.T) {
	for in, want := range map[string][]string{
		"":                    nil,
		"\x00\x00":            nil,
		"codex\x00":           {"codex"},
		"a\x00\x00b c\x00":    {"a", "", "b c"},
		"title\x00\x00\x00":   {"title"},
		"no end":              {"no end"},
		"tab\tnl\n\x00日本\x00": {"tab\tnl\n", "日本"},
	} {
		if got := splitArgs([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

package logend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyWholeLinesOfTheWindowAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, tc := range []struct {
		text   string
		window int64
		want   string
	}{
		{"", 10, ""},
		{"one\ntwo\n", 100, "one|two"},
		{"one\n \n\ntwo\nthr", 100, "one|two"},
		{"one\ntwo\nthree\n", 8, "three"}, // "o\nthree\n": the beginning of "two" is not there
		{"endless", 3, ""},
	} {
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		lines, err := Lines(path, tc.window)
		var got []string
		for _, l := range lines {
			got = append(got, string(l))
		}
		if err != nil || strings.Join(got, "|") != tc.want {
			t.Errorf("%q: %q %v, want %q", tc.text, got, err, tc.want)
		}
	}
	if _, err := Lines(path+".none", 1); err == nil {
		t.Error("a missing file is read")
	}
}

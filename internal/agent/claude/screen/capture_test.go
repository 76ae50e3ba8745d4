package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/tmux"
)

// load reads a recorded screen: a head with cursor, alternate screen and title, then the
// lines as `tmux capture-pane -e` gave them. Files named rig-*, cli-* and live-* are real screens
// of Claude Code 2.1.197.
func load(t *testing.T, name string) tmux.Capture {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".screen"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(b), "\n--\n")
	if !ok {
		t.Fatalf("%s has no head", name)
	}
	c := tmux.Capture{Pane: tmux.Pane{Socket: "/tmp/tmux-0/s", ID: "%1", PID: 42, Width: 120, Height: 40}}
	for _, l := range strings.Split(head, "\n") {
		key, value, _ := strings.Cut(l, " ")
		switch key {
		case "cursor":
			if _, err := fmt.Sscan(value, &c.Pane.CursorX, &c.Pane.CursorY); err != nil {
				t.Fatal(err)
			}
		case "size":
			if _, err := fmt.Sscan(value, &c.Pane.Width, &c.Pane.Height); err != nil {
				t.Fatal(err)
			}
		case "alt":
			c.Pane.AlternateOn = value == "1"
		case "title":
			c.Pane.Title = value
		}
	}
	c.Styled = strings.Split(body, "\n")
	c.Lines = plain(c.Styled)
	return c
}

func plain(styled []string) []string {
	out := make([]string, len(styled))
	var dim, reverse bool
	for i, l := range styled {
		var b strings.Builder
		for _, c := range cells(l, &dim, &reverse) {
			b.WriteRune(c.r)
		}
		out[i] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// drawn is a capture made by hand: the cursor stands where the text has a ▮.
func drawn(title, text string) tmux.Capture {
	c := tmux.Capture{Pane: tmux.Pane{Socket: "/tmp/tmux-0/s", ID: "%1", PID: 42, Title: title}}
	for y, l := range strings.Split(strings.TrimPrefix(text, "\n"), "\n") {
		if before, after, ok := strings.Cut(l, "▮"); ok {
			c.Pane.CursorX, c.Pane.CursorY = len([]rune(before)), y
			l = before + after
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

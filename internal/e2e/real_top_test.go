//go:build e2e

package e2e

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/chromedp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/golden"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// A Bridge with something of everything fits a terminal of 80x24: a task that runs, one that
// waits for a decision, one that is done, and one whose callback nobody can call heard. With
// -update a browser draws that very screen for the README.
func TestRealTopOfABusyBridgeFitsATerminal(t *testing.T) {
	c := newClinic(t)
	names := []string{standin.Codex, standin.Claude, standin.Codex, standin.Claude}
	panes := make([]*pane, len(names))
	for i, name := range names {
		panes[i] = c.agent(name)
	}
	bridge := c.start()
	give := func(i int, task string) string {
		t.Helper()
		return send(t, bridge, readyPane(t, bridge, panes[i]), task).TurnID
	}
	waitCallback(t, bridge, give(0, "Describe what this repository is for. SAY:It knocks back."), "delivered")
	c.host.SetMode(fakehost.Garbage)
	waitCallback(t, bridge, give(1, "Rename the flag everywhere. SAY:Renamed."), "uncertain")
	c.host.SetMode(fakehost.Accept)
	asks := give(2, "Make a file for the notes. ;; RUN:touch notes.txt ;; SAY:Made.")
	waitCallback(t, bridge, asks, "delivered")
	give(3, "Add a test for the parser. ;; GATE:go ;; SAY:Added.")

	screen := c.tmux.Run(faketmux.Spec{Width: 80, Height: 24, Argv: []string{"sh", "-c",
		"AKK_RUNTIME_DIR=" + quote(c.runtime) + " TERM=xterm-256color exec " + quote(c.bin) + " top --store-dir " + quote(c.host.Store) + " --interval 200ms"}})
	for _, want := range []string{"2 turns", "1 DEAD", "waiting_for_agent", "waiting_for_controller", "idle", "uncertain", "akk-callback", "akk-monitor"} {
		screen.WaitText(want)
	}
	colored := strings.Split(c.tmux.Tmux("capture-pane", "-p", "-e", "-t", screen.ID), "\n")
	if !strings.Contains(strings.Join(colored, "\n"), "\x1b[31m") {
		t.Errorf("nothing is red:\n%q", colored)
	}
	if golden.Update() {
		drawTerminal(t, colored, c.host.Store, "top.png")
	}
	panes[3].Release(t, "go")
}

var sgr = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// drawTerminal keeps the lines of a screen as docs/images/name. The path of the test's own
// Store is replaced by the usual one.
func drawTerminal(t *testing.T, lines []string, store, name string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><style>body{margin:0;background:#1b1e24}
pre{margin:14px 18px;font:15px/20px "DejaVu Sans Mono",monospace;color:#d6d9df;display:inline-block}
.c1{font-weight:bold}.c2{opacity:.6}.c31{color:#ff7b72}.c32{color:#7ee787}.c33{color:#e3b341}</style><pre>`)
	for i, line := range lines {
		if from := strings.Index(line, "/"); from >= 0 && strings.Contains(line, store[:min(len(store), 20)]) { // the title
			end := strings.LastIndex(line, " ")
			usual := "~/.agent-knock-knock/store"
			line = line[:from] + usual + strings.Repeat(" ", max(utf8.RuneCountInString(line[from:end])-len(usual), 0)) + line[end:]
		}
		lines[i] = line
	}
	b.WriteString(styled(strings.Join(lines, "\n")))
	s := show(t, b.String()+"</pre>")
	run(s, chromedp.EmulateViewport(764, 28+int64(len(lines))*20))
	png := run(s, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", name), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// styled is the text of a screen as HTML: each run carries the attributes and the color that
// were set before it, on its line or above.
func styled(text string) string {
	var b strings.Builder
	var bold, dim, color string
	at := 0
	write := func(run string) {
		if run != "" {
			fmt.Fprintf(&b, `<span class="%s %s %s">%s</span>`, bold, dim, color, html.EscapeString(run))
		}
	}
	for _, m := range sgr.FindAllStringSubmatchIndex(text, -1) {
		write(text[at:m[0]])
		at = m[1]
		for code := range strings.SplitSeq(text[m[2]:m[3]], ";") {
			switch code {
			case "", "0":
				bold, dim, color = "", "", ""
			case "1":
				bold = "c1"
			case "2":
				dim = "c2"
			case "22":
				bold, dim = "", ""
			case "31", "32", "33":
				color = "c" + code
			case "39":
				color = ""
			}
		}
	}
	write(text[at:])
	return b.String()
}

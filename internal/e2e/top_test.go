package e2e

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// top in a real terminal of 80x24: it shows the Bridge, its workers and the task, follows
// what changes, and leaves the terminal as it was.
func TestTopFollowsATaskInARealTerminal(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	p := c.agent(standin.Codex)
	bridge := c.start()
	got := send(t, bridge, readyPane(t, bridge, p), "GATE:go ;; SAY:seen by top")
	screen := c.tmux.Run(faketmux.Spec{Width: 80, Height: 24, Argv: []string{"sh", "-c",
		"AKK_RUNTIME_DIR=" + quote(c.runtime) + " " + quote(c.bin) + " top --store-dir " + quote(c.host.Store) + " --interval 200ms; echo it ended with $?; exec cat -"}})
	screen.WaitText("waiting_for_agent")
	shown := strings.Join(screen.WaitText("akk-monitor").Lines, "\n")
	for _, want := range []string{"fake-host", "akk-callback", "serving", got.TurnID[len(got.TurnID)-8:]} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	t.Logf("top shows:\n%s", shown)
	p.Release(t, "go")
	screen.WaitText("delivered")
	c.tmux.Tmux("send-keys", "-t", screen.ID, "Tab", "Down", "q")
	end := screen.WaitText("it ended with 0")
	if text := strings.Join(end.Lines, "\n"); strings.Contains(text, "CALLBACK") {
		t.Errorf("the screen was not given back:\n%s", text)
	}
	if code := bridge.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestTopOnceDrawsTextWithoutATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	out, errOut, exit := w.operate("top", "--once", "--store-dir", w.host.Store, "--height", "12")
	if exit != 0 || !strings.Contains(out, "no task was sent yet") || strings.Count(out, "\n") > 12 || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d: %s %s", exit, out, errOut)
	}
	if out, errOut, exit := w.operate("top", "--store-dir", w.host.Store); exit != 1 || !strings.Contains(errOut, "--once") {
		t.Errorf("exit %d: %s %s", exit, out, errOut)
	}
}

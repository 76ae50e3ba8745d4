package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// Somebody ends top by a signal, or closes its terminal's window manager: the terminal gets its
// own screen back, and the shell in it its prompt.
func TestTopGivesTheTerminalBackWhenItIsToldToEnd(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		file := filepath.Join(t.TempDir(), "pid")
		screen := c.tmux.Run(faketmux.Spec{Width: 80, Height: 24, Argv: []string{"sh", "-c",
			"echo before; AKK_RUNTIME_DIR=" + quote(c.runtime) + " sh -c " + quote("echo $$ >"+quote(file)+"; exec "+quote(c.bin)+" top --store-dir "+quote(c.host.Store)+" --interval 200ms") +
				"; echo it ended with $?; exec cat -"}})
		screen.WaitText("CALLBACK")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		end := strings.Join(screen.WaitText("it ended with 0").Lines, "\n")
		if strings.Contains(end, "CALLBACK") || !strings.Contains(end, "before") {
			t.Errorf("after %v:\n%s", sig, end)
		}
		if mode := strings.TrimSpace(c.tmux.Tmux("display-message", "-p", "-t", screen.ID, "#{alternate_on}")); mode != "0" {
			t.Errorf("after %v the alternate screen is %q", sig, mode)
		}
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

package tmux_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// bothInputs tries a paste and a key and wants both refused, with proof.
func bothInputs(t *testing.T, s tmux.Server, to tmux.Target, reason string) {
	t.Helper()
	for what, err := range map[string]error{
		"paste": s.Paste(t.Context(), to, []byte("l1\nl2")),
		"key":   s.Key(t.Context(), to, tmux.Enter),
	} {
		if !fault.Is(err, tmux.CodeInputNotSent) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v, want %s because of %q", what, err, tmux.CodeInputNotSent, reason)
		}
	}
}

// tmux 3.3a crashes, with every session in it, when it pastes into a dead pane.
func TestADeadPaneGetsNothingAndTheServerSurvives(t *testing.T) {
	server := faketmux.New(t)
	live := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	dead := server.Run(faketmux.Spec{Argv: []string{"sh", "-c", "exit 0"}, Remain: true})
	dead.WaitScreen(func(c tmux.Capture) bool { return c.Pane.Dead })
	bothInputs(t, server.Client(), dead.Target(), "has ended")
	if err := submit(t, server.Client(), live.Target(), "still here"); err != nil {
		t.Fatal(err)
	}
	arrivedOnce(t, live.Finish(), "still here", true)
	noBufferLeft(t, server)
}

// Case 42: the pane id stays, the process is another.
func TestARespawnedPaneGetsNothing(t *testing.T) {
	server := faketmux.New(t)
	old := server.Run(faketmux.Spec{})
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	server.Tmux("respawn-pane", "-k", "-t", old.ID, "cat")
	bothInputs(t, server.Client(), old.Target(), "changed hands")

	// The recorder itself, taken for another process.
	other := r.Target()
	other.PanePID++
	bothInputs(t, server.Client(), other, "changed hands")
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
	noBufferLeft(t, server)
}

func TestAPaneThatIsGoneGetsNothingAndNoOtherPaneDoes(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	gone := r.Target()
	gone.PaneID = "%99" // tmux falls back to the current pane for a target that is missing
	bothInputs(t, server.Client(), gone, "does not exist")
	for _, bad := range []tmux.Target{{}, {Socket: gone.Socket, PaneID: "%0; kill-server", PanePID: 1}, {Socket: "/other", PaneID: "%0", PanePID: 1}} {
		if err := server.Client().Key(t.Context(), bad, tmux.Enter); !fault.Is(err, tmux.CodeInputNotSent) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
}

// T05: after the loss of a server its pane ids are used again by the next one.
func TestANewServerThatReusesThePaneIDGetsNothing(t *testing.T) {
	server := faketmux.New(t)
	old := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	server.Kill()
	bothInputs(t, server.Client(), old.Target(), "no tmux server runs")
	again := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	if again.ID != old.ID {
		t.Fatalf("pane %s was not reused but %s", old.ID, again.ID)
	}
	bothInputs(t, server.Client(), old.Target(), "changed hands")
	if got := again.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
}

// Case 43: two servers with the same session:window.pane are two terminals.
func TestInputReachesTheRightOneOfTwoServers(t *testing.T) {
	var servers [2]*faketmux.Server
	var recorders [2]*faketmux.Recorder
	for i := range servers {
		servers[i] = faketmux.New(t)
		recorders[i] = servers[i].Recorder(faketmux.RecorderSpec{Bracketed: true, Spec: faketmux.Spec{Name: "same"}})
	}
	if recorders[0].ID != recorders[1].ID {
		t.Fatal("the panes should have the same id")
	}
	if err := submit(t, servers[1].Client(), recorders[1].Target(), "for the second"); err != nil {
		t.Fatal(err)
	}
	bothInputs(t, servers[0].Client(), recorders[1].Target(), "another tmux server")
	arrivedOnce(t, recorders[1].Finish(), "for the second", true)
	if got := recorders[0].Finish(); len(got.Raw) != 0 {
		t.Errorf("the first server's pane got %q", got.Raw)
	}
}

// A server that hangs while the text is loaded has touched no pane; one that hangs at the
// key may act on it later.
func TestAHangingServerIsNotSentForALoadAndUncertainForAKey(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	pause(t, server)
	s := tmux.WithBound(server.Client(), time.Second)
	if err := s.Paste(t.Context(), r.Target(), []byte("text")); !fault.Is(err, tmux.CodeInputNotSent) {
		t.Errorf("paste: %v", err)
	}
	if err := s.Key(t.Context(), r.Target(), tmux.Enter); !fault.Is(err, tmux.CodeInputUncertain) {
		t.Errorf("key: %v", err)
	}
	syscall.Kill(server.PID(), syscall.SIGCONT)
	if got := r.Finish(); len(got.Pastes) != 0 || got.Submits() > 1 {
		t.Errorf("recorded %q", got.Raw)
	}
}

// pause stops a server until the end of the test.
func pause(t *testing.T, s *faketmux.Server) {
	t.Helper()
	freeze.Process(t, s.PID())
	t.Cleanup(func() { syscall.Kill(s.PID(), syscall.SIGCONT) })
}

func TestInputAfterTheEndOfTheRequestIsNotSent(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Client().Paste(ctx, r.Target(), []byte("x")); !fault.Is(err, tmux.CodeInputNotSent) {
		t.Errorf("paste: %v", err)
	}
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
}

// A tmux that fails after it was started may have typed; one that cannot be started has not.
func TestOnlyABinaryThatNeverStartedProvesThatNothingWasSent(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	real, err := exec.LookPath("tmux")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := func(name, body string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	missing := filepath.Join(dir, "missing")
	belowFile := filepath.Join(script("file", "", 0o600), "tmux")
	fails := script("fails", "exit 1", 0o700)
	failsLate := script("late", `case "$*" in *if-shell*) exit 1;; esac; exec `+real+` "$@"`, 0o700)
	counts := filepath.Join(dir, "count")
	counted := script("counted", `echo x >>`+counts+`; exit 1`, 0o700)

	for _, c := range []struct {
		name     string
		programs []string
		paste    fault.Code
		key      fault.Code
	}{
		{"nothing to start", []string{missing, belowFile}, tmux.CodeInputNotSent, tmux.CodeInputNotSent},
		{"load fails", []string{fails}, tmux.CodeInputNotSent, tmux.CodeInputUncertain},
		{"paste fails", []string{failsLate}, tmux.CodeInputUncertain, tmux.CodeInputUncertain},
		{"another after a start", []string{counted, real}, tmux.CodeInputNotSent, tmux.CodeInputUncertain},
	} {
		s := tmux.WithPrograms(server.Client(), c.programs...)
		if err := s.Paste(t.Context(), r.Target(), []byte("x")); fault.CodeOf(err) != c.paste {
			t.Errorf("%s: paste: %v, want %s", c.name, err, c.paste)
		}
		if err := s.Key(t.Context(), r.Target(), tmux.Enter); fault.CodeOf(err) != c.key {
			t.Errorf("%s: key: %v, want %s", c.name, err, c.key)
		}
	}
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
	s := tmux.WithPrograms(server.Client(), missing, belowFile, real)
	if err := submit(t, s, r.Target(), "at last"); err != nil {
		t.Fatal(err)
	}
	arrivedOnce(t, r.Finish(), "at last", true)
	noBufferLeft(t, server)
}

func TestTextThatATerminalWouldActOnIsRefusedWithItsPlace(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	for text, want := range map[string]string{
		"":                               "empty",
		"ok\x1b[201~\rrm":                "U+001B at byte 2",
		"a\r\nb":                         "carriage return at byte 1",
		"日\x00":                          "U+0000 at byte 3",
		"a\x7f":                          "U+007F at byte 1",
		"a\u009b201~":                    "U+009B at byte 1",
		"a\xffb":                         "not UTF-8 at byte 1",
		"a\x9b201~":                      "not UTF-8 at byte 1",
		strings.Repeat("x", 1<<20) + "x": "limit",
	} {
		err := server.Client().Paste(t.Context(), r.Target(), []byte(text))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if err := tmux.ValidateText([]byte("tab\tLF\n日本 \uFFFD"), 100); err != nil {
		t.Error(err)
	}
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
}

func TestAnAbsentTmuxIsNamedAndNothingIsSent(t *testing.T) { // spec case 38
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	restore := tmux.SetPrograms("akk-no-such-tmux", "/nonexistent/tmux")
	t.Cleanup(restore)
	if err := tmux.Installed(); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "install tmux") {
		t.Errorf("installed: %v", err)
	}
	if err := server.Client().Paste(t.Context(), r.Target(), []byte("x")); !fault.Is(err, tmux.CodeInputNotSent) {
		t.Errorf("paste: %v", err)
	}
	if err := server.Client().Key(t.Context(), r.Target(), tmux.Enter); !fault.Is(err, tmux.CodeInputNotSent) {
		t.Errorf("key: %v", err)
	}
	restore()
	if err := tmux.Installed(); err != nil {
		t.Error(err)
	}
	if rec := r.Finish(); len(rec.Raw) != 0 {
		t.Errorf("the pane got %q", rec.Raw)
	}
}

package cli_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/doctor"
)

const workersTurn = "turn-20260904T150200-1a2b3c4d"

// someWorkers is a Bridge with the longest of what is usual.
func someWorkers(context.Context) ([]doctor.BridgeState, error) {
	now := time.Now()
	print := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	return []doctor.BridgeState{{BridgeID: "bridge-0123456789abcdef", Host: "my-agent", PID: 4194304, StartedAt: now.Add(-47 * time.Hour), Memory: 250 << 20, Fingerprint: print,
		Workers: []doctor.WorkerState{
			{Name: "akk-callback", Serves: "callbacks", State: "serving", PID: 4194303, AgeSeconds: 59, Memory: 16 << 20, LastHeartbeat: now, Fingerprint: print},
			{Name: "akk-telemetry", Serves: "telemetry", State: "serving", PID: 4712, Memory: 16 << 20, LastHeartbeat: now, Restarts: 3},
			{Name: "akk-monitor", Serves: workersTurn, State: "backoff", Restarts: 7, Fingerprint: print, Problem: "it ended and waits to be started again"},
		}}}, nil
}

func workersOn(t *testing.T, w io.Writer) {
	t.Helper()
	deps := cli.Deps{Bridges: someWorkers, IsTerminal: func(io.Writer) bool { return true }, LookupEnv: func(name string) (string, bool) { return "1", name == "NO_COLOR" }}
	if exit := cli.Main(t.Context(), []string{"workers"}, strings.NewReader(""), w, io.Discard, deps); exit != 0 {
		t.Errorf("exit %d", exit)
	}
}

// column is where a word begins in a line, in characters; -1 when it is not there.
func column(line, word string) int {
	before, _, ok := strings.Cut(line, word)
	if !ok {
		return -1
	}
	return utf8.RuneCountInString(before)
}

func TestWorkersShowTheFingerprintOfTheirProfile(t *testing.T) {
	var out bytes.Buffer
	workersOn(t, &out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[4], workersTurn) || !strings.Contains(lines[4], "it ended and waits") || !strings.Contains(lines[1], "bridge-0123456789abcdef") {
		t.Fatalf("\n%s", &out)
	}
	at := column(lines[0], "PROFILE")
	for i, want := range []string{"PROFILE", "0123456789ab ", "0123456789ab ", "- ", "0123456789ab "} {
		if line := []rune(lines[i]); at < 0 || !strings.HasPrefix(string(line[at:]), want) {
			t.Errorf("%q is not below PROFILE in\n%s", want, &out)
		}
	}
}

// A terminal of 80 columns holds each row on a line, and the problems after them.
func TestWorkersFitATerminalOf80Columns(t *testing.T) {
	for cols, narrow := range map[uint16]bool{80: true, 200: false} {
		terminal, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: cols}); err != nil {
			t.Fatal(err)
		}
		workersOn(t, tty) // a few lines: the terminal holds them until they are read
		tty.Close()
		b, _ := io.ReadAll(terminal) // the end of a terminal is an error
		terminal.Close()
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(b), "\r", "")), "\n")
		if !narrow {
			if len(lines) != 5 || !strings.Contains(lines[4], workersTurn) {
				t.Errorf("%d columns:\n%s", cols, b)
			}
			continue
		}
		if len(lines) != 6 || lines[5] != "-> akk-monitor for "+workersTurn+": it ended and waits to be started again" {
			t.Fatalf("%d columns:\n%s", cols, b)
		}
		at := column(lines[0], "PROFILE")
		for i, line := range lines[:5] {
			if n := utf8.RuneCountInString(line); n > int(cols) {
				t.Errorf("%d characters: %s", n, line)
			}
			if r := []rune(line); i > 0 && i != 3 && !strings.HasPrefix(string(r[at:]), "01234567 ") {
				t.Errorf("no fingerprint below PROFILE:\n%s", b)
			}
		}
		if !strings.Contains(lines[4], "…00-1a2b3c4d") {
			t.Errorf("\n%s", b)
		}
	}
}

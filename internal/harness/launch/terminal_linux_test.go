package launch_test

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/launch"
)

// A login program gets a terminal of its own that repeats nothing, and ends with it.
func TestAProgramInATerminalHasItForItself(t *testing.T) {
	l := newLocal(t, launch.Options{EOFGrace: patience})
	p, err := l.StartTerminal(t.Context(), launch.Spec{Dir: "/", Argv: []string{"/bin/sh", "-c",
		`test -t 0 && test -t 1 && test -t 2 && : </dev/tty && echo a-terminal; stty size; echo "$TERM"; read x; echo "got ${#x}"; read y; echo never`}})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout())
	var seen bytes.Buffer
	until := func(word string) {
		t.Helper()
		for !strings.Contains(seen.String(), word) {
			line, err := out.ReadString('\n')
			seen.WriteString(line)
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
		}
	}
	until("xterm")
	if _, err := io.WriteString(p.Stdin(), "secret\r"); err != nil {
		t.Fatal(err)
	}
	until("got 6")
	if text := seen.String(); !strings.Contains(text, "a-terminal") || !strings.Contains(text, "50 500") || strings.Contains(text, "secret") {
		t.Errorf("%q", text)
	}
	began := time.Now()
	if exit := p.Close(t.Context()); exit.Left != 0 || exit.Lost || exit.Signal == 0 && exit.Code == 0 {
		t.Errorf("%+v", exit)
	}
	if took := time.Since(began); took >= patience {
		t.Errorf("hanging up ended nothing: %v", took)
	}
}

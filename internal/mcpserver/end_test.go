package mcpserver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/mcpserver"
)

// answered checks that each id has exactly one successful reply among the lines.
func answered(t *testing.T, lines []string, want ...string) {
	t.Helper()
	got := replies(t, lines)
	slices.Sort(got)
	for i, id := range want {
		want[i] = "0 " + id
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("replies %q, want %q", got, want)
	}
}

func effects(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func TestWhatWasSentBeforeTheEndOfInputIsAnswered(t *testing.T) { // H2, M05, L16
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	cases := []struct {
		name  string
		input string
		end   func(c *child)
		ids   []string
		kept  int
	}{
		{"a: one write, then the end", handshake + list + toolCall("2", "slow", `{"ms":1}`),
			func(c *child) { c.in.Close() }, []string{"0", "1", "2"}, 1},
		{"b: a call of one second, the end after 200 ms", handshake + toolCall("2", "slow", `{"ms":1000}`),
			func(c *child) { pause(200); c.in.Close() }, []string{"0", "2"}, 1},
		{"c: SIGTERM in place of the end", handshake + toolCall("2", "slow", `{"ms":1000}`),
			func(c *child) { waitStarted(c); c.cmd.Process.Signal(syscall.SIGTERM) }, []string{"0", "2"}, 1},
		{"c: SIGINT twice", handshake + toolCall("2", "slow", `{"ms":1000}`),
			func(c *child) {
				waitStarted(c)
				c.cmd.Process.Signal(syscall.SIGINT)
				c.cmd.Process.Signal(syscall.SIGINT)
			}, []string{"0", "2"}, 1},
		{"c: SIGHUP (M15)", handshake + toolCall("2", "slow", `{"ms":1000}`),
			func(c *child) { waitStarted(c); c.cmd.Process.Signal(syscall.SIGHUP) }, []string{"0", "2"}, 1},
		{"d: the last line has no newline", handshake + strings.TrimSpace(toolCall("2", "slow", `{"ms":1}`)),
			func(c *child) { c.in.Close() }, []string{"0", "2"}, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "effects")
			c := startChild(t, path, false)
			c.raw(tc.input)
			tc.end(c)
			answered(t, c.rest(), tc.ids...)
			if code := c.exit(); code != 0 {
				t.Errorf("exit code %d; stderr: %s", code, c.stderr)
			}
			if got := effects(t, path); len(got) != tc.kept {
				t.Errorf("%d effects are kept, want %d", len(got), tc.kept)
			}
		})
	}
}

// waitStarted waits until the Host's call was admitted: the ping behind it is answered.
func waitStarted(c *child) {
	c.raw(ping(`"started"`))
	for {
		l, ok := c.line(patience)
		if !ok {
			c.t.Fatalf("the call was not admitted; stderr: %s", c.stderr)
		}
		if mustFrame(c.t, l).id() == `"started"` {
			return
		}
		c.early = append(c.early, l) // rest returns it again
	}
}

func TestAReplySaysWhatWasKeptInFiftyRounds(t *testing.T) { // H2 e
	const atOnce = 10
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for round := range 50 {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			path := filepath.Join(t.TempDir(), fmt.Sprint(round))
			c := startChild(t, path, false)
			c.raw(handshake + toolCall("2", "slow", `{"ms":1000}`))
			pause(rand.IntN(21))
			if round%2 == 0 {
				c.in.Close()
			} else {
				c.cmd.Process.Signal(syscall.SIGTERM)
			}
			succeeded := false
			seen := map[string]int{}
			for _, l := range c.rest() {
				f := mustFrame(t, l)
				seen[f.id()]++
				succeeded = succeeded || f.id() == "2" && f.code() == 0
			}
			code := c.exit()
			kept := len(effects(t, path)) == 1
			switch {
			case round%2 == 0 && (code != 0 || seen["0"] != 1 || seen["2"] != 1 || !succeeded || !kept):
				t.Errorf("round %d: exit %d, replies %v, kept %v; stderr: %s", round, code, seen, kept, c.stderr)
			case succeeded != kept || seen["2"] > 1:
				// A SIGTERM may come before the signal handler or the first read: then
				// nothing was taken, or the call was turned away.
				t.Errorf("round %d (SIGTERM): reply says %v, kept says %v, replies %v", round, succeeded, kept, seen)
			}
		})
	}
	wg.Wait()
}

// H2: what is not answered by itself within the limit is answered with an error.
func TestTheDrainLimitEndsTheSessionWithAnErrorForEveryRequest(t *testing.T) {
	t.Parallel()
	c := startChild(t, filepath.Join(t.TempDir(), "effects"), false)
	c.raw(handshake + toolCall("7", "slow", `{"ms":60000}`) + toolCall("8", "wait", `{"ms":500}`))
	start := time.Now()
	c.in.Close()
	lines := c.rest()
	code := c.exit()
	took := time.Since(start)
	// Call 7 is answered for by toolkit at its own limit, and then holds the drain.
	got := replies(t, lines)
	slices.Sort(got)
	if fmt.Sprint(got) != "[0 0 0 7 0 8]" {
		t.Errorf("replies %q; stderr: %s", got, c.stderr)
	}
	for _, l := range lines {
		if mustFrame(t, l).id() == "7" && !strings.Contains(l, `"retry":"check_first"`) {
			t.Errorf("the reply does not say that the outcome is unknown: %s", l)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if limit := mcpserver.DrainLimit + mcpserver.CancelGrace + 3*time.Second; took > limit {
		t.Errorf("took %s, more than %s", took, limit)
	}
}

func TestAHostThatStopsReadingCannotHoldTheEnd(t *testing.T) {
	t.Parallel()
	c := startChild(t, "", true)
	c.raw(handshake)
	big := strings.Repeat("x", 100<<10)
	for k := range 10 { // far more than a pipe takes
		c.raw(toolCall(fmt.Sprint(k+1), "echo", `{"text":"`+big+`"}`))
	}
	start := time.Now()
	c.in.Close()
	if code := c.exit(); code != 1 {
		t.Errorf("exit code %d, want 1; stderr: %s", code, c.stderr)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("a Host that does not read held the Bridge for %s", took)
	}
	if !strings.Contains(c.stderr.String(), "host_gone") {
		t.Errorf("stderr does not say why: %s", c.stderr)
	}
}

func TestAClosedStdoutEndsTheSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects")
	c := startChild(t, path, true)
	c.raw(handshake + toolCall("1", "slow", `{"ms":300}`))
	awaitFile(t, path)
	c.closeStdout()
	c.raw(ping("2"))
	if code := c.exit(); code != 1 { // with stdin still open
		t.Errorf("exit code %d, want 1; stderr: %s", code, c.stderr)
	}
	if got := effects(t, path); len(got) != 1 {
		t.Errorf("the call that ran was not completed: %q", got)
	}
}

func TestStdoutCarriesOnlyJSONRPC(t *testing.T) { // M16: the child prints in other ways first
	c := startChild(t, "", false)
	c.raw(handshake + ping("1"))
	c.untilID("1")
	c.in.Close()
	for _, l := range c.rest() {
		mustFrame(t, l)
	}
	if code := c.exit(); code != 0 || !strings.Contains(c.stderr.String(), "a library prints to stdout") {
		t.Errorf("exit code %d, stderr: %s", code, c.stderr)
	}
	if !strings.Contains(c.stderr.String(), "READY") {
		t.Error("OnReady was not called after the handshake")
	}
}

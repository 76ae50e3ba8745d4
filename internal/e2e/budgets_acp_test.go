//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// TestHeadlessBudgets measures what docs/BENCHMARKS.md says of headless agents and prints one
// table. As in TestBudgets a figure fails only at three times its budget.
func TestHeadlessBudgets(t *testing.T) {
	h := newHeadless(t)
	more, err := os.OpenFile(filepath.Join(h.dir, "h.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = more.WriteString("sessions:\n  max_concurrency: 64\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	more.Close()
	var table []string
	row := func(what, budget string, limit float64, unit string, got []float64) {
		slices.Sort(got)
		median, verdict := got[len(got)/2], "met"
		if median > limit {
			verdict = "over"
		}
		table = append(table, fmt.Sprintf("| %s | %s | %.1f %s | %.1f %s | %.1f %s | %d | %s |", what, budget, got[0], unit, median, unit, got[len(got)-1], unit, len(got), verdict))
		if median > 3*limit {
			t.Errorf("%s: median %.1f %s is over three times the budget %s", what, median, unit, budget)
		}
	}
	p := h.start("", nil)
	p.pid()
	row("proxy start to `initialize` reply, server up", "≤ 40 ms", 40, "ms", h.proxyStarts(20))
	row("autostart: from a call to its `ping` result", "≤ 150 ms", 150, "ms", p.autostarts(12))
	server := p.pid()
	empty := rss(t, server)
	row("server resident memory, no session", "≤ 30 MiB", 30, "MiB", []float64{empty})
	var all []string
	for range 50 {
		all = append(all, p.create())
	}
	// The allocations of the starts are garbage by now; the collector gives them back late.
	row("server resident memory for each of 50 idle sessions", "≤ 1 MiB", 1, "MiB", []float64{(rss(t, server) - empty) / 50})
	row("of that, the agent's own turn", "not ours", 1000, "ms", h.ownTurns(t, 40))
	row("`send_message`, with the agent's own turn", "p50 ≤ 20 ms", 20, "ms", p.sends(all[0], 40, 300*time.Millisecond))
	row("the same, right after the one before", "not set", 300, "ms", p.sends(all[0], 12, 0))
	row("server CPU, 50 sessions, 1,000 updates a second in total, of one core", "< 30 %", 30, "%", []float64{p.streaming(all, server)})
	row("server resident memory after that", "≤ 80 MiB", 80, "MiB", []float64{rss(t, server)})
	t.Logf("\n| What | Budget | min | median | max | runs | |\n| --- | --- | --- | --- | --- | --- | --- |\n%s", strings.Join(table, "\n"))
}

func (h *headless) proxyStarts(n int) (out []float64) {
	h.t.Helper()
	for range n {
		start := time.Now()
		p := h.spawn()
		fmt.Fprint(p.Stdin, initialize)
		if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, ms(start, time.Now()))
		p.Stdin.Close()
		p.WaitExit(settle)
	}
	return out
}

// autostarts stops the server and calls ping, n times.
func (p *proxy) autostarts(n int) (out []float64) {
	p.t.Helper()
	for range n {
		if err := syscall.Kill(p.h.registry()[p.h.url].SupervisorPID, syscall.SIGTERM); err != nil {
			p.t.Fatal(err)
		}
		fakehost.WaitNoSurvivors(p.t, p.h.caseID, settle, "harness mcp")
		start := time.Now()
		p.pid()
		out = append(out, ms(start, time.Now()))
	}
	return out
}

// ownTurns speaks to an agent without anything in between.
func (h *headless) ownTurns(t *testing.T, n int) (out []float64) {
	t.Helper()
	cmd := exec.Command(h.agent)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	call := func(id int, method, params string) (result struct{ SessionID string }) {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var f struct {
				ID     *int
				Method string
				Result json.RawMessage
			}
			if json.Unmarshal(line, &f) == nil && f.Method == "" && f.ID != nil && *f.ID == id {
				_ = json.Unmarshal(f.Result, &result) // a result of another method has no session
				return result
			}
		}
	}
	call(1, "initialize", `{"protocolVersion":1}`)
	s := call(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, h.work)).SessionID
	for i := range n {
		start := time.Now()
		call(3+i, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"SAY x"}]}`, s))
		out = append(out, ms(start, time.Now()))
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return out
}

func (p *proxy) sends(session string, n int, between time.Duration) (out []float64) {
	p.t.Helper()
	for range n {
		<-time.After(between)
		start := time.Now()
		if st := p.must("send_message", obj{"session_id": session, "text": "SAY x"}); text(st) != "x" {
			p.t.Fatalf("%v", st)
		}
		out = append(out, ms(start, time.Now()))
	}
	return out
}

// streaming is the share of one core that the server takes while every session gets 20
// updates a second.
func (p *proxy) streaming(all []string, server int) float64 {
	const window = 10 * time.Second
	t := p.t.(*testing.T)
	var done sync.WaitGroup
	for _, s := range all {
		done.Go(func() {
			if out, code, err := p.try(t.Context(), "send_message", obj{"session_id": s, "text": "STREAM 300 20"}); err != nil || code != "" {
				t.Errorf("%v %s %v", err, code, out)
			}
		})
	}
	<-time.After(2 * time.Second) // all of them began
	before, began := cpuSeconds(t, server), time.Now()
	<-time.After(window)
	used, took := cpuSeconds(t, server)-before, time.Since(began).Seconds()
	done.Wait()
	return 100 * used / took
}

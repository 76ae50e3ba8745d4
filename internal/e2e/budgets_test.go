//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// TestBudgets measures what docs/BENCHMARKS.md promises and prints one table. A budget
// fails the test only at three times its figure: this runs on shared machines too, and
// the table, not the verdict, is the result.
func TestBudgets(t *testing.T) {
	w := newWorld(t, nil)
	var table []string
	row := func(what, budget string, limit float64, unit string, got []float64) {
		slices.Sort(got)
		p := func(q float64) float64 { return got[min(len(got)-1, int(q*float64(len(got))))] }
		table = append(table, fmt.Sprintf("| %s | %s | %.1f %s | %.1f %s | %.1f %s | %d |", what, budget, got[0], unit, p(0.5), unit, p(0.99), unit, len(got)))
		if p(0.5) > 3*limit {
			t.Errorf("%s: median %.1f %s is over three times the budget %s", what, p(0.5), unit, budget)
		}
	}
	row("start to `initialize` reply, fresh Store", "≤ 40 ms", 40, "ms", startTimes(t, w, true))
	row("start to `initialize` reply, existing Store", "≤ 40 ms", 40, "ms", startTimes(t, w, false))

	row("killed Bridge with three Turns, until no process of it is left", "≤ 2 s, 100 of 100", 2000, "ms", killTimes(t, 100))

	table = append(table, fmt.Sprintf("| of that, starts of the trivial program and nothing else, as many at once | not ours | | %.0f/s | | 1500 |", startRate(t, 1500)))
	for _, history := range []int{0, 100_000} {
		const budget, runs = 300, 3000
		got := outboxRate(t, runs, history)
		table = append(table, fmt.Sprintf("| callbacks a second, trivial program, beside %d settled ones | ≥ %d/s | | %.0f/s | | %d |", history, budget, got, runs))
		if got < budget/3 {
			t.Errorf("beside %d settled ones: %.0f callbacks a second are under a third of the budget %d", history, got, budget)
		}
	}

	p := w.agent(standin.Codex)
	c := w.start()
	row("Bridge resident memory after its start", "≤ 30 MiB", 30, "MiB", []float64{rss(t, c.PID())})
	term := idle(t, c)
	row("completion record on disk to callback program", "p50 ≤ 50 ms, p99 ≤ 250 ms", 50, "ms", knocks(t, w, c, p, term.TerminalID, 100))
	row("of that, the callback program's own start", "not ours", 50, "ms", callbackStarts(t, w, 50))
	row("Bridge resident memory at the end of 100 tasks", "≤ 30 MiB", 30, "MiB", []float64{rss(t, c.PID())})
	time.Sleep(65 * time.Second) // until it has waited for longer than a minute
	row("the same when it has waited for a minute", "≤ 30 MiB", 30, "MiB", []float64{rss(t, c.PID())})

	for range 19 {
		w.agent(standin.Codex)
	}
	row("`list` with 20 agents (CLI, whole process)", "≤ 60 ms", 60, "ms", listTimes(t, w, 20))
	row("`agent_knock_knock_list` with 20 agents", "≤ 60 ms", 60, "ms", callTimes(t, c, "agent_knock_knock_list", map[string]any{}, 20))
	task := send(t, c, term.TerminalID, "SAY:x").TurnID
	waitCallback(t, c, task, "delivered")
	row("`agent_knock_knock_status` without a screen", "≤ 20 ms", 20, "ms", callTimes(t, c, "agent_knock_knock_status", map[string]any{"turn_id": task, "screen": false}, 40))
	row("`agent_knock_knock_status` with a screen, 20 agents", "≤ 60 ms", 60, "ms", callTimes(t, c, "agent_knock_knock_status", map[string]any{"turn_id": task}, 40))
	pss, resident := monitorMemory(t, c, 10)
	row("one idle monitor of 10, proportional memory", "≤ 5 MiB", 5, "MiB", pss)
	row("one idle monitor of 10, resident memory", "≤ 16 MiB", 16, "MiB", resident)
	for range 10 {
		w.agent(standin.Codex)
	}
	watched := humanTasks(t, w, 15)
	row("100 silent Turns and 50 Watches, share of two cores (from 30 and 15)", "< 5 %", 5, "%", []float64{silence(t, c, 30, watched)})
	t.Logf("\n| What | Budget | min | median | p99 | runs |\n| --- | --- | --- | --- | --- | --- |\n%s", strings.Join(table, "\n"))
}

// startTimes measures from the start of the process to its first reply.
func startTimes(t *testing.T, w *world, fresh bool) []float64 {
	t.Helper()
	var out []float64
	for range 15 {
		b := w.bridge("--log-level", "warn")
		if fresh {
			b.StoreDir = t.TempDir()
		}
		start := time.Now()
		p := fakehost.Spawn(t, b)
		fmt.Fprint(p.Stdin, initialize)
		if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		out = append(out, ms(start, time.Now()))
		p.Stdin.Close()
		p.WaitExit(settle)
	}
	return out
}

// knocks measures from the moment after the agent wrote its completion record to the
// first thing the callback program notes.
func knocks(t *testing.T, w *world, c *fakehost.Client, p *pane, terminal string, n int) []float64 {
	t.Helper()
	for i := range n {
		got := send(t, c, terminal, fmt.Sprintf("SAY:answer %d", i))
		waitCallback(t, c, got.TurnID, "delivered")
		faketmux.Wait(t, "an idle agent", func() bool { return list(t, c).Terminals[0].Actions["send"].Tool != "" }, func() string { return "" })
	}
	var ends []time.Time
	for _, e := range p.EventLog(t) {
		if e.Ev == "end" {
			ends = append(ends, e.T)
		}
	}
	deliveries := w.host.Deliveries()
	if len(ends) != n || len(deliveries) != n {
		t.Fatalf("%d ends, %d deliveries of %d", len(ends), len(deliveries), n)
	}
	var out []float64
	for i := range n {
		out = append(out, ms(ends[i], deliveries[i].T))
	}
	return out
}

func listTimes(t *testing.T, w *world, n int) []float64 {
	t.Helper()
	var out []float64
	for range n {
		start := time.Now()
		cmd := exec.Command(w.bin, "list", "--json", "--store-dir", w.host.Store, "--tmux-socket", w.tmux.Socket())
		b, err := cmd.Output()
		if err != nil || strings.Count(string(b), `"terminal_id"`) < 20 {
			t.Fatalf("%v: %s", err, b)
		}
		out = append(out, ms(start, time.Now()))
	}
	return out
}

func callTimes(t *testing.T, c *fakehost.Client, tool string, args any, n int) []float64 {
	t.Helper()
	var out []float64
	for range n {
		start := time.Now()
		c.MustCall(tool, args)
		out = append(out, ms(start, time.Now()))
	}
	return out
}

// callbackStarts measures the callback program alone: from the start of its process to the
// first thing it notes.
func callbackStarts(t *testing.T, w *world, n int) []float64 {
	t.Helper()
	var out []float64
	log := filepath.Join(t.TempDir(), "alone.jsonl")
	for range n {
		cmd := exec.Command(w.host.Callback)
		cmd.Env = []string{fakehost.EnvLog + "=" + log, fakehost.EnvCase + "=" + w.host.CaseID}
		cmd.Stdin = strings.NewReader("{}")
		start := time.Now()
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		notes, err := fakehost.ReadLog(log)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ms(start, notes[len(notes)-1].T))
	}
	return out
}

// occupy gives tasks that never end until n Turns run, and waits for their monitors.
func occupy(t *testing.T, c *fakehost.Client, n int) []int {
	t.Helper()
	running := 0
	for _, r := range list(t, c).Terminals {
		if r.Current != nil {
			running++
		}
	}
	for _, r := range list(t, c).Terminals {
		if running < n && r.Current == nil && r.State == "idle" {
			send(t, c, r.TerminalID, "GATE:never ;; SAY:x")
			running++
		}
	}
	faketmux.Wait(t, "monitors", func() bool { return len(children(t, c.PID(), "akk-monitor")) == n }, func() string { return dump(children(t, c.PID(), "akk-monitor")) })
	return children(t, c.PID(), "akk-monitor")
}

// monitorMemory measures what each of n monitors holds once it has given back what its
// first looks needed.
func monitorMemory(t *testing.T, c *fakehost.Client, n int) (pss, resident []float64) {
	t.Helper()
	pids := occupy(t, c, n)
	time.Sleep(30 * time.Second) // the age of what is measured
	for _, pid := range pids {
		pss = append(pss, field(t, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")/1024)
		resident = append(resident, field(t, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Rss:")/1024)
	}
	return pss, resident
}

// humanTasks starts n agents that a person gave a task which never ends, and returns their
// panes.
func humanTasks(t *testing.T, w *world, n int) (panes []*pane) {
	t.Helper()
	for range n {
		p := w.agent(standin.Codex)
		human(t, w, p, "GATE:never ;; SAY:x")
		panes = append(panes, p)
	}
	return panes
}

// watchAll watches what runs in the panes, and returns the monitors of everything.
func watchAll(t *testing.T, c *fakehost.Client, panes []*pane, turns int) []int {
	t.Helper()
	of := map[string]bool{}
	for _, p := range panes {
		of[fmt.Sprint(p.PID)] = true
	}
	all := func() []int { return children(t, c.PID(), "akk-monitor") }
	faketmux.Wait(t, "a monitor of each Watch", func() bool {
		for _, r := range list(t, c).Terminals {
			watch, ok := r.Actions["watch"]
			if pid := r.TerminalID[strings.LastIndexByte(r.TerminalID, ':')+1:]; ok && of[pid] {
				c.MustCall(watch.Tool, watch.Arguments)
				delete(of, pid)
			}
		}
		return len(of) == 0 && len(all()) == turns+len(panes)
	}, func() string { return dump(of) })
	return all()
}

// silence measures the CPU of the Bridge, its workers and their tmux clients while n Turns
// run, and Watches of the panes, whose agents say nothing, and returns what 100 Turns and
// as many Watches for each would take of two cores, in percent. It first lets the looks at
// the screens reach their slow pace, and measures over more than one of them.
func silence(t *testing.T, c *fakehost.Client, n int, panes []*pane) float64 {
	t.Helper()
	const calm, span = 75 * time.Second, 120 * time.Second
	occupy(t, c, n)
	pids := append(watchAll(t, c, panes, n), children(t, c.PID(), "akk-callback")...)
	pids = append(pids, c.PID())
	used := func() (s float64) {
		for _, pid := range pids {
			s += cpuSeconds(t, pid)
		}
		return s
	}
	time.Sleep(calm) // a measurement of time, not a wait for something
	before := used()
	time.Sleep(span)
	return (used() - before) / span.Seconds() / 2 * 100 * 100 / float64(n)
}

// cpuSeconds is the CPU time of a process and its ended children, in ticks of 10 ms.
func cpuSeconds(t *testing.T, pid int) (s float64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	for _, v := range f[11:15] { // utime stime cutime cstime
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		s += n / 100
	}
	return s
}

func rss(t *testing.T, pid int) float64 {
	t.Helper()
	return field(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:") / 1024
}

// field reads a number of KiB from a file of /proc.
func field(t *testing.T, path, name string) float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}

func ms(from, to time.Time) float64 { return float64(to.Sub(from).Microseconds()) / 1000 }

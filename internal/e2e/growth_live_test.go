//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	growthCalls  = 6  // rounds of list at each size
	growthKnocks = 20 // at each number of Turns at once
	sendsAtOnce  = 2
	// idleSpan is how long idleness is measured; CPU time is told in ticks of 10 ms.
	idleSpan = 15 * time.Second
	// calmSpan lets what follows a send settle. The looks at the screens are still at their
	// quick pace then, which a Turn reaches the end of after 75 s: see the table of budgets.
	calmSpan = 10 * time.Second
	// growthPatience bounds what hundreds of processes do. growthLimit is when no larger
	// number of Turns at once is begun: a busy machine gets a shorter table.
	growthPatience = 3 * time.Minute
	growthLimit    = 8 * time.Minute
)

// TestGrowthOfPanes measures what panes cost that hold no agent. Run it with `make growth`.
func TestGrowthOfPanes(t *testing.T) {
	sizes := []int{1, 10, 50, 100, 200}
	bin := install(t)
	g := newGrowth(t, "panes, one with an agent", sizes...)
	took := g.flat("`list`", "ms", 2, 0)
	cost := g.flat("CPU of a `list`, tmux clients included", "ms", 2, 0)
	hosts := make([]*fakehost.Client, len(sizes))
	for i, n := range sizes {
		w := &world{t: t, host: fakehost.New(t, nil), tmux: faketmux.New(t), bin: bin}
		w.agent(standin.Codex)
		for range n - 1 {
			w.tmux.Run(faketmux.Spec{})
		}
		hosts[i] = w.start()
		idle(t, hosts[i])
	}
	lists(t, g, hosts, took, cost)
	g.report()
	closeAll(t, hosts)
}

// lists measures list at every size, and the CPU that it takes.
func lists(t *testing.T, g *growth, hosts []*fakehost.Client, took, cost *figure) {
	t.Helper()
	g.rounds(growthCalls, func(i int) {
		const together = 2 // ticks are coarse
		before := cpuSeconds(t, hosts[i].PID())
		for range together {
			took.timed(i, func() { hosts[i].MustCall("agent_knock_knock_list", map[string]any{"limit": 200}) })
		}
		cost.add(i, (cpuSeconds(t, hosts[i].PID())-before)/together*1000)
	})
}

func closeAll(t *testing.T, hosts []*fakehost.Client) {
	t.Helper()
	for _, c := range hosts {
		if code := c.Close(growthPatience); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// crowd is one Host with a tmux server full of agents.
type crowd struct {
	*world
	c     *fakehost.Client
	panes []*pane
	terms []string
	tasks []string // what each agent is asked now, also the gate that it waits at; "" for nothing
}

// TestGrowthOfAgents measures what agents cost, first idle, then all with a task. Run it
// with `make growth`.
func TestGrowthOfAgents(t *testing.T) {
	sizes := []int{1, 10, 50, 100, 200}
	bin := install(t)
	crowds, hosts := make([]*crowd, len(sizes)), make([]*fakehost.Client, len(sizes))
	for i, n := range sizes {
		w := &world{t: t, host: fakehost.New(t, nil), tmux: faketmux.New(t), bin: bin}
		crowds[i] = &crowd{world: w, tasks: make([]string, n), terms: make([]string, n)}
		for range n {
			crowds[i].panes = append(crowds[i].panes, w.agent(standin.Codex))
		}
		hosts[i] = w.start()
		crowds[i].c = hosts[i]
		crowds[i].meet()
	}
	idleAgents(t, sizes, hosts)
	busyAgents(t, sizes, crowds)
	closeAll(t, hosts)
}

// meet learns the terminals of the agents.
func (k *crowd) meet() {
	k.t.Helper()
	of := map[string]int{}
	for i, p := range k.panes {
		of[fmt.Sprint(p.PID)] = i
	}
	var l listing
	faketmux.Wait(k.t, "idle agents", func() bool {
		l = listing{}
		k.c.MustCall("agent_knock_knock_list", map[string]any{"limit": 200}).Decode(k.t, &l)
		ready := 0
		for _, r := range l.Terminals {
			if i, ok := of[r.TerminalID[strings.LastIndexByte(r.TerminalID, ':')+1:]]; ok && r.Actions["send"].Tool != "" {
				k.terms[i] = r.TerminalID
				ready++
			}
		}
		return ready == len(k.panes)
	}, func() string { return dump(l) })
}

// idleAgents is the table of agents that have nothing to do.
func idleAgents(t *testing.T, sizes []int, hosts []*fakehost.Client) {
	g := newGrowth(t, "idle agents", sizes...)
	took := g.linear("`list`", "ms", 2, 0)
	cost := g.linear("CPU of a `list`, tmux clients included", "ms", 2, 0)
	rests := g.flat("idle Bridge, share of a core", "%", 3, 0.5)
	lists(t, g, hosts, took, cost)
	before := make([]float64, len(hosts))
	for i, c := range hosts {
		before[i] = cpuSeconds(t, c.PID())
	}
	time.Sleep(idleSpan) // a measurement of time, not a wait for something
	for i, c := range hosts {
		rests.add(i, (cpuSeconds(t, c.PID())-before[i])/idleSpan.Seconds()*100)
	}
	g.report()
}

// busyAgents is the table of Turns at once, one size after the other.
func busyAgents(t *testing.T, sizes []int, crowds []*crowd) {
	g := newGrowth(t, "Turns at once", sizes...)
	sends := g.flat("`send`, two at a time", "ms", 0, 0)
	memory := g.linear("Bridge, resident", "MiB", 1, 0)
	grows := g.flat("Bridge, resident, each Turn above one", "MiB", 0, 0)
	pss := g.flat("a monitor, proportional", "MiB", 1.2, 0) // one alone shares its program with nobody
	rests := g.linear("Bridge and monitors, silent agents, share of a core", "%", 2, 0.5)
	// Beside two hundred agents and monitors on a few cores everything waits a little longer.
	half := g.flat("from done to the callback program, p50", "ms", 4, 0)
	most := g.flat("from done to the callback program, p95", "ms", 0, 0)
	begin := time.Now()
	for i, k := range crowds {
		if each := sends.median(max(i-1, 0)) / 1000; i > 0 && time.Since(begin).Seconds()+each*float64(sizes[i])/sendsAtOnce > growthLimit.Seconds() {
			t.Logf("%d Turns at once are left out: a send takes %.1f s on this machine now", sizes[i], each)
			break
		}
		sends.add(i, k.askAll()...)
		monitors := children(t, k.c.PID(), "akk-monitor")
		time.Sleep(calmSpan) // a measurement of time, as the next one
		pids := append(append(monitors, k.c.PID()), children(t, k.c.PID(), "akk-callback")...)
		used := func() (s float64) {
			for _, pid := range pids {
				s += cpuSeconds(t, pid)
			}
			return s
		}
		before := used()
		time.Sleep(idleSpan)
		rests.add(i, (used()-before)/idleSpan.Seconds()*100)
		// One Turn's share is mostly the Bridge's own: ten are what many are compared with.
		if i > 1 && rests.median(i)/float64(sizes[i]) > 3*rests.median(1)/float64(sizes[1]) {
			t.Errorf("%d silent Turns take %.1f %% of a core, more than three times as much each as %d, which take %.1f %%", sizes[i], rests.median(i), sizes[1], rests.median(1))
		}
		memory.add(i, rss(t, k.c.PID()))
		if i > 0 {
			grows.add(i, (memory.median(i)-memory.median(0))/float64(sizes[i]-1))
		}
		for _, pid := range monitors[:min(len(monitors), 20)] {
			pss.add(i, field(t, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")/1024)
		}
		took := k.knocks(growthKnocks)
		half.add(i, quantile(took, 0.5))
		most.add(i, quantile(took, 0.95))
		k.releaseAll()
	}
	g.report()
}

// ask gives one agent a task that waits at a gate, and returns how long the send took. A
// task that a busy machine kept from being entered is reported and left out.
func (k *crowd) ask(agent int, round string) (float64, error) {
	text := fmt.Sprintf("answer-%d-%s", agent, round)
	for attempt := 1; ; attempt++ {
		begin := time.Now()
		res, err := k.c.Call(k.t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": k.terms[agent], "request": fmt.Sprintf("GATE:%s ;; SAY:%s", text, text)})
		took := ms(begin, time.Now())
		if err != nil {
			return took, err
		}
		var s sent
		if err := json.Unmarshal(res.JSON, &s); err != nil {
			return took, err
		}
		switch {
		case res.IsError && res.Code() == string(turn.CodeBlocked): // an attempt before was left to finish
			k.t.Logf("agent %d of %d: %s", agent, len(k.panes), res.JSON)
			return took, nil
		case res.IsError && attempt < 10: // nothing was typed
		case res.IsError:
			return took, fmt.Errorf("%s", res.JSON)
		case s.Submission == "uncertain":
			k.t.Logf("agent %d of %d: %s", agent, len(k.panes), s.Reason)
			return took, nil
		default:
			k.tasks[agent] = text
			return took, nil
		}
	}
}

// askAll gives every agent a task, two at a time, and waits for the monitors.
func (k *crowd) askAll() []float64 {
	k.t.Helper()
	took, failed := make([]float64, len(k.panes)), make([]error, len(k.panes))
	slots := make(chan struct{}, sendsAtOnce)
	var wg sync.WaitGroup
	for i := range k.panes {
		slots <- struct{}{}
		wg.Go(func() {
			took[i], failed[i] = k.ask(i, "first")
			<-slots
		})
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			k.t.Fatalf("agent %d of %d: %v", i, len(k.panes), err)
		}
	}
	all := func() []int { return children(k.t, k.c.PID(), "akk-monitor") }
	given := len(k.tasks) - len(slices.DeleteFunc(slices.Clone(k.tasks), func(s string) bool { return s != "" }))
	faketmux.Wait(k.t, "a monitor of each", func() bool { return len(all()) >= given }, func() string { return dump(all()) })
	return took
}

// knocks ends n tasks one after the other, while all other agents have one, and returns
// how long each took from the agent's record of its end to the callback program.
func (k *crowd) knocks(n int) []float64 {
	k.t.Helper()
	var took []float64
	for round := 0; len(took) < n && round < 3*n; round++ {
		i := round % len(k.panes)
		if round >= len(k.panes) { // it ended one already
			if _, err := k.ask(i, fmt.Sprint(round)); err != nil {
				k.t.Fatal(err)
			}
		}
		if k.tasks[i] == "" {
			continue
		}
		k.panes[i].Release(k.t, k.tasks[i])
		heard := k.heard(k.tasks[i])
		took = append(took, ms(k.ended(i), heard))
		k.tasks[i] = ""
	}
	return took
}

// heard waits for the callback of an answer.
func (k *crowd) heard(answer string) (at time.Time) {
	k.t.Helper()
	faketmux.Wait(k.t, "the callback of "+answer, func() bool {
		for _, d := range k.host.Deliveries() {
			if d.Body == answer {
				at = d.T
			}
		}
		return !at.IsZero()
	}, func() string { return k.c.Stderr() })
	return at
}

// ended is when the agent wrote the end of its last task.
func (k *crowd) ended(agent int) (at time.Time) {
	k.t.Helper()
	for _, e := range k.panes[agent].EventLog(k.t) {
		if e.Ev == "end" {
			at = e.T
		}
	}
	return at
}

// releaseAll ends what still runs and waits for the callbacks.
func (k *crowd) releaseAll() {
	k.t.Helper()
	before := len(k.host.Deliveries())
	open := 0
	for i, task := range k.tasks {
		if task != "" {
			k.panes[i].Release(k.t, task)
			open++
		}
	}
	k.host.WaitDeliveries(before+open, growthPatience)
}

package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// children returns the pids of the Bridge's live descendants whose program has the name.
func children(t testing.TB, bridge int, name string) []int {
	t.Helper()
	table, err := procinfo.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range table.Descendants(bridge) {
		if len(p.Args) > 0 && filepath.Base(p.Args[0]) == name && !p.Zombie() {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// waitChild waits for a child of the name that is not among the old ones.
func waitChild(t testing.TB, bridge int, name string, old ...int) int {
	t.Helper()
	found := 0
	faketmux.Wait(t, "a new "+name, func() bool {
		for _, pid := range children(t, bridge, name) {
			fresh := true
			for _, o := range old {
				fresh = fresh && o != pid
			}
			if fresh {
				found = pid
				return true
			}
		}
		return false
	}, func() string { return dump(children(t, bridge, name)) })
	return found
}

// descendants returns everything that runs below a process now.
func descendants(t testing.TB, pid int) []turn.Incarnation {
	t.Helper()
	table, err := procinfo.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []turn.Incarnation
	for _, p := range table.Descendants(pid) {
		out = append(out, p.Incarnation)
	}
	return out
}

// waitGone fails unless all of them are dead goneIn after the call.
func waitGone(t testing.TB, family []turn.Incarnation) {
	t.Helper()
	start := time.Now()
	for _, inc := range family {
		faketmux.Wait(t, "the end of a process", func() bool {
			alive, err := procinfo.Alive(inc)
			return err == nil && !alive
		}, func() string { return dump(inc) })
	}
	if d := time.Since(start); d > goneIn {
		t.Errorf("it took %v until all were gone, the promise is %v", d, goneIn)
	}
}

func kill(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}

// working sends a task that waits at a gate and returns when the agent has it.
func working(t testing.TB, w *world, c *fakehost.Client, body string) sent {
	t.Helper()
	got := send(t, c, idle(t, c).TerminalID, "GATE:go ;; SAY:"+body)
	if got.Status != "async_pending" {
		t.Fatalf("%+v", got)
	}
	return got
}

func TestAKilledBridgeLeavesNobodyAndTheNextOneFinishesItsTurns(t *testing.T) { // H3 c, S01, S12
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	got := working(t, w, c, "late answer")
	waitChild(t, c.PID(), "akk-monitor")
	family := descendants(t, c.PID())
	c.Kill()
	waitGone(t, family)
	if ok, err := procinfo.Alive(mustProcess(t, p.PID)); err != nil || !ok {
		t.Fatal("the human's agent was touched")
	}
	next := w.start()
	waitChild(t, next.PID(), "akk-monitor")
	p.Release(t, "go")
	s := waitCallback(t, next, got.TurnID, "delivered")
	if s.Turn.Status != "idle" {
		t.Errorf("%s", dump(s))
	}
	if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "late answer" {
		t.Errorf("%+v", d)
	}
	p.typedOnce("GATE:go ;; SAY:late answer")
}

func mustProcess(t testing.TB, pid int) turn.Incarnation {
	t.Helper()
	p, err := procinfo.Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.Incarnation
}

func TestAKilledBridgeTakesAHostileCallbackTreeWithIt(t *testing.T) { // H3 c with setsid children
	w := newWorld(t, nil)
	w.host.SetMode(fakehost.Sleep)
	w.agent(standin.Codex)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "SAY:x")
	w.host.WaitDeliveries(1, settle) // the program runs and sleeps
	family := descendants(t, c.PID())
	if len(family) < 3 {
		t.Errorf("worker, runner and program should run, there are %d processes", len(family))
	}
	c.Kill()
	waitGone(t, family)
	fakehost.WaitNoSurvivors(t, w.host.CaseID, goneIn)
	next := w.start()
	s := waitCallback(t, next, got.TurnID, "uncertain") // spec case 32
	if s.Turn.Status != "idle" || len(w.host.Deliveries()) != 1 {
		t.Errorf("%s", dump(s))
	}
}

func TestADeadMonitorIsReplacedAndAFrozenOneToo(t *testing.T) { // spec case 53, H4
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.agent(standin.Claude)
			c := w.start()
			got := working(t, w, c, "seen by the second monitor")
			first := waitChild(t, c.PID(), "akk-monitor")
			kill(t, first, sig)
			waitChild(t, c.PID(), "akk-monitor", first)
			p.Release(t, "go")
			waitCallback(t, c, got.TurnID, "delivered")
			if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "seen by the second monitor" {
				t.Errorf("%+v", d)
			}
			if left := children(t, c.PID(), "akk-monitor"); len(left) != 0 {
				faketmux.Wait(t, "no monitor", func() bool { return len(children(t, c.PID(), "akk-monitor")) == 0 }, func() string { return dump(left) })
			}
		})
	}
}

func TestAKilledCallbackWorkerIsReplacedAndItsDeliveryIsNotRepeated(t *testing.T) {
	w := newWorld(t, nil)
	w.host.SetMode(fakehost.Sleep)
	w.agent(standin.Codex)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "SAY:x")
	w.host.WaitDeliveries(1, settle)
	kill(t, waitChild(t, c.PID(), "akk-callback"), syscall.SIGKILL)
	waitCallback(t, c, got.TurnID, "uncertain")
	w.host.SetMode(fakehost.Accept)
	again := send(t, c, idle(t, c).TerminalID, "SAY:y")
	waitCallback(t, c, again.TurnID, "delivered")
	if d := w.host.Deliveries(); len(d) != 2 || d[1].Body != "y" {
		t.Errorf("%+v", d)
	}
}

func TestAnAgentThatDiesStallsTheTurnOnceUnlessItsAnswerIsOnDisk(t *testing.T) { // spec case 52, E09, H8 e
	for at, want := range map[string]string{"accepted": "stalled", "end": "idle"} {
		t.Run("dies at "+at, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.agent(standin.Codex, "die="+at)
			p.WaitEvent(t, "ready", 1, settle)
			c := w.start()
			got := send(t, c, idle(t, c).TerminalID, "SAY:last words")
			s := waitStatus(t, c, got.TurnID, want)
			waitCallback(t, c, got.TurnID, "delivered")
			if d := w.host.Deliveries(); len(d) != 1 {
				t.Errorf("%+v", d)
			}
			if want == "stalled" && !strings.Contains(s.Turn.Reason, "ended") {
				t.Errorf("%s", dump(s))
			}
		})
	}
}

func TestTheTmuxServerDiesAndANewOneReusesThePaneId(t *testing.T) { // T05
	w := newWorld(t, nil)
	w.agent(standin.Codex)
	c := w.start()
	got := working(t, w, c, "never")
	w.tmux.Kill()
	waitStatus(t, c, got.TurnID, "stalled")
	p := w.agent(standin.Codex)
	second := idle(t, c)
	p.untouched()
	again := send(t, c, second.TerminalID, "SAY:fresh")
	waitCallback(t, c, again.TurnID, "delivered")
	p.typedOnce("SAY:fresh")
}

func TestTheHostDiesWhileASiblingHoldsThePipe(t *testing.T) { // H3 b, M09
	w := newWorld(t, nil)
	w.agent(standin.Codex)
	b := w.bridge()
	fifo := quote(filepath.Join(w.host.Dir, "in"))
	// The shell is the Host; the sleep holds the write end of the Bridge's input, so the
	// end of the Host is never an end of input. Neither has the Host's stderr: its end would
	// only be seen when they let go of that.
	b.Bin, b.Command = "/bin/sh", []string{"-c", "mkfifo " + fifo + "; sleep 300 >" + fifo + " 2>/dev/null & " + commandLine(b) + " <" + fifo + " >/dev/null 2>&1 & wait"}
	host := fakehost.Spawn(t, b)
	bridge := waitChild(t, host.PID(), "agent-knock-knock")
	sleeper := waitChild(t, host.PID(), "sleep")
	defer kill(t, sleeper, syscall.SIGKILL)
	inc := mustProcess(t, bridge)
	faketmux.Wait(t, "the Bridge to be up", func() bool {
		announced, err := filepath.Glob(filepath.Join(w.host.Store, "bridges", "*.lock"))
		return err == nil && len(announced) == 1
	}, func() string { return dump(inc) })
	host.Kill()
	start := time.Now()
	faketmux.Wait(t, "the Bridge to follow its Host", func() bool {
		alive, err := procinfo.Alive(inc)
		return err == nil && !alive
	}, func() string { return dump(inc) })
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("it took %v", d)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

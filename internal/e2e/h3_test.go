package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// scene is the set-up of case H3: two agents are busy with tasks, and a callback runs whose
// program has left two children, one of them in a session of its own. The Host is a
// process of its own; this test only holds its pipes.
type scene struct {
	*world
	c      *fakehost.Client // its PID is the Host's
	bridge int
	run    string // the runtime directory of this case alone
	busy   []*pane
	turns  []string
	told   string // the Turn whose callback runs
	spare  *pane
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{world: newWorld(t, nil), run: faketmux.ShortDir(t)}
	s.host.Env = append(s.host.Env, "XDG_RUNTIME_DIR="+s.run)
	s.host.SetMode(fakehost.Brood)
	s.busy = []*pane{s.agent(standin.Codex), s.agent(standin.Claude)}
	s.spare = s.agent(standin.Codex)
	b := s.world.bridge()
	b.Bin, b.Command = "/bin/sh", []string{"-c", commandLine(b) + "; exit $?"}
	s.c = fakehost.Start(t, b)
	s.bridge = waitChild(t, s.c.PID(), "agent-knock-knock")
	for i, p := range s.busy {
		got := send(t, s.c, readyPane(t, s.c, p), h3Task(i))
		s.turns = append(s.turns, got.TurnID)
		waitStatus(t, s.c, got.TurnID, "waiting_for_agent")
	}
	s.told = send(t, s.c, readyPane(t, s.c, s.spare), "SAY:told").TurnID
	s.host.WaitDeliveries(1, settle)
	faketmux.Wait(t, "the callback program and its two children", func() bool { return len(s.brood()) == 3 }, func() string { return dump(s.brood()) })
	return s
}

func h3Task(i int) string { return fmt.Sprintf("GATE:go ;; SAY:late answer %d", i) }

// commandLine is the shell's form of the usual start of a Bridge.
func commandLine(b fakehost.Bridge) string {
	words := []string{quote(b.Bin)}
	for _, a := range append([]string{"host-bridge", "--profile", b.Profile, "--host", fakehost.HostName, "--host-version", fakehost.HostVersion, "--store-dir", b.StoreDir}, b.Args...) {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// readyPane waits until the terminal of p can take a task, and returns its id.
func readyPane(t testing.TB, c *fakehost.Client, p *pane) string {
	t.Helper()
	id := ""
	var l struct{ Terminals []placed }
	faketmux.Wait(t, "a ready terminal", func() bool {
		c.MustCall("agent_knock_knock_list", map[string]any{}).Decode(t, &l)
		for _, r := range l.Terminals {
			if r.PID == p.PID && r.Actions["send"].Tool != "" {
				id = r.TerminalID
			}
		}
		return id != ""
	}, func() string { return dump(l) })
	return id
}

// brood is the callback program and what it started.
func (s *scene) brood() []fakehost.Survivor {
	s.t.Helper()
	all, err := fakehost.Survivors(s.host.CaseID)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []fakehost.Survivor
	for _, p := range all {
		if strings.HasPrefix(p.Args, "/bin/sleep ") || strings.HasPrefix(p.Args, s.host.Callback+" ") {
			out = append(out, p)
		}
	}
	return out
}

// ended proves that nothing of ours is left, and that the human's agents are untouched.
func (s *scene) ended() {
	s.t.Helper()
	fakehost.WaitNoSurvivors(s.t, s.host.CaseID, settle)
	for _, p := range append(s.busy, s.spare) {
		if proc, err := procinfo.Read(p.PID); err != nil || proc.Zombie() {
			s.t.Errorf("the agent of %s was touched: %v", p.ID, err)
		}
	}
}

// goesOn starts the next Bridge and proves that it finishes what was begun, once.
func (s *scene) goesOn() {
	t := s.t
	t.Helper()
	s.host.SetMode(fakehost.Accept)
	next := s.start()
	dirs, err := filepath.Glob(filepath.Join(s.run, "akk-*", "b*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if !strings.HasPrefix(filepath.Base(d), fmt.Sprintf("b%d-", next.PID())) {
			t.Errorf("%s of a dead Bridge is still there", d)
		}
	}
	waitCallback(t, next, s.told, "uncertain") // it may have been heard: never again
	fresh := send(t, next, readyPane(t, next, s.spare), "SAY:first write")
	waitCallback(t, next, fresh.TurnID, "delivered")
	for i, p := range s.busy {
		waitStatus(t, next, s.turns[i], "waiting_for_agent") // nobody says done without proof
		p.Release(t, "go")
		st := waitCallback(t, next, s.turns[i], "delivered")
		if st.Turn.Status != "idle" || len(st.Callbacks) != 1 {
			t.Errorf("%s", dump(st))
		}
		p.typedOnce(h3Task(i))
	}
	heard := map[string]int{}
	for _, d := range s.host.Deliveries() {
		heard[d.Body]++
	}
	for _, body := range []string{"told", "first write", "late answer 0", "late answer 1"} {
		if heard[body] != 1 {
			t.Errorf("the Host heard %v", heard)
		}
	}
	if code := next.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	s.ended()
}

func TestH3AKilledHostLeavesNobodyAndTheNextBridgeFinishesItsTurns(t *testing.T) { // H3 a, M12
	t.Parallel()
	s := newScene(t)
	bridge := mustProcess(t, s.bridge)
	s.c.Kill()
	s.c.Stdin.Close() // the kernel closes the pipes of a process that ended
	s.c.Stdout.Close()
	faketmux.Wait(t, "the end of the Bridge", func() bool { alive, err := procinfo.Alive(bridge); return err == nil && !alive }, func() string { return dump(bridge) })
	s.ended()
	s.goesOn()
}

func TestH3AKilledBridgeLeavesNobodyAndTheNextOneFinishesItsTurns(t *testing.T) { // H3 c
	t.Parallel()
	s := newScene(t)
	family := descendants(t, s.bridge)
	if len(family) < 7 { // three monitors at most, worker, runner, program, its two children
		t.Errorf("only %d processes run below the Bridge", len(family))
	}
	kill(t, s.bridge, syscall.SIGKILL)
	waitGone(t, family)
	s.c.WaitExit(settle)
	s.ended()
	s.goesOn()
}

func TestH3AKilledCallbackWorkerTakesItsProgramsWithItAndTheBridgeGoesOn(t *testing.T) { // H3 d
	t.Parallel()
	s := newScene(t)
	worker := waitChild(t, s.bridge, "akk-callback")
	family := descendants(t, worker)
	kill(t, worker, syscall.SIGKILL)
	waitGone(t, family)
	if left := s.brood(); len(left) != 0 {
		t.Errorf("still alive: %v", left)
	}
	waitCallback(t, s.c, s.told, "uncertain")
	s.host.SetMode(fakehost.Accept)
	for i, p := range s.busy {
		p.Release(t, "go")
		waitCallback(t, s.c, s.turns[i], "delivered")
		p.typedOnce(h3Task(i))
	}
	if n := len(s.host.Deliveries()); n != 3 {
		t.Errorf("the Host heard %d callbacks", n)
	}
	if _, err := os.Stat(filepath.Join("/proc", fmt.Sprint(s.bridge))); err != nil {
		t.Errorf("the Bridge ended: %v", err)
	}
	if code := s.c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	s.ended()
}

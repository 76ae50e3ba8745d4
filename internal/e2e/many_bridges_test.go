package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/bigstore"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

const (
	manyBridges = 8
	// envBigTurns is how many settled Turns the big Store holds; with it, the time to
	// initialize is held against its budget.
	envBigTurns = "AKK_BIG_TURNS"
	someTurns   = 4000
	// startBudget is the budget on a quiet machine, startPatience the bound on any.
	startBudget   = time.Second
	startPatience = 20 * time.Second
)

// guest is one Host of several that share a Store and a tmux server.
type guest struct {
	*world
	c    *fakehost.Client
	took time.Duration // from the start of the process to the reply to initialize
}

// guests starts a Bridge for each of n Hosts at the same moment, on one Store.
func guests(t *testing.T, n int, store string) []*guest {
	t.Helper()
	server, bin := faketmux.New(t), install(t)
	all := make([]*guest, n)
	for i := range all {
		h := fakehost.New(t, &fakehost.ProfileOptions{ID: fmt.Sprintf("host-%d", i)})
		h.Store = store
		all[i] = &guest{world: &world{t: t, host: h, tmux: server, bin: bin}}
	}
	begin := make(chan struct{})
	var started sync.WaitGroup
	for _, g := range all {
		started.Go(func() {
			<-begin
			at := time.Now()
			g.c = g.start()
			g.took = time.Since(at)
		})
	}
	close(begin)
	started.Wait()
	if slices.ContainsFunc(all, func(g *guest) bool { return g.c == nil }) {
		t.FailNow()
	}
	return all
}

func slowestStart(all []*guest) (max time.Duration) {
	for _, g := range all {
		if g.took > max {
			max = g.took
		}
	}
	return max
}

// L13: eight processes create, switch to WAL and migrate one fresh file at once; then each
// serves its own Host, and none touches what another one owns.
func TestEightBridgesOfDifferentHostsShareAFreshStore(t *testing.T) {
	all := guests(t, manyBridges, filepath.Join(t.TempDir(), "store"))
	t.Logf("the slowest of %d starts at once took %v", len(all), slowestStart(all))
	panes := make([]*pane, len(all))
	for i, g := range all {
		panes[i] = g.agent([]string{standin.Codex, standin.Claude}[i%2])
	}
	turns := make([]string, len(all))
	var sends sync.WaitGroup
	for i, g := range all {
		sends.Go(func() {
			turns[i] = send(t, g.c, readyPane(t, g.c, panes[i]), fmt.Sprintf("GATE:go ;; SAY:for host %d", i)).TurnID
		})
	}
	sends.Wait()
	if slices.Contains(turns, "") {
		t.FailNow()
	}
	for i, g := range all {
		other := turns[(i+1)%len(turns)]
		if st := statusOf(t, g.c, other); st.Turn.TurnID != other { // reading is for all
			t.Errorf("%s", dump(st))
		}
		res, err := g.c.Call(t.Context(), "agent_knock_knock_close", map[string]any{"turn_id": other})
		if err != nil || !res.IsError {
			t.Errorf("host %d closed a Turn of another living Bridge: %v %s", i, err, res.JSON)
		}
		panes[i].Release(t, "go")
	}
	for i, g := range all {
		waitCallback(t, g.c, turns[i], "delivered")
		if d := g.host.Deliveries(); len(d) != 1 || d[0].Body != fmt.Sprintf("for host %d", i) {
			t.Errorf("host %d heard %+v", i, d)
		}
		panes[i].typedOnce(fmt.Sprintf("GATE:go ;; SAY:for host %d", i))
	}
	for _, g := range all {
		if code := g.c.Close(settle); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// A big Store does not delay the start. `make bigstore` does it with 200,000 Turns.
func TestEightBridgesStartAtOnceOnABigStore(t *testing.T) {
	n, measured := someTurns, os.Getenv(envBigTurns)
	if measured != "" {
		var err error
		if n, err = strconv.Atoi(measured); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "store")
	begin := time.Now()
	bigstore.Fill(t, dir, n, time.Now().Add(-time.Hour))
	info, err := os.Stat(filepath.Join(dir, "akk.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns, %d MiB, made in %v", n, info.Size()>>20, time.Since(begin).Round(time.Second))
	all := guests(t, manyBridges, dir)
	bound := startPatience
	if measured != "" {
		bound = startBudget
	}
	for i, g := range all {
		t.Logf("start %d took %v", i, g.took)
		if g.took > bound {
			t.Errorf("start %d took %v, more than %v", i, g.took, bound)
		}
	}
	at := time.Now()
	list(t, all[0].c)
	took := time.Since(at)
	t.Logf("list took %v", took)
	if took > bound {
		t.Errorf("list took %v, more than %v", took, bound)
	}
	p := all[0].agent(standin.Codex)
	got := send(t, all[0].c, readyPane(t, all[0].c, p), "SAY:still quick")
	waitCallback(t, all[0].c, got.TurnID, "delivered")
}

// A Bridge that was frozen, and whose sign of life somebody removed, finds its Turn with
// another one. What it still has to say of it is refused.
func TestALateWriteOfAnOldOwnerIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	old := w.start()
	got := working(t, w, old, "told once")
	freeze.Process(t, old.PID())
	locks, err := filepath.Glob(filepath.Join(w.host.Store, "bridges", "*.lock"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	if err := os.Remove(locks[0]); err != nil {
		t.Fatal(err)
	}
	next := w.start()
	waitChild(t, next.PID(), "akk-monitor")
	kill(t, old.PID(), syscall.SIGCONT)
	res, err := old.Call(t.Context(), "agent_knock_knock_close", map[string]any{"turn_id": got.TurnID})
	if err != nil || !res.IsError {
		t.Errorf("the old owner closed it: %v %s", err, res.JSON)
	}
	p.Release(t, "go")
	st := waitCallback(t, next, got.TurnID, "delivered")
	if st.Turn.Status != "idle" {
		t.Errorf("%s", dump(st))
	}
	faketmux.Wait(t, "the old owner to let go", func() bool { return len(children(t, old.PID(), "akk-monitor")) == 0 },
		func() string { return old.Stderr() })
	for _, c := range []*fakehost.Client{old, next} {
		if code := c.Close(settle); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "told once" {
		t.Errorf("the Host heard %+v", d)
	}
	p.typedOnce("GATE:go ;; SAY:told once")
}

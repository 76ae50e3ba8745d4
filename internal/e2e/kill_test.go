package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// The environment of the storm: how many sends, and the seed of a run to play again. The
// schedule is the seed's; the interleaving is the machine's.
const (
	envKillSends = "AKK_KILL_SENDS"
	envKillSeed  = "AKK_KILL_SEED"
)

const (
	shortStorm   = 10
	stormLimit   = 12 * time.Minute // the whole of it
	callLimit    = 30 * time.Second // of one tool call; a tool answers within 10 s
	strikeWithin = 2500 * time.Millisecond
	look         = 50 * time.Millisecond // between two lists of one sender
	// stuckAfter is how long a person watches a Turn that says it needs a decision.
	stuckAfter = 4 * time.Second
)

// order is one send: made by the seed before anything runs.
type order struct {
	text, answer string
	ask          bool // the agent asks for approval, and a person says yes
	fails        bool
}

// sending is what became of an order.
type sending struct {
	order
	pane *pane
	turn string // "" when the Host got no result
	code string // of the refusal, "" when there was none
	lost bool   // the Host got no reply at all
}

// storm is a Host that goes on sending while its Bridge and the workers are killed.
type storm struct {
	t     *testing.T
	w     *world
	ctx   context.Context
	began chan struct{} // a send begins: a good moment to strike

	mu     sync.Mutex
	client *fakehost.Client // nil while the Bridge is down
	up     chan struct{}    // closed when client is set
	sent   []*sending
	panes  []*pane
	closed map[*pane]bool // by a person
	person map[string]int // what a person had to do
	kills  map[string]int
}

// TestHundredSendsUnderRandomKills kills the Bridge, monitors and the callback worker at
// random moments while tasks are sent to several agents. Whatever dies and whenever: no
// text is typed twice, no event is accepted twice, nothing is silent, nobody survives the
// Bridge, and the Store stays whole. (H3, spec cases 32, 38, 53, S01, S12, L16.)
func TestHundredSendsUnderRandomKills(t *testing.T) {
	t.Parallel()
	sends, seed := shortStorm, time.Now().UnixNano()
	for name, set := range map[string]func(int64){envKillSends: func(n int64) { sends = int(n) }, envKillSeed: func(n int64) { seed = n }} {
		if v := os.Getenv(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	t.Logf("play it again: %s=%d %s=%d", envKillSeed, seed, envKillSends, sends)
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	ctx, cancel := context.WithTimeout(t.Context(), stormLimit)
	defer cancel()
	s := &storm{t: t, w: newWorld(t, &fakehost.ProfileOptions{Timeout: 3 * time.Second}), ctx: ctx, began: make(chan struct{}, 1),
		up: make(chan struct{}), closed: map[*pane]bool{}, person: map[string]int{}, kills: map[string]int{}}
	kinds := []string{standin.Codex, standin.Claude, standin.Codex, standin.Claude}
	if sends <= shortStorm {
		kinds = kinds[:3]
	}
	orders := make(chan order, sends)
	for i := range sends {
		orders <- newOrder(rng, seed, i)
	}
	close(orders)
	s.start()
	var senders sync.WaitGroup
	for _, kind := range kinds {
		p := s.agent(kind)
		senders.Go(func() { s.work(p, orders) })
	}
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	s.strikeUntil(done, rng)
	s.settle()
	s.check()
}

// newOrder is the i-th task of a seed: mostly a short answer, sometimes a slow one, a
// failing one, or one that asks.
func newOrder(rng *rand.Rand, seed int64, i int) order {
	o := order{answer: fmt.Sprintf("answer %d of %x", i, seed)}
	do := "SAY:" + o.answer
	switch n := rng.IntN(20); {
	case n < 3:
		o.fails, do = true, "FAIL:500"
	case n < 6:
		o.ask, do = true, fmt.Sprintf("RUN:touch f%d ;; SAY:%s", i, o.answer)
	case n < 13:
		do = fmt.Sprintf("SLEEP:%.2f ;; SAY:%s", rng.Float64()*1.5, o.answer)
	}
	o.text = fmt.Sprintf("task %d of %x\n%s", i, seed, do)
	return o
}

func (s *storm) agent(kind string) *pane {
	p := s.w.agent(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panes = append(s.panes, p)
	return p
}

// start starts the next Bridge.
func (s *storm) start() {
	c := s.w.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
	close(s.up)
}

// down says that there is no Bridge until start.
func (s *storm) down() *fakehost.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client
	s.client, s.up = nil, make(chan struct{})
	return c
}

// bridge waits for the Bridge that runs now; nil when the storm is over.
func (s *storm) bridge() *fakehost.Client {
	for s.ctx.Err() == nil {
		s.mu.Lock()
		c, up := s.client, s.up
		s.mu.Unlock()
		if c != nil {
			return c
		}
		select {
		case <-up:
		case <-s.ctx.Done():
		}
	}
	return nil
}

// call is one tool call of the Host; the Bridge may die under it.
func (s *storm) call(tool string, args map[string]any) (fakehost.Result, error) {
	c := s.bridge()
	if c == nil {
		return fakehost.Result{}, context.Cause(s.ctx)
	}
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	defer cancel()
	return c.Call(ctx, "agent_knock_knock_"+tool, args)
}

// work sends orders to one terminal, one after the other.
func (s *storm) work(p *pane, orders <-chan order) {
	for o := range orders {
		terminal := ""
		for {
			if terminal, p = s.ready(p); p == nil {
				return
			}
			if s.send(p, terminal, o) {
				break // the Host never sends a task again that may have been heard
			}
		}
	}
	s.ready(p) // the last one ends too
}

// send delegates once and reports whether the order was used up.
func (s *storm) send(p *pane, terminal string, o order) bool {
	select {
	case s.began <- struct{}{}:
	default:
	}
	made := &sending{order: o, pane: p}
	res, err := s.call("send", map[string]any{"terminal_id": terminal, "request": o.text})
	var got sent
	switch {
	case err != nil:
		made.lost = true
	case res.IsError:
		made.code = res.Code()
	case json.Unmarshal(res.JSON, &got) != nil || got.TurnID == "":
		s.t.Errorf("a send was answered with %s", res.JSON)
	default:
		made.turn = got.TurnID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, made)
	return made.code == ""
}

// placed is a row with the process that it speaks of.
type placed struct {
	row
	PID int `json:"pid"`
}

// ready waits until the terminal of p can take a task, and does for the agent what a
// person would: answer its question, press Enter on a forgotten draft, replace it.
func (s *storm) ready(p *pane) (terminal string, now *pane) {
	var stuck time.Time
	var last string
	for {
		select {
		case <-s.ctx.Done():
			s.t.Errorf("%s in %s never became ready; last seen: %s", p.Agent, p.ID, last)
			return "", nil
		case <-time.After(look):
		}
		res, err := s.call("list", map[string]any{})
		var l struct{ Terminals []placed }
		if err != nil || res.IsError || json.Unmarshal(res.JSON, &l) != nil {
			continue
		}
		for _, r := range l.Terminals {
			if r.PID != p.PID {
				continue
			}
			last = dump(r)
			switch {
			case r.Actions["send"].Tool != "":
				return r.TerminalID, p
			case r.State == "awaiting_approval":
				s.approve(p)
			case r.Current == nil || r.Current.Status != "stalled":
				stuck = time.Time{}
			case stuck.IsZero():
				stuck = time.Now()
			case time.Since(stuck) > stuckAfter:
				stuck = time.Time{}
				p = s.decide(p)
			}
		}
	}
}

// approve presses the key for "yes, this once", as often as the agent asked.
func (s *storm) approve(p *pane) {
	key := map[string]string{standin.Codex: "y", standin.Claude: "1"}[p.Agent]
	if _, err := s.w.tmux.Try("send-keys", "-t", p.ID, key); err != nil {
		s.t.Errorf("a person could not press %s in %s: %v", key, p.ID, err)
	}
	s.did("approved")
}

// decide is a person at a terminal whose Turn needs a decision: nobody but they may type.
func (s *storm) decide(p *pane) *pane {
	in := p.Input(s.t)
	enters := presses(in.Raw)
	switch {
	case len(enters) > 0 && enters[len(enters)-1] == 0:
		s.did("sent a draft")
		if _, err := s.w.tmux.Try("send-keys", "-t", p.ID, "Enter"); err != nil {
			s.t.Errorf("a person could not press Enter in %s: %v", p.ID, err)
		}
		return p
	default:
		s.did("replaced an agent")
		if _, err := s.w.tmux.Try("kill-pane", "-t", p.ID); err != nil {
			s.t.Errorf("a person could not close %s: %v", p.ID, err)
		}
		s.mu.Lock()
		s.closed[p] = true
		s.mu.Unlock()
		return s.agent(p.Agent)
	}
}

func (s *storm) did(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person[what]++
}

// presses counts the Enters after each paste of a recording. What came before the first
// paste counts for a paste that never was.
func presses(raw []byte) []int {
	const start, end = "\x1b[200~", "\x1b[201~"
	parts := strings.Split(string(raw), start)
	var out []int
	if n := strings.Count(parts[0], "\r"); n > 0 {
		out = append(out, n+1)
	}
	for _, p := range parts[1:] {
		_, after, _ := strings.Cut(p, end)
		out = append(out, strings.Count(after, "\r"))
	}
	return out
}

// strikeUntil strikes at random moments until done.
func (s *storm) strikeUntil(done <-chan struct{}, rng *rand.Rand) {
	modes := []fakehost.Mode{fakehost.Accept, fakehost.Accept, fakehost.Accept, fakehost.Slow, fakehost.Slow, "retry,accept", "retry,slow", fakehost.Garbage, fakehost.Unsure}
	for {
		// Everything random is drawn before it is waited for: the schedule is the seed's.
		pause, kind, mode := time.Duration(rng.Int64N(int64(strikeWithin))), rng.IntN(12), modes[rng.IntN(len(modes))]
		select {
		case <-s.began:
		case <-time.After(strikeWithin): // no send begins: strike what goes on
		case <-done:
			return
		}
		select {
		case <-time.After(pause):
		case <-done:
			return
		}
		s.w.host.SetMode(mode)
		s.strike(kind)
	}
}

func (s *storm) strike(kind int) {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	select {
	case <-c.Done():
		s.t.Fatalf("the Bridge ended by itself: %s", c.Stderr())
	default:
	}
	switch {
	case kind < 5:
		s.killBridge()
	case kind < 7:
		s.worker(c, "akk-monitor", syscall.SIGKILL)
	case kind < 9:
		s.worker(c, "akk-callback", syscall.SIGKILL)
	case kind < 11:
		s.worker(c, "akk-monitor", syscall.SIGSTOP)
	default:
		s.worker(c, "akk-callback", syscall.SIGSTOP)
	}
}

func (s *storm) worker(c *fakehost.Client, name string, sig syscall.Signal) {
	pids := children(s.t, c.PID(), name)
	if len(pids) == 0 {
		return
	}
	s.kills[name+" "+sig.String()]++
	kill(s.t, pids[0], sig)
}

// killBridge kills the Bridge, proves that nobody of its own is left, and starts the next.
func (s *storm) killBridge() {
	s.kills["Bridge killed"]++
	c := s.down()
	c.Kill()
	s.nobodyLeft()
	s.checkTyping()
	s.checkStore()
	s.start()
}

// nobodyLeft fails unless every process of the product and of its callbacks is gone.
func (s *storm) nobodyLeft() {
	start := time.Now()
	var left []string
	faketmux.Wait(s.t, "the end of everything that the Bridge started", func() bool {
		left = s.ours()
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
	if d := time.Since(start); d > goneIn {
		s.t.Errorf("it took %v until all were gone, the promise is %v", d, goneIn)
	}
}

// ours lists the live processes of this world's binaries and of its callback program.
func (s *storm) ours() []string {
	table, err := procinfo.Snapshot(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, p := range table.All() {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		if err == nil && !p.Zombie() && (filepath.Dir(exe) == filepath.Dir(s.w.bin) || exe == s.w.host.Callback) {
			out = append(out, fmt.Sprintf("%d %v", p.PID, p.Args))
		}
	}
	return out
}

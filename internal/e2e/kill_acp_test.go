package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// The environment of the siege: how many rounds, the seed of a run to play again, and the
// one round to play. A round is the seed's; the interleaving is the machine's.
const (
	envSiegeRounds = "AKK_ACP_ROUNDS"
	envSiegeSeed   = "AKK_ACP_SEED"
	envSiegeOnly   = "AKK_ACP_ONLY"
)

const (
	shortSiege    = 15
	shortSpan     = 18 * time.Second // of the short siege: a loaded machine plays fewer rounds
	siegeSessions = 3
	strikeSpan    = 600 * time.Millisecond // within which a strike falls
	siegeCall     = 90 * time.Second       // of one tool call
	// envAgent marks an agent and all that it starts, beside the mark of the test.
	envAgent = "AKK_TEST_AGENT"
)

// The victims of a strike.
const (
	victimProxy      = "proxy"
	victimStarter    = "proxy that starts a server"
	victimServer     = "server"
	victimSupervisor = "supervisor"
	victimAgent      = "agent"
	victimRunner     = "runner of an agent"
)

// siegeTask is one prompt of a round and the answer that it has when nothing is killed.
type siegeTask struct {
	session, prompt, want, key string
	flags                      []string
	through                    int // which proxy

	// what became of it
	pid      int
	agentID  string // the agent's own id of the conversation
	created  bool
	lost     bool   // the Host got no reply
	code     string // of a refusal
	reported obj    // the status that the Host got, nil for none
}

// siegeRound is one strike.
type siegeRound struct {
	number int
	victim string
	early  bool // while the sessions are created, otherwise while they work
	pause  time.Duration
	which  int
	again  bool // a conversation that broke off is taken up
	tasks  []*siegeTask
}

// newSiegeRound draws a round. Everything random is in it.
func newSiegeRound(seed int64, number int) *siegeRound {
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(number)))
	victims := []string{victimProxy, victimProxy, victimServer, victimServer, victimServer, victimSupervisor, victimSupervisor, victimAgent, victimAgent, victimAgent, victimRunner, victimRunner, victimStarter}
	r := &siegeRound{number: number, victim: victims[rng.IntN(len(victims))], early: rng.IntN(4) == 0, which: rng.IntN(siegeSessions), again: rng.IntN(2) == 0}
	span := strikeSpan
	if r.early || r.victim == victimStarter {
		span /= 3
	}
	r.pause = time.Duration(rng.Int64N(int64(span)))
	for i := range siegeSessions {
		r.tasks = append(r.tasks, r.task(rng, seed, i))
	}
	return r
}

// ownVictim reports whether the i-th agent is killed, or who holds it.
func (r *siegeRound) ownVictim(i int) bool {
	return (r.victim == victimAgent || r.victim == victimRunner) && i == r.which
}

func (r *siegeRound) task(rng *rand.Rand, seed int64, i int) *siegeTask {
	nonce := fmt.Sprintf("answer-%d-%d-%x", r.number, i, seed)
	t := &siegeTask{session: fmt.Sprintf("s-%d-%d", r.number, i), want: nonce, through: i % 2}
	if rng.IntN(3) > 0 {
		t.key = "key-" + nonce
	}
	ends := r.victim == victimServer || r.victim == victimSupervisor || r.ownVictim(i)
	switch n := rng.IntN(16); {
	case n < 3:
		t.prompt = "SAY " + nonce
	case n < 7:
		t.prompt = fmt.Sprintf("HOLD %.2f; SAY %s", rng.Float64()*0.6, nonce)
		t.want = "held" + nonce
	case n < 9:
		t.prompt = "SPAWN 2; HOLD 0.30; SAY " + nonce
		t.want = "" // it begins with the pids
	case n < 11:
		t.prompt, t.want = "PERM; SAY "+nonce, "[allowed:allow_once]"+nonce
	case n < 13:
		t.prompt = "STREAM 80 200; SAY " + nonce
	case n < 14:
		t.prompt = "BIG 1; SAY " + nonce
	case ends:
		t.prompt = "SPAWN; IGNORE-CANCEL; SAY " + nonce // it never answers
		t.want = ""
	default:
		t.prompt = "TOOLS; SAY " + nonce
		t.want = "tools done" + nonce
	}
	if ends && rng.IntN(3) == 0 {
		t.flags = []string{"--ignore-term", "--stay-open"}
	}
	return t
}

// siege is a user's headless agents under fire.
type siege struct {
	t       *testing.T
	h       *headless
	strict  bool // the promise of 2 s fails the test
	proxies [2]*proxy
	reports map[string]obj    // message to the status that a Host got
	session map[string]string // message to its session
	order   []string          // of reports
	tally   map[string]int
	slowest map[string]time.Duration
}

// TestManyKillsOfProxyServerSupervisorAndAgent kills one of them at a random moment while
// agents are started and work, again and again. Whatever dies and whenever: a result that was
// reported stays what it was, no prompt reaches an agent twice, what broke off says so with a
// code and is never completed, and nobody outlives what must end with the killed one:
//
//   - a proxy: nothing but itself; messages run on and another proxy gets their results;
//   - the server: its agents with all that they started, its helpers, and its supervisor;
//   - the supervisor: the server, and all that ends with it;
//   - an agent, or the small process that holds it: all that it started, and its session's work;
//     the other sessions go on.
//
// H3, for headless agents.
func TestManyKillsOfProxyServerSupervisorAndAgent(t *testing.T) {
	t.Parallel()
	rounds, seed, only := int64(shortSiege), time.Now().UnixNano()%1e9, int64(-1)
	for name, at := range map[string]*int64{envSiegeRounds: &rounds, envSiegeSeed: &seed, envSiegeOnly: &only} {
		if v := os.Getenv(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*at = n
		}
	}
	t.Logf("play it again: %s=%d %s=%d; one round of it: %s=N", envSiegeSeed, seed, envSiegeRounds, rounds, envSiegeOnly)
	s := &siege{t: t, h: newHeadless(t), strict: os.Getenv(envSiegeRounds) != "", reports: map[string]obj{}, session: map[string]string{}, tally: map[string]int{}, slowest: map[string]time.Duration{}}
	for i := range s.proxies {
		s.newProxy(i)
	}
	began, played := time.Now(), 0
	for n := range int(rounds) {
		if only >= 0 && int64(n) != only {
			continue
		}
		if !s.strict && time.Since(began) > shortSpan {
			break
		}
		r := newSiegeRound(seed, n)
		played++
		s.play(r)
		if t.Failed() {
			t.Fatalf("round %d: %s killed after %v, early %v", n, r.victim, r.pause, r.early)
		}
	}
	s.checkReports(len(s.order))
	t.Logf("%d rounds in %v, %d results reported and kept; %v; slowest end: %v", played, time.Since(began).Round(time.Second), len(s.order), s.tally, s.slowest)
}

// newProxy replaces a proxy. One speaks an older MCP, the other the newest: a person is asked
// in both ways.
func (s *siege) newProxy(i int) {
	s.t.Helper()
	s.proxies[i] = s.h.start([2]string{"2025-11-25", ""}[i], func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return choose(req, "Allow once")
	})
}

func (s *siege) play(r *siegeRound) {
	s.t.Helper()
	s.tally["killed "+r.victim]++
	if r.victim == victimStarter {
		s.start(r)
		return
	}
	server := s.proxies[0].pid() // one runs
	begin := func(do func(*siegeTask)) *sync.WaitGroup {
		var all sync.WaitGroup
		for _, t := range r.tasks {
			all.Go(func() { do(t) })
		}
		return &all
	}
	work := begin(s.create)
	if r.early {
		<-time.After(r.pause)
	} else {
		work.Wait()
		for _, t := range r.tasks {
			if !t.created {
				s.t.Fatalf("a session was not created: %s", t.code)
			}
		}
		work = begin(s.send)
		<-time.After(r.pause)
	}
	s.strike(r, server, work)
	work.Wait()
	if r.victim == victimProxy {
		s.newProxy(r.which % 2)
	}
	s.recover(r)
	s.finish(r)
}

// create starts the agent of a task.
func (s *siege) create(t *siegeTask) {
	args := s.h.agentArgs(append([]string{"--journal", s.journal(t), "--state", s.agentState()}, t.flags...)...)
	args["session_id"] = t.session
	args["env"].(map[string]string)[envAgent] = t.session
	out, code, err := s.call(t.through, "create_session", args)
	t.lost, t.code, t.created = err != nil, code, err == nil && code == ""
	if t.created {
		t.pid = int(out["launch_info"].(obj)["transport_pid"].(float64))
		t.agentID, _ = out["harness_session_id"].(string)
	}
}

// send delegates the task and notes what the Host was told.
func (s *siege) send(t *siegeTask) {
	out, code, err := s.call(t.through, "send_message", t.message())
	t.lost, t.code = err != nil, code
	if err == nil && out["terminal"] == true {
		t.reported = out
	}
}

func (t *siegeTask) message() obj {
	args := obj{"session_id": t.session, "text": t.prompt}
	if t.key != "" {
		args["idempotency_key"] = t.key
	}
	return args
}

func (s *siege) call(through int, tool string, args obj) (obj, string, error) {
	ctx, stop := context.WithTimeout(s.t.Context(), siegeCall)
	defer stop()
	return s.proxies[through].try(ctx, tool, args)
}

func (s *siege) journal(t *siegeTask) string {
	return filepath.Join(s.h.dir, "journal-"+t.session)
}

func (s *siege) agentState() string {
	dir := filepath.Join(s.h.dir, "agent-state")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Error(err)
	}
	return dir
}

// strike kills the victim and proves that what must end with it has ended.
func (s *siege) strike(r *siegeRound, server int, work *sync.WaitGroup) {
	s.t.Helper()
	switch r.victim {
	case victimProxy:
		s.proxies[r.which%2].Kill()
		if got := s.proxies[(r.which+1)%2].pid(); got != server {
			s.t.Errorf("the server was %d and is %d after the end of a proxy", server, got)
		}
	case victimServer, victimSupervisor:
		pid, record := server, s.h.registry()[s.h.url]
		if record.ServerPID != server {
			s.t.Errorf("the registry says %+v, the server is %d", record, server)
		}
		if r.victim == victimSupervisor {
			pid = record.SupervisorPID
		}
		kill(s.t, pid, syscall.SIGKILL)
		s.within(r, func() (left []string) {
			for _, p := range s.everybody() {
				if p.PID == server || p.PID == record.SupervisorPID || p.stray {
					left = append(left, p.String())
				}
			}
			return left
		})
	case victimAgent, victimRunner:
		name := r.tasks[r.which].session
		pid := s.agentPID(r.tasks[r.which], work)
		if pid == 0 {
			s.tally["no agent to kill"]++
			return
		}
		if r.victim == victimRunner {
			if pid = parentOf(pid); pid <= 1 || pid == server { // it ended meanwhile
				s.tally["no runner to kill"]++
				return
			}
		}
		kill(s.t, pid, syscall.SIGKILL)
		s.within(r, func() (left []string) {
			for _, p := range s.everybody() {
				if p.agent == name {
					left = append(left, p.String())
				}
			}
			return left
		})
	}
}

// agentPID is the process of a task's agent, also while it starts; 0 when there is none.
func (s *siege) agentPID(t *siegeTask, work *sync.WaitGroup) int {
	if t.pid != 0 {
		return t.pid
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	for {
		for _, p := range s.everybody() {
			if p.agent == t.session {
				return p.PID
			}
		}
		select {
		case <-done:
			return 0
		case <-time.After(time.Millisecond):
		}
	}
}

// start kills one of two proxies that find no server and start one.
func (s *siege) start(r *siegeRound) {
	s.t.Helper()
	s.proxies[0].pid()
	kill(s.t, s.h.registry()[s.h.url].SupervisorPID, syscall.SIGTERM)
	fakehost.WaitNoSurvivors(s.t, s.h.caseID, settle, "harness mcp")
	var both sync.WaitGroup
	for i := range s.proxies {
		both.Go(func() { _, _, _ = s.call(i, "ping", obj{}) })
	}
	<-time.After(r.pause)
	s.proxies[r.which%2].Kill()
	both.Wait()
	if _, code, err := s.call((r.which+1)%2, "ping", obj{}); err != nil || code != "" {
		s.t.Errorf("the other proxy has no server: %v %s", err, code)
	}
	s.newProxy(r.which % 2)
	s.finish(r)
}

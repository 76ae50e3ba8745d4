package threads_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

func TestMain(m *testing.M) {
	faketmux.MaybeRecorder()
	os.Exit(m.Run())
}

// pen is an agent whose program is a recorder in a real pane: what it reads is its
// composer, and an Enter makes it follow the command there.
type pen struct {
	agent.Adapter // the methods that no test here needs
	rec           *faketmux.Recorder

	mu       sync.Mutex
	current  string // the thread that it shows
	identity agent.ThreadState
	support  error
	threads  []agent.Thread
	screen   func(agent.Screen) agent.Screen // changes what a look shows
	onEnter  func(p *pen, command string)    // called with the lock held; nil: it follows
	done     int                             // bytes of the recording that it has taken
	fresh    int                             // new threads so far
	lines    []string
}

func (*pen) Kind() string                       { return "codex" }
func (p *pen) Match(proc procinfo.Process) bool { return proc.PID == p.rec.PID }
func (*pen) DraftMatches(s agent.Screen, text string) agent.Match {
	if strings.TrimSpace(s.Draft) == strings.TrimSpace(text) {
		return agent.MatchYes
	}
	return agent.MatchNo
}

func (p *pen) Identify(context.Context, agent.Ref) (agent.Native, error) {
	p.take()
	p.mu.Lock()
	defer p.mu.Unlock()
	return agent.Native{Version: "1.0.0", Channel: turn.ChannelKeyboard, Thread: p.identity, ThreadID: p.current, Activity: agent.ActivityIdle}, nil
}

// take follows what was entered since the last look.
func (p *pen) take() (draft string) {
	raw := p.rec.Bytes()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := faketmux.ParseRecording(raw[min(p.done, len(raw)):])
	if len(r.Pastes) > 0 {
		draft = string(r.Pastes[len(r.Pastes)-1])
	} else if len(r.Outside) > 0 {
		draft = string(r.Outside)
	}
	if r.Submits() == 0 {
		return draft
	}
	p.done = len(raw)
	if p.onEnter != nil {
		p.onEnter(p, draft)
		return ""
	}
	p.follow(draft)
	return ""
}

func (p *pen) follow(command string) {
	if id, ok := strings.CutPrefix(command, "/resume "); ok {
		p.current = id
		return
	}
	p.fresh++
	p.current = fmt.Sprintf("fresh-%d", p.fresh)
}

func (p *pen) Screen(tmux.Capture) agent.Screen {
	s := agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
	if draft := p.take(); draft != "" {
		s.Composer, s.Draft = agent.ComposerDraft, draft
	}
	p.mu.Lock()
	f := p.screen
	p.mu.Unlock()
	if f != nil {
		s = f(s)
	}
	return s
}

func (p *pen) ThreadSupport(agent.Native) error { return p.support }
func (p *pen) ThreadCommand(id string) string {
	if id == "" {
		return "/clear"
	}
	return "/resume " + id
}

func (p *pen) ThreadRefusals([]string, string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

func (p *pen) Threads(_ context.Context, _ agent.Ref, _ agent.Native, limit int) (agent.ThreadList, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return agent.ThreadList{Threads: append([]agent.Thread{}, p.threads[:min(limit, len(p.threads))]...)}, nil
}

func (p *pen) Thread(_ context.Context, _ agent.Ref, _ agent.Native, id string) (agent.Thread, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.threads {
		if t.ID == id {
			return t, nil
		}
	}
	return agent.Thread{}, fault.New(fault.NotFound, "test", "no thread %s", id)
}

// set changes the agent between two steps.
func (p *pen) set(f func(*pen)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// world is the use cases on a real Store and a real pane.
type world struct {
	*threads.Service
	t      *testing.T
	db     *store.DB
	pen    *pen
	socket string
	locks  string
	term   discover.Terminal
	calls  int
}

const cwd = "/"

func newWorld(t *testing.T) *world {
	t.Helper()
	server := faketmux.New(t)
	w := &world{t: t, socket: server.Socket(), locks: filepath.Join(t.TempDir(), "locks"),
		pen: &pen{rec: server.Recorder(faketmux.RecorderSpec{Bracketed: true}), current: "old", identity: agent.ThreadResolved}}
	var err error
	if w.db, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "store"), store.Options{Relaxed: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	w.Service = w.bridge("bridge-a")
	scan, err := discover.New([]string{w.socket}, w.pen).Scan(t.Context(), discover.Options{Screens: true})
	if err != nil || len(scan.Terminals) != 1 {
		t.Fatalf("%+v %v", scan, err)
	}
	w.term = scan.Terminals[0]
	for _, id := range []string{"old", "one", "two"} {
		w.pen.threads = append(w.pen.threads, agent.Thread{ID: id, Workspace: cwd, Preview: id, UpdatedAt: time.Unix(1_700_000_000, 0), Owner: agent.OwnedByNobody, Token: "token-" + id})
	}
	return w
}

// bridge is another Bridge of the same Profile. It is dead for all others, as none of them
// holds a presence lock.
func (w *world) bridge(id ids.BridgeID) *threads.Service {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return turnsql.PutBridge(tx, turnsql.Bridge{ID: id, ProfileID: "p"}) })
	scanner := discover.New([]string{w.socket}, w.pen)
	return threads.New(threads.Config{DB: w.db, Bridge: id, Scanner: scanner, CheckProfile: func() error { return nil }, Clock: clock.System{},
		Desk: keyboard.Desk{Finder: scanner, LockDir: w.locks, Clock: clock.System{}}})
}

func (w *world) update(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) in(thread string) threads.ChangeInput {
	w.calls++
	return threads.ChangeInput{CallID: fmt.Sprintf("call-%d", w.calls), TerminalID: w.term.ID, ThreadID: thread}
}

// session is a Session of thread, bound to the world's terminal or to another one.
func (w *world) session(thread string, here bool) turn.Session {
	w.t.Helper()
	b := turn.Binding{TerminalID: w.term.ID, Endpoint: w.term.Ref.Endpoint, Process: w.term.Ref.Process}
	if !here {
		b.Endpoint.PaneID, b.Process = "%99", turn.Incarnation{PID: 1, Birth: "never"}
	}
	var s turn.Session
	w.update(func(tx *store.Tx) error {
		s = turn.NewSession("codex", thread, cwd, b, tx.Now)
		return turnsql.PutSession(tx, s)
	})
	return s
}

// turnOf gives the Session an open Turn on the terminal that it is bound to.
func (w *world) turnOf(s turn.Session) turn.Turn {
	w.t.Helper()
	var t turn.Turn
	w.update(func(tx *store.Tx) error {
		id := ids.NewTurn(tx.Now)
		p := turn.Reserve(turn.Turn{ID: id, SessionID: s.ID, CallKey: string(id), Endpoint: s.Binding.Endpoint, Process: s.Binding.Process, Hard: time.Hour}, tx.Now)
		t = p.Turn
		_, err := turnsql.Insert(tx, p, "bridge-a")
		return err
	})
	return t
}

func (w *world) getSession(id ids.SessionID) (s turn.Session) {
	w.t.Helper()
	w.update(func(tx *store.Tx) (err error) { s, err = turnsql.GetSession(tx, id); return err })
	return s
}

// transitions are those of the terminal that are open.
func (w *world) open() (rows []nativesql.Row) {
	w.t.Helper()
	w.update(func(tx *store.Tx) (err error) { rows, err = nativesql.Open(tx); return err })
	return rows
}

func (w *world) get(id ids.TransitionID) (row nativesql.Row) {
	w.t.Helper()
	w.update(func(tx *store.Tx) (err error) { row, err = nativesql.Get(tx, id); return err })
	return row
}

// breakStore makes every further event of the kinds fail, as a killed process would leave
// it, until the returned function is called.
func (w *world) breakStore(kinds ...native.EventKind) (mend func()) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER broken BEFORE INSERT ON native_transition_event WHEN instr('" + fmt.Sprint(kinds) + "', NEW.kind) BEGIN SELECT RAISE(ABORT, 'broken'); END")
		return err
	})
	return func() {
		w.t.Helper()
		w.update(func(tx *store.Tx) error { _, err := tx.Exec("DROP TRIGGER broken"); return err })
	}
}

// typed fails unless the pane got exactly these pastes and as many Enters.
func (w *world) typed(enters int, pastes ...string) {
	w.t.Helper()
	rec := w.pen.rec.Finish()
	ok := len(rec.Pastes) == len(pastes) && rec.Submits() == enters && len(rec.Outside) == enters
	for i := range pastes {
		ok = ok && string(rec.Pastes[i]) == pastes[i]
	}
	if !ok {
		w.t.Errorf("the pane got %q, want pastes %q and %d Enters", rec.Raw, pastes, enters)
	}
}

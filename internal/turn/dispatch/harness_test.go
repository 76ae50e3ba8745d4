package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

func TestMain(m *testing.M) {
	faketmux.MaybeRecorder()
	os.Exit(m.Run())
}

// adapter is an agent whose program is a recorder in a real pane: what it reads is its
// composer. Hooks run at the moments between which a send is racing the world.
type adapter struct {
	agent.Adapter // the methods that no test here needs
	rec           *faketmux.Recorder
	onScreen      func(n int, s agent.Screen) agent.Screen // n counts the looks, from 1
	onNative      func(agent.Native) agent.Native          // what its records say
	onDraft       func()                                   // between paste and Enter
	virgin        bool                                     // its thread provably does not exist yet
	read          int                                      // bytes of the recording that it has taken

	mu    sync.Mutex
	looks int
}

func (*adapter) Kind() string                        { return "codex" }
func (a *adapter) Match(p procinfo.Process) bool     { return p.PID == a.rec.PID }
func (*adapter) Literal(text string) (string, error) { return text, nil }

func (a *adapter) Identify(context.Context, agent.Ref) (agent.Native, error) {
	n := agent.Native{Channel: turn.ChannelKeyboard, Thread: agent.ThreadResolved, ThreadID: "thread-1", Activity: agent.ActivityIdle}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.virgin {
		n.Thread, n.ThreadID = agent.ThreadVerifiedAbsent, ""
	}
	if a.onNative != nil {
		n = a.onNative(n)
	}
	return n, nil
}

// becomes says whether the agent's thread is one that does not exist yet.
func (a *adapter) becomes(virgin bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.virgin = virgin
}

// take empties the composer: what was read so far is a task.
func (a *adapter) take() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = len(a.rec.Bytes())
}

func (a *adapter) taken() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read
}

func (a *adapter) Screen(tmux.Capture) agent.Screen {
	a.mu.Lock()
	a.looks++
	n, taken := a.looks, a.read
	a.mu.Unlock()
	s := agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
	if len(a.rec.Bytes()) > taken {
		s.Composer = agent.ComposerDraft
	}
	if a.onScreen != nil {
		s = a.onScreen(n, s)
	}
	return s
}

func (a *adapter) DraftMatches(agent.Screen, string) agent.Match {
	if a.onDraft != nil {
		a.onDraft()
	}
	return agent.MatchYes
}

func (*adapter) Anchor(_ context.Context, _ agent.Ref, _ agent.Native, text, client string) (turn.Anchor, error) {
	return turn.Anchor{Agent: "codex", Channel: turn.ChannelKeyboard, RequestHash: ids.TextHash(text), ClientID: client}, nil
}

// monitors notes what it was asked for.
type monitors struct {
	mu        sync.Mutex
	watched   map[ids.TurnID]int
	onWatch   func(dispatch.Watch)
	onEntered func()
	answered  []string // fingerprints
}

func (m *monitors) Watch(_ context.Context, w dispatch.Watch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[w.Turn.ID]++
	if m.onWatch != nil {
		m.onWatch(w)
	}
	return nil
}

func (m *monitors) Entered(context.Context, ids.TurnID, time.Time) error {
	if m.onEntered != nil {
		m.onEntered()
	}
	return nil
}

func (m *monitors) Answered(_ context.Context, _ ids.TurnID, fingerprint string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered = append(m.answered, fingerprint)
	return nil
}

func (*monitors) Forget(ids.TurnID) {}

// rig is a Service on a real Store and a real pane.
type rig struct {
	*dispatch.Service
	t        *testing.T
	db       *store.DB
	agent    *adapter
	monitors *monitors
	terminal ids.TerminalID
}

func newRig(t *testing.T) *rig {
	t.Helper()
	server := faketmux.New(t)
	r := &rig{t: t, agent: &adapter{rec: server.Recorder(faketmux.RecorderSpec{Bracketed: true})}}
	var err error
	if r.db, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "store"), store.Options{Relaxed: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	r.Service, r.monitors = r.bridge("bridge-a", "session-a", server.Socket())
	scan, err := r.Scanner.Scan(t.Context(), discover.Options{Screens: true})
	if err != nil || len(scan.Terminals) != 1 {
		t.Fatalf("%+v %v", scan, err)
	}
	r.terminal = scan.Terminals[0].ID
	r.agent.looks = 0
	return r
}

// bridge is another Bridge of the same Profile on the same Store. It is dead for all
// others, as none of them holds a presence lock.
func (r *rig) bridge(id ids.BridgeID, session, socket string) (*dispatch.Service, *monitors) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error { return turnsql.PutBridge(tx, turnsql.Bridge{ID: id, ProfileID: "p"}) })
	lock := filepath.Join(r.t.TempDir(), "locks")
	m := &monitors{watched: map[ids.TurnID]int{}}
	return dispatch.New(dispatch.Config{DB: r.db, Bridge: id, Scanner: discover.New([]string{socket}, r.agent), Monitors: m,
		Route:        outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: session},
		CheckProfile: func() error { return nil }, Enqueued: func() {}, LockDir: lock, Clock: clock.System{}}), m
}

func (r *rig) update(f func(*store.Tx) error) {
	r.t.Helper()
	if err := r.db.Update(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// breakStore makes every further write of a Turn fail, as a full disk does, until the
// returned function is called.
func (r *rig) breakStore() (mend func()) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER full_disk BEFORE INSERT ON turn_event BEGIN SELECT RAISE(ABORT, 'full'); END")
		return err
	})
	return func() {
		r.t.Helper()
		r.update(func(tx *store.Tx) error { _, err := tx.Exec("DROP TRIGGER full_disk"); return err })
	}
}

func (r *rig) send(text string) (dispatch.SendResult, error) {
	return r.Send(r.t.Context(), dispatch.SendInput{CallID: "call:" + text, Request: text, TerminalID: r.terminal})
}

// rows are the Turns of the Store.
func (r *rig) rows() []turnsql.Row {
	r.t.Helper()
	var rows []turnsql.Row
	if err := r.db.View(r.t.Context(), func(tx *store.Tx) (err error) { rows, err = turnsql.List(tx, "", 10); return err }); err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// only is the one Turn of the Store.
func (r *rig) only() turnsql.Row {
	r.t.Helper()
	rows := r.rows()
	if len(rows) != 1 {
		r.t.Fatalf("%d Turns", len(rows))
	}
	return rows[0]
}

// typed fails unless the pane got exactly one paste of text and the number of Enters.
func (r *rig) typed(text string, enters int) {
	r.t.Helper()
	rec := r.agent.rec.Finish()
	switch {
	case text == "" && len(rec.Raw) != 0:
		r.t.Errorf("the pane got %q, want nothing", rec.Raw)
	case text != "" && (len(rec.Pastes) != 1 || string(rec.Pastes[0]) != text || rec.Submits() != enters):
		r.t.Errorf("the pane got %q, want one paste of %q and %d Enters", rec.Raw, text, enters)
	}
}

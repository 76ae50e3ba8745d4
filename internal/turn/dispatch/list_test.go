package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/watch"
)

func (r *rig) list(in dispatch.ListInput) dispatch.ListResult {
	r.t.Helper()
	l, err := r.List(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// row is the only terminal of a list.
func (r *rig) row() dispatch.TerminalRow {
	r.t.Helper()
	l := r.list(dispatch.ListInput{})
	if len(l.Terminals) != 1 {
		r.t.Fatalf("%+v", l)
	}
	return l.Terminals[0]
}

func names(actions map[string]dispatch.Action) map[string]bool {
	out := map[string]bool{}
	for n := range actions {
		out[n] = true
	}
	return out
}

// What is offered is what would work now, with complete arguments (spec part 3.5).
func TestARowOffersExactlyWhatIsPossibleNow(t *testing.T) {
	r := newRig(t)
	expect := func(when string, want ...string) dispatch.TerminalRow {
		t.Helper()
		row := r.row()
		got := names(row.Actions)
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: no %q in %v", when, w, got)
			}
			delete(got, w)
		}
		if len(got) != 0 {
			t.Errorf("%s: also %v", when, got)
		}
		return row
	}
	expect("idle", "status", "send")
	tn := r.working()
	if row := expect("working", "status", "cancel", "close"); !row.Actions["cancel"].NeedsIntent || !row.Actions["close"].NeedsPerson || row.Actions["cancel"].Arguments["turn_id"] != tn.ID || row.Management != "managed" {
		t.Errorf("%+v", row)
	}
	r.outOfTime(tn)
	if row := expect("stalled", "status", "cancel", "close", "renew"); !row.Actions["renew"].NeedsIntent || len(row.Actions["renew"].MissingRequired) != 0 {
		t.Errorf("%+v", row)
	}
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen { s.State = agent.ScreenUnknown; return s }
	expect("unknown screen", "status", "close", "renew")
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen { s.State = agent.ScreenDialog; return s }
	expect("dialog", "status", "close", "renew")
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", ThreadID: "thread-1"})
	expect("done, a dialog is open", "status")
	r.agent.onScreen, r.agent.onNative = nil, nil
	r.agent.take()
	if row := expect("done", "status", "send", "respond"); row.RecentTurn == nil || row.RecentTurn.Callback == nil || row.CurrentTurn != nil {
		t.Errorf("%+v", row)
	}
}

func TestAListOfAnUnknownScreenOffersNothingThatTypes(t *testing.T) { // spec case 44
	r := newRig(t)
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen { s.State = agent.ScreenUnknown; return s }
	row := r.row()
	if row.State != discover.Unknown || row.ScreenState != "unknown" || row.DurableState != "idle" || row.NativeIdentityState != "resolved" || len(row.Actions) != 1 {
		t.Errorf("%+v", row)
	}
}

func TestFiltersOfAList(t *testing.T) {
	r := newRig(t)
	tn := r.working()
	dir := r.row().Workspace
	for name, tc := range map[string]struct {
		in   dispatch.ListInput
		want int
	}{
		"agent":             {dispatch.ListInput{Agent: "codex"}, 1},
		"another agent":     {dispatch.ListInput{Agent: "claude"}, 0},
		"state":             {dispatch.ListInput{State: "working"}, 1},
		"another state":     {dispatch.ListInput{State: "idle"}, 0},
		"workspace":         {dispatch.ListInput{Workspace: dir}, 1},
		"root":              {dispatch.ListInput{Workspace: "/"}, 1},
		"a sister":          {dispatch.ListInput{Workspace: dir + "x"}, 0},
		"status":            {dispatch.ListInput{Status: "waiting_for_agent"}, 1},
		"another status":    {dispatch.ListInput{Status: "stalled"}, 0},
		"all that there is": {dispatch.ListInput{All: true}, 1},
	} {
		if l := r.list(tc.in); len(l.Terminals) != tc.want || len(l.History) != 0 {
			t.Errorf("%s: %+v", name, l)
		}
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n"})
	if l := r.list(dispatch.ListInput{All: true}); len(l.History) != 1 || l.History[0].TurnID != tn.ID || l.History[0].Status != turn.Idle {
		t.Errorf("%+v", l.History)
	}
	if l := r.list(dispatch.ListInput{All: true, Status: "failed"}); len(l.History) != 0 || len(l.Terminals) != 0 {
		t.Errorf("%+v", l)
	}
}

// many is an agent in several panes, idle in all.
type many struct {
	agent.Adapter
	pids map[int]bool
}

func (*many) Kind() string                    { return "codex" }
func (m *many) Match(p procinfo.Process) bool { return m.pids[p.PID] }
func (*many) Screen(tmux.Capture) agent.Screen {
	return agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
}
func (*many) Identify(_ context.Context, r agent.Ref) (agent.Native, error) {
	return agent.Native{Channel: turn.ChannelKeyboard, Thread: agent.ThreadResolved, ThreadID: fmt.Sprint(r.Process.PID), Activity: agent.ActivityIdle}, nil
}

func TestAWorkspaceIsADirectoryAndWhatIsBelow(t *testing.T) { // T21
	m := &many{pids: map[int]bool{}}
	server := faketmux.New(t)
	root := t.TempDir()
	for _, name := range []string{"a b_c", "a b_c/below", "a b_cd"} {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		m.pids[server.Run(faketmux.Spec{Dir: dir}).PID] = true
	}
	s := dispatch.New(dispatch.Config{Scanner: discover.New([]string{server.Socket()}, m)})
	for at, want := range map[string]int{"a b_c": 2, "a b_c/": 2, "a b_c/below": 1, "a b_": 0, "": 3, "a b_c/../a b_cd": 1} {
		l, err := s.List(t.Context(), dispatch.ListInput{Workspace: root + "/" + at})
		if err != nil || len(l.Terminals) != want {
			t.Errorf("%q: %d rows, want %d, %v", at, len(l.Terminals), want, err)
		}
	}
}

// Two servers with panes of the same name are as many terminals, and pages show each once,
// in one order, whatever the page size.
func TestPagesShowEachTerminalOnceInOneOrder(t *testing.T) { // spec case 43
	const each = 4
	m := &many{pids: map[int]bool{}}
	var sockets []string
	for range 2 {
		server := faketmux.New(t)
		for range each {
			m.pids[server.Run(faketmux.Spec{}).PID] = true
		}
		sockets = append(sockets, server.Socket())
	}
	s := dispatch.New(dispatch.Config{Scanner: discover.New(sockets, m)})
	var whole []ids.TerminalID
	for _, limit := range []int{50, 1, 3, each * 2} {
		var got []ids.TerminalID
		for cursor := ""; ; {
			l, err := s.List(t.Context(), dispatch.ListInput{Cursor: cursor, Limit: limit})
			if err != nil || len(l.Terminals) > limit || l.Scan.Terminals != 2*each {
				t.Fatalf("%+v %v", l, err)
			}
			for _, row := range l.Terminals {
				got = append(got, row.TerminalID)
			}
			if cursor = l.NextCursor; cursor == "" {
				break
			}
		}
		if whole == nil {
			whole = got
		}
		if len(got) != 2*each || fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("pages of %d: %v, want %v", limit, got, whole)
		}
	}
	if _, err := s.List(t.Context(), dispatch.ListInput{Cursor: "!"}); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// source is another wing.
type source struct {
	asked int
	err   error
	hang  bool
}

func (s *source) Actions(ctx context.Context, seen []dispatch.SeenTerminal) (map[string]map[string]dispatch.Action, error) {
	s.asked++
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out := map[string]map[string]dispatch.Action{}
	for _, t := range seen {
		out[t.Terminal.Key()] = map[string]dispatch.Action{"new_thread": {Tool: "agent_knock_knock_new_thread"}, "send": {Tool: "evil"}}
	}
	return out, s.err
}

func TestOtherWingsAddActionsAndOneThatFailsHidesNothing(t *testing.T) {
	r := newRig(t)
	good, bad := &source{}, &source{err: errors.New("no")}
	r.Rows = []dispatch.RowSource{bad, good}
	l := r.list(dispatch.ListInput{})
	row := l.Terminals[0]
	if good.asked != 1 || bad.asked != 1 || len(l.Limitations) != 1 || row.Actions["new_thread"].Tool == "" || row.Actions["send"].Tool != "agent_knock_knock_send" {
		t.Errorf("%+v", l)
	}
	st, err := r.Status(t.Context(), dispatch.StatusInput{TerminalID: r.terminal})
	if err != nil || st.Actions["new_thread"].Tool == "" || len(st.Limitations) != 1 {
		t.Errorf("%+v %v", st, err)
	}
}

// watches shows one Watch.
type watches struct{ err error }

func (w watches) List(_ context.Context, all bool) ([]watch.View, error) {
	return []watch.View{{ID: "terminal-watch-1"}}, w.err
}
func (w watches) One(_ context.Context, id ids.WatchID) (watch.View, error) {
	return watch.View{ID: id, Actions: map[string]watch.Action{"unwatch": {Tool: "agent_knock_knock_unwatch"}}}, w.err
}

func TestWatchesAreListedAndShown(t *testing.T) {
	r := newRig(t)
	if _, err := r.Status(t.Context(), dispatch.StatusInput{WatchID: "terminal-watch-1"}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	r.Watches = watches{}
	if l := r.list(dispatch.ListInput{}); len(l.Watches) != 1 {
		t.Errorf("%+v", l)
	}
	st, err := r.Status(t.Context(), dispatch.StatusInput{WatchID: "terminal-watch-1"})
	if err != nil || st.Watch == nil || st.Actions["unwatch"].Tool == "" {
		t.Errorf("%+v %v", st, err)
	}
	r.Watches = watches{err: errors.New("no")}
	if l := r.list(dispatch.ListInput{}); len(l.Limitations) != 1 || len(l.Terminals) != 1 {
		t.Errorf("%+v", l)
	}
	if _, err := r.Status(t.Context(), dispatch.StatusInput{TurnID: "t", WatchID: "w"}); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// The Turn of another Bridge that lives is shown and left alone; a dead one's may be closed.
func TestATurnOfAnotherLivingBridgeOffersOnlyItsStatus(t *testing.T) {
	r := newRig(t)
	tn := r.working()
	release, err := r.db.Announce("bridge-a")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := r.bridge("bridge-b", "session-b", r.agent.rec.Server.Socket())
	look := func() map[string]bool {
		t.Helper()
		l, err := other.List(t.Context(), dispatch.ListInput{})
		if err != nil || len(l.Terminals) != 1 {
			t.Fatalf("%+v %v", l, err)
		}
		return names(l.Terminals[0].Actions)
	}
	if got := look(); len(got) != 1 || !got["status"] {
		t.Errorf("%v", got)
	}
	if _, err := other.Cancel(t.Context(), dispatch.CancelInput{CallID: "c", TurnID: tn.ID}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if _, err := other.Close(t.Context(), dispatch.CloseInput{TurnID: tn.ID}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	release()
	if got := look(); !got["close"] || !got["cancel"] {
		t.Errorf("%v", got)
	}
	r.pressed("")
}

func TestStatusShowsBudgetJournalAndWhatIsPossible(t *testing.T) { // spec part 2.9
	r := newRig(t)
	tn := r.working()
	st, err := r.Status(t.Context(), dispatch.StatusInput{TurnID: tn.ID})
	if err != nil || st.Budget == nil || st.Budget.HardLimit != 100 || st.Budget.Level != "ok" || st.Terminal == nil || st.Actions["cancel"].Tool == "" || len(st.Events) == 0 {
		t.Errorf("%+v %v", st, err)
	}
	st, err = r.Status(t.Context(), dispatch.StatusInput{TurnID: tn.ID, NoScreen: true})
	if err != nil || st.Terminal != nil || len(st.Limitations) != 1 || st.Actions["cancel"].Tool != "" || st.Actions["close"].Tool == "" {
		t.Errorf("%+v %v", st, err)
	}
	if _, err := r.Status(t.Context(), dispatch.StatusInput{TerminalID: r.terminal, NoScreen: true}); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	r.agent.rec.Server.Kill()
	st, err = r.Status(t.Context(), dispatch.StatusInput{TurnID: tn.ID})
	if err != nil || len(st.Limitations) != 1 || st.Turn == nil || st.Actions["close"].Tool == "" {
		t.Errorf("a terminal that is gone: %+v %v", st, err)
	}
	if _, err := r.Status(t.Context(), dispatch.StatusInput{TerminalID: r.terminal}); err == nil {
		t.Error("a terminal that is gone has a status")
	}
}

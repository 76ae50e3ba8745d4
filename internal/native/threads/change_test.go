package threads_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func (w *world) newThread() threads.ChangeResult {
	w.t.Helper()
	r, err := w.NewThread(w.t.Context(), w.in(""))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) list() threads.ThreadsResult {
	w.t.Helper()
	l, err := w.ListResumable(w.t.Context(), w.term.ID, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func TestANewThreadIsTypedOnceProvedAndBound(t *testing.T) {
	w := newWorld(t)
	old := w.session("old", true)
	in := w.in("")
	reserved := 0
	in.Reserved = func() { reserved++ }
	r, err := w.NewThread(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	tr := r.Transition
	if tr.Status != native.Committed || tr.ThreadID != "fresh-1" || tr.FromThread != "old" || tr.FromSession != old.ID || tr.Generation != 1 || reserved != 1 {
		t.Errorf("%+v", tr)
	}
	if got := w.getSession(old.ID); got.Status != turn.SessionDetached || got.ThreadID != "old" {
		t.Errorf("the old Session: %+v", got)
	}
	if got := w.getSession(tr.SessionID); got.Status != turn.SessionBound || got.ThreadID != "fresh-1" || got.Terminal != w.term.Key() || got.Binding.ID != tr.BindingID {
		t.Errorf("the new Session: %+v", got)
	}
	again, err := w.NewThread(t.Context(), in) // the same call
	if err != nil || !again.Replayed || again.Transition != tr {
		t.Errorf("replay: %+v %v", again, err)
	}
	in.TerminalID = "terminal:v2:tmux:codex:other:0.0:1"
	if _, err := w.NewThread(t.Context(), in); !fault.Is(err, native.CodeReplay) {
		t.Errorf("the same call with other arguments: %v", err)
	}
	w.typed(1, "/clear")
}

func TestAResumeBindsTheThreadsOwnSessionAgain(t *testing.T) {
	w := newWorld(t)
	one := w.session("one", false) // bound to a terminal whose process ended
	w.list()
	r, err := w.ResumeThread(t.Context(), w.in("one"))
	if err != nil || r.Transition.Status != native.Committed || r.Transition.SessionID != one.ID || r.Transition.Generation != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	l := w.list()
	if l.CurrentSession != one.ID || l.Previous == nil || l.Previous.Thread.ID != "old" {
		t.Errorf("current %s, previous %+v", l.CurrentSession, l.Previous)
	}
	r, err = w.ResumeThread(t.Context(), w.in("one"))
	if err != nil || !r.AlreadyActive || r.SessionID != one.ID || len(w.open()) != 0 {
		t.Errorf("already there: %+v %v", r, err)
	}
	w.typed(1, "/resume one")
}

// What is refused before the first key presses none (spec 2.6, 2.8; cases 42, 59).
func TestARefusedChangeTypesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		thread string
		before func(w *world) // before the listing
		after  func(w *world) // after it
		code   fault.Code
	}{
		"a Turn keeps the terminal":           {"", nil, func(w *world) { w.turnOf(w.session("old", true)) }, turn.CodeBlocked},
		"a Turn, and a resume":                {"one", nil, func(w *world) { w.turnOf(w.session("old", true)) }, turn.CodeBlocked},
		"a person's draft":                    {"", nil, func(w *world) { w.pen.rec.Server.Tmux("send-keys", "-t", w.pen.rec.ID, "-l", "hi") }, turn.CodeTerminal},
		"the agent works":                     {"", nil, func(w *world) { w.shows(agent.Screen{State: agent.ScreenWorking}) }, turn.CodeTerminal},
		"a dialog is open":                    {"", nil, func(w *world) { w.shows(agent.Screen{State: agent.ScreenDialog}) }, turn.CodeTerminal},
		"the thread cannot be proved":         {"", nil, func(w *world) { w.pen.support = fault.New(agent.CodeThreads, "t", "no") }, agent.CodeThreads},
		"not listed":                          {"three", nil, nil, threads.CodeNotListed},
		"changed after it was listed":         {"one", nil, func(w *world) { w.pen.threads[1].Token = "another" }, threads.CodeUnresumable},
		"gone after it was listed":            {"one", nil, func(w *world) { w.pen.threads = w.pen.threads[:1] }, fault.NotFound},
		"opened elsewhere after the list":     {"one", nil, func(w *world) { w.pen.threads[1].Owner = agent.OwnedElsewhere }, threads.CodeUnresumable},
		"open elsewhere":                      {"one", func(w *world) { w.pen.threads[1].Owner = agent.OwnedElsewhere }, nil, threads.CodeUnresumable},
		"a person switched after the list":    {"one", nil, func(w *world) { w.pen.current = "two" }, threads.CodeNotListed},
		"its Session waits for a Turn":        {"one", func(w *world) { w.turnOf(w.session("one", false)) }, nil, threads.CodeUnresumable},
		"another terminal":                    {"one", nil, func(w *world) { w.term.ID += "0" }, fault.NotFound},
		"another change keeps it, by a crash": {"", nil, func(w *world) { w.interrupted(native.EvSubmitted) }, native.CodeOpen},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != nil {
				c.before(w)
			}
			w.list()
			if c.after != nil {
				c.after(w)
			}
			pastes, enters := []string{}, 0
			if strings.Contains(name, "crash") {
				pastes, enters = []string{"/clear"}, 1
			}
			if name == "a person's draft" {
				w.pen.rec.WaitBytes(func(b []byte) bool { return len(b) == 2 })
			}
			var err error
			if c.thread == "" {
				_, err = w.NewThread(t.Context(), w.in(""))
			} else {
				_, err = w.ResumeThread(t.Context(), w.in(c.thread))
			}
			if !fault.Is(err, c.code) {
				t.Errorf("%v, want %s", err, c.code)
			}
			if name == "a person's draft" {
				if raw := w.pen.rec.Finish().Raw; string(raw) != "hi" {
					t.Errorf("the pane got %q", raw)
				}
				return
			}
			w.typed(enters, pastes...)
		})
	}
}

// shows makes every look show s.
func (w *world) shows(s agent.Screen) {
	w.pen.set(func(p *pen) { p.screen = func(agent.Screen) agent.Screen { return s } })
}

// ladder is the way of a change that succeeds.
var ladder = []native.EventKind{native.EvSubmitted, native.EvVerified, native.EvCommitted}

// interrupted begins a new thread whose Bridge cannot write any more from the event on, as
// if it were killed there. The Store is whole again when it returns.
func (w *world) interrupted(at native.EventKind) native.Transition {
	w.t.Helper()
	mend := w.breakStore(append(ladder[slices.Index(ladder, at):], native.EvUncertain)...)
	defer mend()
	r, err := w.bridge("bridge-dead").NewThread(w.t.Context(), w.in(""))
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Transition
}

func TestADialogAtTheLastMomentPressesNothingMore(t *testing.T) {
	w := newWorld(t)
	looks := 0
	w.pen.screen = func(s agent.Screen) agent.Screen {
		if looks++; s.Composer == agent.ComposerDraft { // the command is in it, and a dialog opens
			return agent.Screen{State: agent.ScreenApproval, Composer: agent.ComposerAbsent}
		}
		return s
	}
	r := w.newThread()
	if r.Transition.Status != native.Uncertain || !r.Transition.Open() {
		t.Errorf("%+v", r.Transition)
	}
	w.pen.set(func(p *pen) { p.screen = nil })
	for range 2 { // neither a sweep nor a new call types it
		if err := w.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.NewThread(t.Context(), w.in("")); err == nil {
		t.Error("a second change began")
	}
	w.typed(0, "/clear")
}

func TestWhatTheAgentItselfRefusesIsAborted(t *testing.T) {
	w := newWorld(t)
	w.pen.onEnter = func(p *pen, _ string) { p.lines = append(p.lines, "not found") }
	w.list()
	r, err := w.ResumeThread(t.Context(), w.in("one"))
	if err != nil || r.Transition.Status != native.Aborted || r.Transition.Open() {
		t.Errorf("%+v %v", r, err)
	}
	w.typed(1, "/resume one")
}

func TestATurnIsRefusedWhileAThreadIsBeingChanged(t *testing.T) {
	w := newWorld(t)
	tr := w.interrupted(native.EvSubmitted)
	err := w.db.Update(t.Context(), func(tx *store.Tx) error { return nativesql.CheckFree(tx, w.term.Key()) })
	if !fault.Is(err, native.CodeOpen) || !strings.Contains(err.Error(), string(tr.ID)) {
		t.Errorf("%v does not name %s", err, tr.ID)
	}
}

// Spec case 59: what was proved before a crash is finished by the next Bridge, the command
// was typed once.
func TestAChangeThatWasVerifiedBeforeACrashIsRolledForward(t *testing.T) {
	w := newWorld(t)
	old := w.session("old", true)
	tr := w.get(w.interrupted(native.EvCommitted).ID).Transition
	if tr.Status != native.Verified || w.getSession(old.ID).Status != turn.SessionBound {
		t.Fatalf("%+v", tr)
	}
	w.pen.set(func(p *pen) { p.current = "somebody went on" }) // the proof stands whatever is shown now
	for range 2 {
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	row := w.get(tr.ID)
	if row.Transition.Status != native.Committed || row.Owner != "bridge-a" || row.Transition.ThreadID != "fresh-1" {
		t.Errorf("%+v", row)
	}
	if got := w.getSession(row.Transition.SessionID); got.ThreadID != "fresh-1" || got.Status != turn.SessionBound {
		t.Errorf("%+v", got)
	}
	if w.getSession(old.ID).Status != turn.SessionDetached {
		t.Error("the old Session is still bound")
	}
	w.typed(1, "/clear")
}

func TestAChangeThatWasCutOffIsProvedAgainOrUncertain(t *testing.T) {
	for name, c := range map[string]struct {
		at   native.EventKind
		show string
		want native.Status
	}{
		"Enter was pressed, the thread is there": {native.EvSubmitted, "", native.Committed},
		"the proof could not be recorded":        {native.EvVerified, "", native.Committed},
		"the old thread is still there":          {native.EvSubmitted, "old", native.Uncertain},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tr := w.interrupted(c.at)
			if c.show != "" {
				w.pen.set(func(p *pen) { p.current = c.show })
			}
			w.age(tr)
			for range 2 {
				if err := w.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.get(tr.ID).Transition; got.Status != c.want {
				t.Errorf("%+v", got)
			}
			w.typed(1, "/clear")
		})
	}
}

// age lets the command have been typed longer ago than an agent may take.
func (w *world) age(tr native.Transition) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE native_transition SET state = json_set(state, '$.dispatched_at', '2020-01-01T00:00:00Z') WHERE transition_id = ?", tr.ID)
		return err
	})
}

func TestAPersonGivesAnUncertainChangeUp(t *testing.T) {
	w := newWorld(t)
	tr := w.interrupted(native.EvSubmitted)
	if err := w.Abandon(t.Context(), "terminal:v2:tmux:codex:x:0.0:1", tr.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("of another terminal: %v", err)
	}
	for range 2 {
		if err := w.Abandon(t.Context(), w.term.ID, tr.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.get(tr.ID); got.Transition.Open() || got.Transition.Status == native.Committed || got.Owner != "bridge-a" {
		t.Errorf("%+v", got)
	}
	w.newThread() // the terminal is free again
	w.typed(2, "/clear", "/clear")
}

func TestTheChangeOfALivingBridgeIsItsOwn(t *testing.T) {
	w := newWorld(t)
	tr := w.interrupted(native.EvSubmitted)
	release, err := w.db.Announce("bridge-dead") // it lives
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := w.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Abandon(t.Context(), w.term.ID, tr.ID); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if got := w.get(tr.ID); got.Owner != "bridge-dead" || got.Transition.Seq != w.get(tr.ID).Transition.Seq {
		t.Errorf("%+v", got)
	}
}

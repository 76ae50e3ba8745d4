package threads_test

import (
	"slices"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Spec 2.4: the first reason that holds is told.
func TestEachRowSaysWhyItCannotBeResumed(t *testing.T) {
	w := newWorld(t)
	add := func(id string, change func(*agent.Thread)) {
		th := agent.Thread{ID: id, Workspace: cwd, Owner: agent.OwnedByNobody, Token: "t"}
		if change != nil {
			change(&th)
		}
		w.pen.threads = append(w.pen.threads, th)
	}
	add("elsewhere", func(th *agent.Thread) { th.Owner, th.Archived = agent.OwnedElsewhere, true })
	add("unverifiable", func(th *agent.Thread) { th.Owner = agent.OwnedUnknown })
	add("busy", nil)
	add("moved", nil)
	add("archived", func(th *agent.Thread) { th.Archived, th.Token = true, "" })
	add("no token", func(th *agent.Thread) { th.Token = "" })
	add("here before", func(th *agent.Thread) { th.Owner = agent.OwnedHere })
	w.turnOf(w.session("busy", false))
	w.update(func(tx *store.Tx) error {
		s := turn.NewSession("codex", "moved", "/elsewhere", turn.Binding{}, tx.Now)
		return turnsql.PutSession(tx, s.Detach(tx.Now).Rebind(turn.Binding{Process: turn.Incarnation{PID: 1, Birth: "never"}}, tx.Now))
	})
	want := map[string]string{"old": threads.ReasonActive, "one": "", "two": "", "elsewhere": threads.ReasonElsewhere, "unverifiable": threads.ReasonUnverifiable,
		"busy": threads.ReasonBusy, "moved": threads.ReasonWorkspace, "archived": threads.ReasonArchived, "no token": threads.ReasonNoToken, "here before": ""}
	l := w.list()
	for i, row := range l.Rows {
		if row.Unavailable != want[row.Thread.ID] || row.SelectionNumber != i+1 {
			t.Errorf("%s: %q, want %q", row.Thread.ID, row.Unavailable, want[row.Thread.ID])
		}
		delete(want, row.Thread.ID)
	}
	if len(want) != 0 || l.Previous != nil || l.CurrentSession != "" {
		t.Errorf("not listed: %v; %+v", want, l)
	}
	w.typed(0)
}

func TestAThreadOfASessionThatALiveTerminalHoldsIsBound(t *testing.T) {
	w := newWorld(t)
	w.update(func(tx *store.Tx) error {
		b := turn.Binding{TerminalID: "t", Endpoint: turn.Endpoint{PaneID: "%98"}, Process: w.term.Ref.Process} // it lives, and is not seen
		return turnsql.PutSession(tx, turn.NewSession("codex", "one", cwd, b, tx.Now))
	})
	for _, row := range w.list().Rows {
		if row.Thread.ID == "one" && row.Unavailable != threads.ReasonBound {
			t.Errorf("%+v", row)
		}
	}
}

// actions is what a list offers for the terminal now.
func (w *world) actions(held *turn.Turn) map[string]dispatch.Action {
	w.t.Helper()
	scan, err := w.Scanner.Scan(w.t.Context(), discover.Options{Screens: true})
	if err != nil || len(scan.Terminals) != 1 {
		w.t.Fatal(scan, err)
	}
	term := scan.Terminals[0]
	state, _ := discover.Combine(term.Native, term.Screen)
	all, err := w.Actions(w.t.Context(), []dispatch.SeenTerminal{{Terminal: term, State: state, Held: held}})
	if err != nil {
		w.t.Fatal(err)
	}
	return all[term.Key()]
}

func names(m map[string]dispatch.Action) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestARowOffersWhatIsPossibleNow(t *testing.T) {
	w := newWorld(t)
	a := w.actions(nil)
	if got := names(a); !slices.Equal(got, []string{"list_resumable_threads", "new_thread"}) || a["new_thread"].Arguments["terminal_id"] != w.term.ID {
		t.Errorf("idle: %v", a)
	}
	if got := w.actions(&turn.Turn{}); len(got) != 0 {
		t.Errorf("with a Turn: %v", got)
	}
	w.shows(agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerDraft, Draft: "x"})
	if got := names(w.actions(nil)); !slices.Equal(got, []string{"list_resumable_threads"}) {
		t.Errorf("with a draft: %v", got)
	}
	w.shows(agent.Screen{State: agent.ScreenWorking})
	if got := w.actions(nil); len(got) != 0 {
		t.Errorf("working: %v", got)
	}
	w.shows(agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty})
	w.pen.support = fault.New(agent.CodeThreads, "t", "no")
	if got := w.actions(nil); len(got) != 0 {
		t.Errorf("unsupported: %v", got)
	}
}

func TestAnUncertainChangeIsOfferedToAPersonOnly(t *testing.T) {
	w := newWorld(t)
	tr := w.interrupted(native.EvSubmitted)
	w.update(func(tx *store.Tx) error {
		row, err := nativesql.Get(tx, tr.ID)
		if err == nil {
			_, err = nativesql.Save(tx, row, native.MarkUncertain(row.Transition, "x", tx.Now))
		}
		return err
	})
	a := w.actions(nil)
	if c := a["close"]; len(a) != 1 || !c.NeedsPerson || c.Arguments["expected_transition_id"] != tr.ID || c.Arguments["terminal_id"] != w.term.ID {
		t.Errorf("%+v", a)
	}
}

// Spec 2.7.
func TestReconcileUntiesOnlyTheSessionThatWasListed(t *testing.T) {
	w := newWorld(t)
	s := w.session("another", true) // the pane shows "old"
	in := func(id ids.SessionID) threads.ReconcileInput {
		return threads.ReconcileInput{TerminalID: w.term.ID, SessionID: id}
	}
	a := w.actions(nil)["reconcile_binding"]
	if a.Arguments["conflicting_session_id"] != s.ID {
		t.Fatalf("%+v", a)
	}
	w.update(func(tx *store.Tx) error { return turnsql.PutSession(tx, s.LearnThread("yet another", tx.Now)) })
	if _, err := w.ReconcileBinding(t.Context(), in(s.ID)); !fault.Is(err, threads.CodeNoConflict) {
		t.Errorf("a stale call: %v", err)
	}
	if got := w.getSession(s.ID); got.Status != turn.SessionBound {
		t.Errorf("%+v", got)
	}
	if _, err := w.ReconcileBinding(t.Context(), in("session-x")); !fault.Is(err, threads.CodeNoConflict) {
		t.Errorf("another session: %v", err)
	}
	w.actions(nil)
	r, err := w.ReconcileBinding(t.Context(), in(s.ID))
	if err != nil || r.Kind != threads.ConflictMoved || r.Binding != s.Binding.ID || r.Session.Revision != 3 {
		t.Errorf("%+v %v", r, err)
	}
	if got := w.getSession(s.ID); got.Status != turn.SessionDetached || got.ThreadID != "yet another" {
		t.Errorf("%+v", got)
	}
	claimed := w.session("old", false)
	if r, err = w.ReconcileBinding(t.Context(), in(claimed.ID)); err != nil || r.Kind != threads.ConflictClaimed {
		t.Errorf("%+v %v", r, err)
	}
	w.typed(0)
}

func TestReconcileKeepsASessionWithAnOpenTurn(t *testing.T) {
	for name, session := range map[string]func(*world) turn.Session{
		"bound here":      func(w *world) turn.Session { return w.session("another", true) },
		"bound elsewhere": func(w *world) turn.Session { return w.session("old", false) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := session(w)
			w.turnOf(s)
			if _, ok := w.actions(nil)["reconcile_binding"]; ok {
				t.Error("it is offered")
			}
			_, err := w.ReconcileBinding(t.Context(), threads.ReconcileInput{TerminalID: w.term.ID, SessionID: s.ID})
			if code := fault.CodeOf(err); code != threads.CodeNoConflict && code != turn.CodeBlocked {
				t.Error(err)
			}
			if w.getSession(s.ID).Status != turn.SessionBound {
				t.Error("it was untied")
			}
			w.typed(0)
		})
	}
}

package watcher_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

// monitors notes what it was asked for.
type monitors struct {
	mu        sync.Mutex
	watched   []ids.WatchID
	forgotten []ids.WatchID
}

func (m *monitors) Watch(_ context.Context, w watch.Watch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = append(m.watched, w.ID)
	return nil
}

func (m *monitors) Forget(id ids.WatchID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgotten = append(m.forgotten, id)
}

type rig struct {
	t  *testing.T
	db *store.DB
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store"), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &rig{t, db}
}

func routeOf(session string) outbox.Route {
	return outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: session}
}

// bridge is a Bridge that is dead for all others: none holds a presence lock.
func (r *rig) bridge(id ids.BridgeID, session string) (*watcher.Service, *monitors) {
	r.t.Helper()
	m := &monitors{}
	r.update(func(tx *store.Tx) error {
		if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: id, ProfileID: "p"}); err != nil {
			return err
		}
		_, err := outboxsql.PutRoute(tx, routeOf(session))
		return err
	})
	return watcher.New(watcher.Config{DB: r.db, Bridge: id, Monitors: m, Route: routeOf(session), CheckProfile: func() error { return nil },
		Enqueued: func() {}, Clock: clock.System{}}), m
}

func (r *rig) update(f func(*store.Tx) error) {
	r.t.Helper()
	if err := r.db.Update(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// put stores a Watch of bridge-a in pane n.
func (r *rig) put(n int, life time.Duration) watch.Watch {
	r.t.Helper()
	w := watch.Watch{ID: ids.NewWatch(), Origin: "bridge-a", Route: routeOf("s").ID(), Mode: watch.ModeTask, Agent: "codex",
		Endpoint: turn.Endpoint{Socket: "/s", PaneID: "%1", PanePID: n}, Process: turn.Incarnation{PID: n, Birth: "1@b"}}
	w.CallKey, w.TaskKey = string(w.ID), string(w.ID)
	r.update(func(tx *store.Tx) error {
		w.DeadlineAt = tx.Now.Add(life)
		p := watch.Create(w, tx.Now)
		w = p.Watch
		_, err := watchsql.Insert(tx, p, "bridge-a")
		return err
	})
	return w
}

func (r *rig) deliveries(id ids.WatchID) []outboxsql.Row {
	r.t.Helper()
	var rows []outboxsql.Row
	r.update(func(tx *store.Tx) (err error) {
		rows, err = outboxsql.RowsBySource(tx, outbox.SourceWatch, string(id))
		return err
	})
	return rows
}

func TestCase56ADamagedWatchIsIsolatedFromAllOthers(t *testing.T) {
	r := newRig(t)
	s, m := r.bridge("bridge-a", "s")
	bad, good, late := r.put(1, time.Hour), r.put(2, time.Hour), r.put(3, 0)
	r.update(func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE watch SET state = '{' WHERE watch_id = ?", bad.ID)
		return err
	})
	if err := s.Sweep(t.Context()); !fault.Is(err, store.CodeStorage) {
		t.Errorf("the sweep says %v", err)
	}
	if !slices.Equal(m.watched, []ids.WatchID{good.ID}) || !slices.Equal(m.forgotten, []ids.WatchID{late.ID}) {
		t.Errorf("watched %v, forgotten %v", m.watched, m.forgotten)
	}
	all, err := s.List(t.Context(), true)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v %v", all, err)
	}
	for _, v := range all {
		if v.ID == bad.ID && len(v.Warnings) == 0 || v.ID == late.ID && v.Status != watch.TimedOut {
			t.Errorf("%+v", v)
		}
	}
	if active, err := s.List(t.Context(), false); err != nil || len(active) != 2 {
		t.Errorf("%+v %v", active, err)
	}
	if err := s.Observe(t.Context(), bad.ID, turn.Observation{Kind: turn.ObsCompleted}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an observation of a damaged Watch: %v", err)
	}
	next, m := r.bridge("bridge-b", "s")
	if err := next.Sweep(t.Context()); err != nil || !slices.Equal(m.watched, []ids.WatchID{good.ID}) {
		t.Errorf("taken over: %v, %v", m.watched, err)
	}
}

func TestCase56ASettlementSupersedesWhatWasNotHeardAndIsToldOnce(t *testing.T) {
	r := newRig(t)
	s, m := r.bridge("bridge-a", "s")
	w := r.put(1, time.Hour)
	prompt := turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "a", Title: "Run it?"}}
	end := turn.Observation{Kind: turn.ObsCompleted, Text: "done"}
	for _, o := range []turn.Observation{prompt, prompt, end, end, prompt} { // as after a lost acknowledgement
		if err := s.Observe(t.Context(), w.ID, o); err != nil {
			t.Fatal(err)
		}
	}
	ds := r.deliveries(w.ID)
	if len(ds) != 2 || ds[0].Status != outbox.Superseded || ds[1].Status != outbox.Pending || ds[1].Event.RequiresResponse || !slices.Contains(m.forgotten, w.ID) {
		t.Errorf("%+v", ds)
	}
	v, err := s.Unwatch(t.Context(), w.ID) // too late
	if err != nil || v.Status != watch.Completed || v.Callback != (watch.Counts{Pending: 1, Superseded: 1}) {
		t.Errorf("%+v %v", v, err)
	}
}

func TestAWatchThatCannotBeReadIsObservedAnewWithTheNextSweep(t *testing.T) { // spec case 55
	r := newRig(t)
	s, m := r.bridge("bridge-a", "s")
	w := r.put(1, time.Hour)
	if err := s.Observe(t.Context(), w.ID, turn.Observation{Kind: turn.ObsTrouble, Code: string(transcript.CodeUnread)}); err != nil {
		t.Fatal(err)
	}
	if v, err := s.One(t.Context(), w.ID); err != nil || v.Status != watch.Active || v.Problem == nil || v.Problem.Code != watch.ProblemProvider {
		t.Errorf("%+v %v", v, err)
	}
	if err := s.Sweep(t.Context()); err != nil || !slices.Equal(m.forgotten, m.watched) || len(m.watched) != 1 {
		t.Errorf("%+v %v", m, err)
	}
	if err := s.Observe(t.Context(), w.ID, turn.Observation{Kind: turn.ObsTrouble, Code: observe.CodeScreen}); err != nil {
		t.Fatal(err)
	}
	if v, err := s.One(t.Context(), w.ID); err != nil || v.Status != watch.Active || v.Problem.Code != watch.ProblemTerminal {
		t.Errorf("%+v %v", v, err)
	}
}

// Case 57: a Bridge of another session takes a Watch over, and what it has to say waits
// for a Bridge of the session that made it.
func TestCase57WhatAWatchSaysGoesToItsOwnRouteOnly(t *testing.T) {
	r := newRig(t)
	r.bridge("bridge-a", "s")
	w := r.put(1, time.Hour)
	other, m := r.bridge("bridge-b", "another")
	if err := other.Sweep(t.Context()); err != nil || len(m.watched) != 1 {
		t.Fatalf("%v %v", m.watched, err)
	}
	if err := other.Observe(t.Context(), w.ID, turn.Observation{Kind: turn.ObsCompleted}); err != nil {
		t.Fatal(err)
	}
	ds := r.deliveries(w.ID)
	if len(ds) != 1 || ds[0].Owner != "bridge-a" || ds[0].Route != routeOf("s") {
		t.Errorf("%+v", ds)
	}
}

func TestTheWatchOfABridgeThatLivesIsItsOwn(t *testing.T) {
	r := newRig(t)
	r.bridge("bridge-a", "s")
	release, err := r.db.Announce("bridge-a")
	if err != nil {
		t.Fatal(err)
	}
	w := r.put(1, time.Hour)
	other, m := r.bridge("bridge-b", "s")
	if err := other.Sweep(t.Context()); err != nil || len(m.watched) != 0 {
		t.Errorf("%v %v", m.watched, err)
	}
	if err := other.Observe(t.Context(), w.ID, turn.Observation{Kind: turn.ObsCompleted}); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	if _, err := other.Unwatch(t.Context(), w.ID); !fault.Is(err, watch.CodeStale) {
		t.Errorf("%v", err)
	}
	release()
	if v, err := other.Unwatch(t.Context(), w.ID); err != nil || v.Status != watch.Cancelled {
		t.Errorf("%+v %v", v, err)
	}
}

func TestAWatchIsOfferedForWorkOfAPersonOnly(t *testing.T) { // spec part 3.5
	r := newRig(t)
	s, _ := r.bridge("bridge-a", "s")
	seen := func(n int, edit func(*dispatch.SeenTerminal)) dispatch.SeenTerminal {
		x := dispatch.SeenTerminal{State: discover.Working, Terminal: discover.Terminal{ID: ids.TerminalID("t"),
			Ref:    agent.Ref{Endpoint: turn.Endpoint{Socket: "/s", PaneID: "%1", PanePID: n}, Process: turn.Incarnation{PID: n, Birth: "1@b"}},
			Native: agent.Native{Thread: agent.ThreadResolved}}}
		if edit != nil {
			edit(&x)
		}
		return x
	}
	w := r.put(9, time.Hour)
	for name, c := range map[string]struct {
		edit func(*dispatch.SeenTerminal)
		want string
	}{
		"working":          {nil, "watch"},
		"awaiting":         {func(x *dispatch.SeenTerminal) { x.State = discover.Awaiting }, "watch"},
		"idle":             {func(x *dispatch.SeenTerminal) { x.State = discover.Idle }, ""},
		"unknown":          {func(x *dispatch.SeenTerminal) { x.State = discover.Unknown }, ""},
		"a Turn of ours":   {func(x *dispatch.SeenTerminal) { x.Held = &turn.Turn{} }, ""},
		"ambiguous thread": {func(x *dispatch.SeenTerminal) { x.Terminal.Native.Thread = agent.ThreadAmbiguous }, ""},
		"contested":        {func(x *dispatch.SeenTerminal) { x.Terminal.Conflict = "two agents" }, ""},
		"watched":          {func(x *dispatch.SeenTerminal) { x.Terminal.Ref = seen(9, nil).Terminal.Ref }, "unwatch"},
	} {
		x := seen(1, c.edit)
		got, err := s.Actions(t.Context(), []dispatch.SeenTerminal{x})
		if err != nil {
			t.Fatal(err)
		}
		actions := got[x.Terminal.Key()]
		if len(actions) > 1 || (c.want == "") != (len(actions) == 0) || c.want != "" && actions[c.want].Tool == "" {
			t.Errorf("%s: %+v", name, actions)
		}
		if c.want == "watch" && !actions["watch"].NeedsIntent || c.want == "unwatch" && actions["unwatch"].Arguments["watch_id"] != w.ID {
			t.Errorf("%s: %+v", name, actions)
		}
	}
}

func TestNoWatchIsMadeForAProfileThatChanged(t *testing.T) { // spec case 19
	r := newRig(t)
	s, _ := r.bridge("bridge-a", "s")
	drift := errors.New("another Profile")
	s.CheckProfile = func() error { return drift }
	if _, err := s.Watch(t.Context(), watcher.WatchInput{CallID: "c", TerminalID: "t"}); !errors.Is(err, drift) {
		t.Errorf("%v", err)
	}
}

// A code that the rules do not know leaves a Watch active for ever; each adapter's is known.
func TestTheRulesKnowTheTroublesOfEveryAdapter(t *testing.T) {
	codes := []string{observe.CodeScreen, agent.CodeThreadChanged, agent.CodeIdleNoEnd, transcript.CodeTwoMatches, transcript.CodeBroken,
		transcript.CodeNoAnswer, transcript.CodeTooLong, transcript.CodeIdleNoRecord}
	for _, c := range []fault.Code{codex.CodeTwoMatches, codex.CodeTwoEndings, codex.CodeTurnLeftOpen, codex.CodeServerLost, codex.CodeTurnLost,
		rollout.CodeBadRecord, rollout.CodeTooLong, rollout.CodeReplaced, rollout.CodeInsecure, rollout.CodeUnreadable,
		transcript.CodeReplaced, transcript.CodeTruncated, transcript.CodeUntrusted, transcript.CodeLongLine, transcript.CodeUnread} {
		codes = append(codes, string(c))
	}
	for _, c := range codes {
		if !watch.Understood(c) {
			t.Errorf("%s is not known", c)
		}
	}
}

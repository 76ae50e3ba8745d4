package dispatch_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// accepted sends a task that the agent takes at once.
func (r *rig) accepted() turn.Turn {
	r.t.Helper()
	r.agent.onDraft = func() {
		if err := r.Observe(r.t.Context(), r.only().Turn.ID, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n", Source: "rollout"}); err != nil {
			r.t.Error(err)
		}
	}
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.Accepted {
		r.t.Fatalf("%+v %v", res.Turn, err)
	}
	return res.Turn
}

// A Bridge of another Profile may be asked to act on what a dead one left; it cannot call
// back for it.
func TestATakenOverTurnOfAnotherProfileKeepsItsAnswerForThatProfile(t *testing.T) { // C05
	r := newRig(t)
	id := r.accepted().ID
	b, _ := r.bridge("bridge-b", "session-a", r.agent.rec.Server.Socket())
	c := b.Config
	c.Route.ProfileID = "q"
	other := dispatch.New(c)
	if _, err := other.Renew(t.Context(), dispatch.RenewInput{CallID: "c1", TurnID: id}); err == nil || r.only().Owner != "bridge-b" {
		t.Fatalf("a Turn that runs was renewed, or left where it was: %v, %s", err, r.only().Owner)
	}
	if err := other.Observe(t.Context(), id, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "for profile p"}); err != nil {
		t.Fatal(err)
	}
	r.update(func(tx *store.Tx) error {
		rows, err := outboxsql.OpenOf(tx, "bridge-a", outbox.Route{ProfileID: "p", SessionDigest: "session-a"}, "", 10)
		if len(rows) != 1 {
			t.Errorf("%d callbacks wait for the Profile's own Bridge", len(rows))
		}
		return err
	})
}

// A Bridge of another controller session finishes what a dead one left, so that the
// terminal comes free, but the answer waits for a Bridge of its own session.
func TestATakenOverTurnOfAnotherSessionKeepsItsAnswerForThatSession(t *testing.T) { // C05, spec case 28
	r := newRig(t)
	id := r.accepted().ID
	other, watched := r.bridge("bridge-b", "session-b", r.agent.rec.Server.Socket())
	if err := other.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if watched.watched[id] != 1 {
		t.Fatalf("the Turn was not taken over: %v", watched.watched)
	}
	done := turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "for session a"}
	if err := r.Observe(t.Context(), id, done); !fault.Is(err, fault.NotFound) {
		t.Errorf("the former owner's monitor must end, it got %v", err)
	}
	if err := other.Observe(t.Context(), id, done); err != nil {
		t.Fatal(err)
	}
	if row := r.only(); row.Owner != "bridge-b" || row.Turn.Status != turn.Idle {
		t.Errorf("%s %+v", row.Owner, row.Turn)
	}
	r.update(func(tx *store.Tx) error {
		for session, want := range map[string]ids.BridgeID{"session-a": "bridge-a", "session-b": ""} {
			live := outbox.Route{ProfileID: "p", SessionDigest: session}
			rows, err := outboxsql.OpenOf(tx, "bridge-a", live, "", 10)
			if err != nil {
				return err
			}
			if (len(rows) == 1) != (want != "") {
				t.Errorf("%d callbacks wait for %s", len(rows), session)
			}
		}
		claimed, err := outboxsql.ClaimDue(tx, "bridge-b", 10)
		if len(claimed) != 0 {
			t.Errorf("the other session's Bridge would deliver %+v", claimed)
		}
		return err
	})
}

func TestADamagedTurnStopsNoOthers(t *testing.T) { // E10
	r := newRig(t)
	good := r.accepted()
	r.update(func(tx *store.Tx) error {
		b := turn.Binding{Endpoint: turn.Endpoint{Socket: "/s", PaneID: "%9", PanePID: 9}, Process: turn.Incarnation{PID: 9, Birth: "1@b"}}
		s := turn.NewSession("codex", "", "/w", b, tx.Now)
		if err := turnsql.PutSession(tx, s); err != nil {
			return err
		}
		row, err := turnsql.Insert(tx, turn.Reserve(turn.Turn{ID: "turn-bad", SessionID: s.ID, CallKey: "bad", Endpoint: b.Endpoint, Process: b.Process}, tx.Now), "bridge-a")
		if err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE turn SET state = 'x' WHERE turn_id = ?", row.Turn.ID)
		return err
	})
	other, watched := r.bridge("bridge-b", "session-a", r.agent.rec.Server.Socket())
	if err := other.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if watched.watched[good.ID] != 1 {
		t.Errorf("the healthy Turn was not taken over: %v", watched.watched)
	}
	if err := r.Sweep(t.Context()); err == nil {
		t.Error("its owner says nothing of the damaged one")
	}
}

package dispatch_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// completed is a Turn whose agent asked something back in its final text.
func (r *rig) completed() turn.Turn {
	r.t.Helper()
	tn := r.accepted()
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "Which one?"})
	r.agent.take()
	r.agent.rec.Finish()
	r.agent.take() // the mark too
	return r.only().Turn
}

func (r *rig) respond(call string, tn turn.Turn, text string) (dispatch.SendResult, error) {
	return r.Respond(r.t.Context(), dispatch.RespondInput{CallID: call, TurnID: tn.ID, Request: text})
}

// takesAs makes the agent accept the next submission as a native turn of that id.
func (r *rig) takesAs(native string) {
	r.agent.onDraft = func() {
		if err := r.Observe(r.t.Context(), r.only().Turn.ID, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: native, Source: "rollout"}); err != nil {
			r.t.Error(err)
		}
	}
}

func TestAnAnswerContinuesTheSameTurnAndIsReportedAnew(t *testing.T) { // spec part 2.11
	r := newRig(t)
	tn := r.completed()
	if s := r.review(tn.ID); s.Actions["respond"].Tool == "" {
		t.Errorf("the actions are %v", s.Actions)
	}
	r.takesAs("n2")
	got, err := r.respond("c1", tn, "the blue one")
	if err != nil || got.Turn.ID != tn.ID || got.Turn.Round != 1 || got.Turn.Stage != turn.Accepted || got.Turn.MessageID == tn.MessageID || got.Turn.NativeTurnID != "n2" {
		t.Fatalf("%+v %v", got.Turn, err)
	}
	if _, err := r.send("another"); !fault.Is(err, turn.CodeBlocked) {
		t.Errorf("the terminal is free: %v", err)
	}
	if again, err := r.respond("c1", tn, "the blue one"); err != nil || !again.Replayed {
		t.Errorf("the same call: %+v %v", again, err)
	}
	if _, err := r.respond("c1", tn, "the red one"); !fault.Is(err, turn.CodeReplay) {
		t.Errorf("the same call with other words: %v", err)
	}
	if again, err := r.send("do it"); err != nil || !again.Replayed { // the first round's call
		t.Errorf("the task's call again: %+v %v", again, err)
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "late and of the first round"})
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n2", Source: "rollout", Text: "done"})
	all := deliveries(t, r)
	if len(all) != 2 || string(all[1].Event.Body) != "done" || all[0].Event.ID == all[1].Event.ID {
		t.Errorf("%+v", all)
	}
	if b := r.only().Turn.Budget(); b.RoundsUsed != 1 || b.HardLimit != 100 {
		t.Errorf("%+v", b)
	}
	r.typed("the blue one", 1)
}

func TestAnAnswerThatCannotBeTypedLeavesTheTurnCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*rig, turn.Turn)
		code   fault.Code
	}{
		"an approval is open":     {func(r *rig, _ turn.Turn) { r.shows(command("a")) }, turn.CodeTerminal},
		"the agent works":         {func(r *rig, _ turn.Turn) { r.looks(agent.Screen{State: agent.ScreenWorking}) }, turn.CodeTerminal},
		"the screen is not known": {func(r *rig, _ turn.Turn) { r.looks(agent.Screen{State: agent.ScreenUnknown}) }, turn.CodeTerminal},
		"a draft is there": {func(r *rig, _ turn.Turn) {
			r.looks(agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerDraft})
		}, turn.CodeTerminal},
		"another thread is shown": {func(r *rig, _ turn.Turn) {
			r.agent.onNative = func(n agent.Native) agent.Native { n.ThreadID = "thread-2"; return n }
		}, turn.CodeTerminal},
		"it changes at the last moment": {func(r *rig, _ turn.Turn) {
			r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
				if r.only().Turn.Stage == turn.TextInjected {
					s.State = agent.ScreenDialog
				}
				return s
			}
		}, turn.CodeTerminal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tn := r.completed()
			c.before(r, tn)
			_, err := r.respond("c1", tn, "the blue one")
			if _, _, hint := fault.Public(err); !fault.Is(err, c.code) || hint == "" {
				t.Errorf("%v", err)
			}
			if now := r.only().Turn; now.Status != turn.Idle || now.Stage == turn.Reserved {
				t.Errorf("%+v", now)
			}
			r.pressed("")
			r.agent.onScreen, r.agent.onNative = nil, nil
			r.agent.take()
			r.takesAs("n2")
			if got, err := r.respond("c2", tn, "the blue one"); err != nil || got.Turn.Stage != turn.Accepted {
				t.Errorf("afterwards: %+v %v", got.Turn, err)
			}
		})
	}
}

func (r *rig) looks(s agent.Screen) {
	r.agent.onScreen = func(int, agent.Screen) agent.Screen { return s }
}

func TestOnlyACompletedTurnThatIsTheNewestIsContinued(t *testing.T) {
	r := newRig(t)
	tn := r.accepted()
	if _, err := r.respond("c1", tn, "words"); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("a running Turn: %v", err)
	}
	r.observe(tn, prompt("a"))
	if _, err := r.respond("c2", tn, "words"); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("a Turn with an open approval: %v", err)
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "Which?"})
	r.agent.take()
	r.agent.onDraft = func() {
		for _, row := range r.rows() {
			if row.Turn.ID != tn.ID {
				if err := r.Observe(t.Context(), row.Turn.ID, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n2", Source: "rollout"}); err != nil {
					t.Error(err)
				}
			}
		}
	}
	newer, err := r.send("something new")
	if err != nil {
		t.Fatal(err)
	}
	r.agent.take()
	if _, err := r.respond("c3", tn, "words"); !fault.Is(err, turn.CodeBlocked) {
		t.Errorf("while a newer Turn runs: %v", err)
	}
	r.observe(newer.Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n2", Source: "rollout", Text: "done"})
	r.agent.rec.Finish()
	r.agent.take()
	if _, err := r.respond("c4", tn, "words"); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("an older Turn: %v", err)
	}
	if _, err := r.Close(t.Context(), dispatch.CloseInput{TurnID: newer.Turn.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.respond("c5", newer.Turn, "words"); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("a closed Turn: %v", err)
	}
	r.pressed("")
}

// A round that is cut off by the death of its Bridge is decided like a first submission.
func TestACutOffRoundIsRecovered(t *testing.T) {
	r := newRig(t)
	tn := r.completed()
	var mend func()
	r.monitors.onWatch = func(dispatch.Watch) { mend = r.breakStore() }
	if _, err := r.respond("c1", tn, "words"); err == nil {
		t.Fatal("no error")
	}
	r.monitors.onWatch = nil
	mend()
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := r.only().Turn; now.Status != turn.Idle || now.Stage != turn.Aborted {
		t.Errorf("%+v", now)
	}
	if got := r.attempt(outbox.Accepted); got != "completion" {
		t.Errorf("%q is due", got)
	}
	r.pressed("")
}

package dispatch_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

func (r *rig) close(in dispatch.CloseInput) (dispatch.CloseResult, error) {
	return r.Close(r.t.Context(), in)
}

// switched is an accepted Turn whose human went on to another thread in the pane.
func (r *rig) switched() turn.Turn {
	r.t.Helper()
	tn := r.accepted()
	r.observe(tn, turn.Observation{Kind: turn.ObsActivity, ThreadID: "thread-1"})
	r.agent.take()
	r.agent.onNative = func(n agent.Native) agent.Native { n.ThreadID = "thread-2"; return n }
	return r.only().Turn
}

func TestAHumansSwitchIsDecidedByAPersonAndNotByTheWay(t *testing.T) { // spec part 3.4
	r := newRig(t)
	tn := r.switched()
	handoff := dispatch.CloseInput{TurnID: tn.ID, Reason: turn.ReasonHandoff}
	if _, err := r.close(handoff); !fault.Is(err, fault.Conflict) {
		t.Errorf("a choice that was not shown: %v", err)
	}
	if _, err := r.close(dispatch.CloseInput{TurnID: tn.ID}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a plain close: %v", err)
	}
	l, err := r.List(t.Context(), dispatch.ListInput{})
	if err != nil || len(l.Terminals) != 1 {
		t.Fatal(err)
	}
	row := l.Terminals[0]
	if row.Management != "conflict" || row.HandoffState != "external_handoff_blocked" || row.Handoff == nil || row.Conflict == nil || row.Conflict.Recovery == "" {
		t.Fatalf("%+v", row)
	}
	if _, ok := row.Actions["close"]; ok || row.Actions["send"].Tool != "" {
		t.Errorf("%+v", row.Actions)
	}
	take := row.Handoff.Choices["take_over_current"]
	if take.Tool != "agent_knock_knock_close" || take.Arguments["turn_id"] != tn.ID || take.Arguments["reason"] != turn.ReasonHandoff || !take.NeedsPerson ||
		row.Handoff.Choices["keep_source"].Tool != "agent_knock_knock_status" {
		t.Errorf("%+v", row.Handoff)
	}
	r.agent.onNative = func(n agent.Native) agent.Native { n.ThreadID = "thread-3"; return n }
	if _, err := r.close(handoff); !fault.Is(err, fault.Conflict) {
		t.Errorf("the human went on again: %v", err)
	}
	if _, err := r.List(t.Context(), dispatch.ListInput{}); err != nil {
		t.Fatal(err)
	}
	res, err := r.close(handoff)
	if err != nil || res.Turn.Status != turn.Closed || res.Turn.Disposition != turn.DispositionHandoff {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	if _, err := r.close(handoff); err != nil {
		t.Errorf("a close of a closed Turn: %v", err)
	}
	l, err = r.List(t.Context(), dispatch.ListInput{})
	if err != nil || l.Terminals[0].HandoffState != "external_handoff_adoptable" || l.Terminals[0].Actions["send"].Tool == "" || l.Terminals[0].Management != "unmanaged" {
		t.Errorf("%+v %v", l.Terminals, err)
	}
	r.typed("do it", 1)
}

func TestATurnWhoseThreadIsShownIsClosedPlainly(t *testing.T) {
	r := newRig(t)
	tn := r.accepted()
	res, err := r.close(dispatch.CloseInput{TurnID: tn.ID, Reason: "enough token=abcdefghijklmnop"})
	if err != nil || res.Before != turn.WaitingForAgent || res.Turn.Disposition != "" || strings.Contains(res.Turn.Reason, "abcdefghijklmnop") {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := r.close(dispatch.CloseInput{TurnID: tn.ID, Message: "msg-other"}); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}

func TestACloseOfADeadAgentsTurnSaysThatItIsDead(t *testing.T) { // E09, spec part 2.15
	r := newRig(t)
	tn := r.accepted()
	r.agent.rec.Server.Tmux("set-option", "-g", "remain-on-exit", "on")
	if err := syscall.Kill(tn.Process.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	faketmux.Wait(t, "the end of the agent", func() bool { alive, err := procinfo.Alive(tn.Process); return err == nil && !alive }, func() string { return "" })
	if _, err := r.Renew(t.Context(), dispatch.RenewInput{TurnID: tn.ID}); !fault.Is(err, turn.CodeNotAllowed) {
		t.Error(err)
	}
	l, err := r.List(t.Context(), dispatch.ListInput{})
	if err != nil || len(l.Unavailable) != 1 || l.Unavailable[0].Availability == nil || l.Unavailable[0].Availability.Reason == "" || !l.Unavailable[0].Actions["close"].NeedsPerson {
		t.Fatalf("%+v %v", l, err)
	}
	res, err := r.close(dispatch.CloseInput{TurnID: tn.ID})
	if err != nil || res.Turn.Disposition != turn.DispositionDead || !res.Turn.ProcessGone {
		t.Errorf("%+v %v", res.Turn, err)
	}
}

// A submission whose end could not be stored is nobody's: it is closed by its own name.
func TestAnOrphanedSubmissionIsClosedByItsMessage(t *testing.T) { // spec part 2.15
	r := newRig(t)
	var mend func()
	r.monitors.onWatch = func(dispatch.Watch) { mend = r.breakStore() }
	if _, err := r.send("do it"); err == nil {
		t.Fatal("no error")
	}
	mend()
	tn := r.only().Turn
	if tn.Status != turn.Created {
		t.Fatalf("%+v", tn)
	}
	if _, err := r.close(dispatch.CloseInput{TurnID: tn.ID}); !fault.Is(err, turn.CodeNotAllowed) {
		t.Error(err)
	}
	l, err := r.List(t.Context(), dispatch.ListInput{})
	if err != nil {
		t.Fatal(err)
	}
	message, _ := l.Terminals[0].Actions["close"].Arguments["expected_message_id"].(ids.MessageID)
	res, err := r.close(dispatch.CloseInput{TurnID: tn.ID, Message: message})
	if err != nil || res.Turn.Status != turn.Closed || res.Turn.Stage != turn.Aborted || res.Turn.Disposition != turn.DispositionOrphan {
		t.Errorf("%q: %+v %v", message, res.Turn, err)
	}
	r.typed("", 0)
}

// abandoned notes the transitions that were given up.
type abandoned []string

func (a *abandoned) Abandon(_ context.Context, t ids.TerminalID, id ids.TransitionID) error {
	*a = append(*a, string(t)+" "+string(id))
	return nil
}

func TestATransitionIsGivenUpByItsName(t *testing.T) { // spec part 2.15
	r := newRig(t)
	in := dispatch.CloseInput{TerminalID: r.terminal, Transition: "transition-0123456789abcdef"}
	if _, err := r.close(in); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	var a abandoned
	r.Transitions = &a
	if _, err := r.close(in); err != nil || len(a) != 1 || a[0] != string(r.terminal)+" transition-0123456789abcdef" {
		t.Errorf("%v %v", a, err)
	}
	for _, bad := range []dispatch.CloseInput{{}, {TerminalID: r.terminal}, {TurnID: "t", TerminalID: r.terminal}, {TurnID: "t", Transition: in.Transition},
		{TerminalID: r.terminal, Transition: in.Transition, Message: "m"}} {
		if _, err := r.close(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if len(a) != 1 {
		t.Error(a)
	}
}

func TestRenewNeedsTheSameProcessAndThread(t *testing.T) { // spec part 2.12, case 49
	r := newRig(t)
	tn := r.accepted()
	renew := func(call string) (dispatch.RenewResult, error) {
		return r.Renew(t.Context(), dispatch.RenewInput{CallID: call, TurnID: tn.ID, Inactivity: 5 * time.Minute})
	}
	if _, err := renew("c0"); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("a Turn that is not stalled: %v", err)
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsActivity, ThreadID: "thread-1"})
	r.outOfTime(tn)
	r.agent.onNative = func(n agent.Native) agent.Native { n.ThreadID = "thread-2"; return n }
	if _, err := renew("c1"); !fault.Is(err, turn.CodeTerminal) {
		t.Errorf("another thread: %v", err)
	}
	r.agent.onNative = nil
	watched := r.monitors.watched[tn.ID]
	res, err := renew("c2")
	if err != nil || res.Turn.Status != turn.WaitingForAgent || !res.Monitored || r.monitors.watched[tn.ID] != watched+1 {
		t.Fatalf("%+v %v", res, err)
	}
	again, err := renew("c2")
	if err != nil || !again.Replayed || again.Turn.Renewals != 1 {
		t.Errorf("%+v %v", again, err)
	}
	r.typed("do it", 1)
}

// outOfTime lets a Turn's time run out.
func (r *rig) outOfTime(t turn.Turn) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		row, err := turnsql.Get(tx, t.ID)
		if err != nil {
			return err
		}
		return turnsql.Save(tx, row, turn.CheckDeadlines(row.Turn, tx.Now.Add(turn.DefaultInactivity)))
	})
}

// What the columns still say is enough to give a terminal back.
func TestATurnWhoseRecordIsDamagedIsClosedAndFreesItsTerminal(t *testing.T) {
	r := newRig(t)
	tn := r.accepted()
	r.update(func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE turn SET state = 'x' WHERE turn_id = ?", tn.ID)
		return err
	})
	if _, err := r.send("another"); err == nil {
		t.Fatal("a damaged Turn keeps nothing")
	}
	got, err := r.Close(t.Context(), dispatch.CloseInput{TurnID: tn.ID, Reason: "the record is damaged"})
	if err != nil || got.Turn.Status != turn.Closed || got.Before != turn.WaitingForAgent {
		t.Fatalf("%+v %v", got, err)
	}
	r.update(func(tx *store.Tx) error {
		held, err := turnsql.Blocking(tx)
		if len(held) != 0 {
			t.Errorf("still kept: %+v", held)
		}
		return err
	})
}

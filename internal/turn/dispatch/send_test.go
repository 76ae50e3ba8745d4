package dispatch_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// An error of send tells a model that nothing reached the agent. So once a byte may have,
// no failure of ours may look like one (spec case 38).
func TestAStoreThatFailsAfterThePasteIsNoErrorOfSend(t *testing.T) {
	r := newRig(t)
	var once sync.Once
	var mend func()
	r.agent.onDraft = func() { once.Do(func() { mend = r.breakStore() }) }
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.Uncertain || res.Turn.SubmissionStatus() != turn.SubmissionUncertain {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	mend()
	if err := r.Sweep(t.Context()); err != nil { // what could not be recorded is decided now
		t.Fatal(err)
	}
	row := r.only()
	if row.Turn.Stage != turn.Uncertain || row.Turn.Status != turn.Stalled || r.monitors.watched[row.Turn.ID] < 2 {
		t.Errorf("%+v, %v", row.Turn, r.monitors.watched)
	}
	if n := len(deliveries(t, r)); n != 1 {
		t.Errorf("the Host hears of it %d times", n)
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	r.typed("do it", 1)
}

func TestAStoreThatFailsBeforeThePasteKeepsThePaneUntouchedAndFree(t *testing.T) { // spec case 38
	r := newRig(t)
	var mend func()
	r.monitors.onWatch = func(dispatch.Watch) { mend = r.breakStore() }
	if _, err := r.send("do it"); err == nil {
		t.Fatal("no error")
	}
	r.monitors.onWatch = nil
	mend()
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row := r.only(); row.Turn.Stage != turn.Aborted || row.Turn.Status.Blocking() {
		t.Errorf("the terminal is kept by %+v", row.Turn)
	}
	r.typed("", 0)
}

// A dialog opened after the last proof and before the first byte: a commit may take long.
func TestADialogBetweenProofAndPasteGetsNothing(t *testing.T) { // T13, H5
	r := newRig(t)
	r.agent.onScreen = func(n int, s agent.Screen) agent.Screen {
		if n > 2 { // 1: the target, 2: the proof under the lock
			s.State = agent.ScreenDialog
		}
		return s
	}
	_, err := r.send("do it")
	if _, _, hint := fault.Public(err); !fault.Is(err, turn.CodeTerminal) || hint == "" {
		t.Fatal(err)
	}
	if row := r.only(); row.Turn.Stage != turn.Aborted {
		t.Errorf("%+v", row.Turn)
	}
	r.typed("", 0)
}

// Enter would go to whatever the pane holds after the agent's end.
func TestAnAgentThatEndsBetweenPasteAndEnterGetsNoEnter(t *testing.T) { // spec case 42
	r := newRig(t)
	r.agent.rec.Server.Tmux("set-option", "-g", "remain-on-exit", "on")
	r.agent.onDraft = func() {
		inc := r.only().Turn.Process
		if err := syscall.Kill(inc.PID, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Error(err)
		}
		faketmux.Wait(t, "the end of the agent", func() bool { alive, err := procinfo.Alive(inc); return err == nil && !alive }, func() string { return "" })
	}
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.Uncertain || !strings.Contains(res.Turn.Reason, "Enter was not pressed") {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	if rec := faketmux.ParseRecording(r.agent.rec.Bytes()); rec.Submits() != 0 {
		t.Errorf("the pane got %q", rec.Raw)
	}
}

func TestADialogBetweenPasteAndEnterGetsNoEnter(t *testing.T) { // T13
	r := newRig(t)
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
		if s.Composer == agent.ComposerDraft {
			s.State = agent.ScreenApproval
		}
		return s
	}
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.Uncertain || !strings.Contains(res.Turn.Reason, "Enter was not pressed") {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	r.typed("do it", 0)
	if err := r.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	r.typed("", 0)
}

func TestTheSameCallAgainIsAnsweredFromTheRecord(t *testing.T) { // spec case 39
	r := newRig(t)
	r.agent.onDraft = func() { // the agent takes it at once: send need not wait
		if err := r.Observe(t.Context(), r.only().Turn.ID, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n", Source: "rollout"}); err != nil {
			t.Error(err)
		}
	}
	first, err := r.send("do it")
	if err != nil || first.Turn.Stage != turn.Accepted {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := r.send("do it")
	if err != nil || !again.Replayed || again.Turn.ID != first.Turn.ID {
		t.Errorf("%+v %v", again, err)
	}
	other := dispatch.SendInput{CallID: "call:do it", Request: "something else", TerminalID: r.terminal}
	if _, err := r.Send(t.Context(), other); !fault.Is(err, turn.CodeReplay) { // spec case 34
		t.Errorf("another request under the same call: %v", err)
	}
	r.typed("do it", 1)
}

func deliveries(t *testing.T, r *rig) []outbox.Delivery {
	t.Helper()
	var out []outbox.Delivery
	if err := r.db.View(t.Context(), func(tx *store.Tx) (err error) {
		out, err = outboxsql.BySource(tx, outbox.SourceTurn, string(r.only().Turn.ID))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

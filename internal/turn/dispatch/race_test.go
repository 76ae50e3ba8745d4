package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// Both sends have found the terminal idle before either reserves it.
func TestOfTwoSendsAtOneMomentOneWinsAndTheOtherIsToldWhoHoldsIt(t *testing.T) { // spec case 39, M17
	r := newRig(t)
	var both sync.WaitGroup
	both.Add(2)
	r.agent.onScreen = func(n int, s agent.Screen) agent.Screen {
		if n <= 2 {
			both.Done()
			both.Wait()
		}
		return s
	}
	r.agent.onDraft = func() {
		if err := r.Observe(t.Context(), r.only().Turn.ID, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n", Source: "rollout"}); err != nil {
			t.Error(err)
		}
	}
	type answer struct {
		text string
		res  dispatch.SendResult
		err  error
	}
	answers := make(chan answer, 2)
	for _, text := range []string{"first", "second"} {
		go func() {
			res, err := r.send(text)
			answers <- answer{text, res, err}
		}()
	}
	won, lost := <-answers, <-answers
	if won.err != nil {
		won, lost = lost, won
	}
	if won.err != nil || won.res.Turn.Stage != turn.Accepted {
		t.Fatalf("nobody won: %v and %v", won.err, lost.err)
	}
	if _, msg, hint := fault.Public(lost.err); !fault.Is(lost.err, turn.CodeBlocked) || !strings.Contains(msg, string(won.res.Turn.ID)) || hint == "" {
		t.Errorf("the other was told %v", lost.err)
	}
	r.typed(won.text, 1)
}

func TestACallCancelledDuringTheAcceptanceWaitReturnsAtOnceAndTheTurnGoesOn(t *testing.T) { // M19
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	entered := make(chan struct{})
	r.monitors.onEntered = func() { close(entered) }
	type answer struct {
		res dispatch.SendResult
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		res, err := r.Send(ctx, dispatch.SendInput{CallID: "c", Request: "do it", TerminalID: r.terminal})
		answered <- answer{res, err}
	}()
	<-entered // Enter was pressed, nothing proves acceptance yet
	cancel()
	start := time.Now()
	got := <-answered
	if d := time.Since(start); d > 3*time.Second { // acceptWait is 7 s
		t.Errorf("the cancelled call returned after %v", d)
	}
	if got.err != nil || got.res.Turn.Stage != turn.EnterDispatched || got.res.Turn.SubmissionStatus() != turn.SubmissionAcceptance {
		t.Fatalf("%+v %v", got.res.Turn, got.err)
	}
	r.observe(got.res.Turn, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n", Source: "rollout"})
	if row := r.only(); row.Turn.Status != turn.WaitingForAgent || row.Turn.Stage != turn.Accepted {
		t.Errorf("%+v", row.Turn)
	}
	r.typed("do it", 1)
}

// What began is not given up half-way: a call that is cancelled between paste and Enter
// leaves no draft behind.
func TestACallCancelledWhileItTypesStillPressesEnter(t *testing.T) { // M19
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.agent.onDraft = cancel
	res, err := r.Send(ctx, dispatch.SendInput{CallID: "c", Request: "do it", TerminalID: r.terminal})
	if err != nil || res.Turn.Stage != turn.EnterDispatched {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	r.typed("do it", 1)
}

func TestAProfileThatDriftedStopsASendBeforeAnyEffect(t *testing.T) { // spec case 19
	r := newRig(t)
	drift := fault.New("profile_drift", "test", "the Profile changed").WithHint("restart the Bridge")
	r.CheckProfile = func() error { return drift }
	if _, err := r.send("do it"); !errors.Is(err, drift) {
		t.Errorf("%v", err)
	}
	if rows := r.rows(); len(rows) != 0 || r.agent.looks != 0 {
		t.Errorf("%d Turns and %d looks at the terminal", len(rows), r.agent.looks)
	}
	r.typed("", 0)
}

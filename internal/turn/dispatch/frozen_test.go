package dispatch_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// A tmux that hangs while it presses Enter may press it later, or never: the answer is
// uncertain, and nobody presses it again, neither this Bridge nor the next one.
func TestATmuxThatHangsOnEnterIsUncertainAndEnterIsNeverPressedAgain(t *testing.T) { // spec case 38
	r := newRig(t)
	server := r.agent.rec.Server
	pid := server.PID()
	stop := func(sig syscall.Signal) {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Error(err)
		}
	}
	drafts := 0
	r.agent.onDraft = func() {
		if drafts++; drafts == 2 { // the draft is proved with this look; Enter is next
			freeze.Process(t, pid)
		}
	}
	defer stop(syscall.SIGCONT)
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.Uncertain || res.Turn.Status != turn.Stalled || !strings.Contains(res.Turn.Reason, "Enter") {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	stop(syscall.SIGCONT)
	if err := r.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	next, _ := r.bridge("bridge-b", "session-a", server.Socket())
	if err := next.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := next.Send(t.Context(), dispatch.SendInput{CallID: "call:do it", Request: "do it", TerminalID: r.terminal}); err != nil {
		t.Errorf("the same call is answered from the record, it got %v", err)
	}
	rec := r.agent.rec.Finish()
	if len(rec.Pastes) != 1 || rec.Submits() > 1 {
		t.Errorf("the pane got %q", rec.Raw)
	}
	if n := len(deliveries(t, r)); n != 1 {
		t.Errorf("the Host hears of it %d times", n)
	}
}

// slow is an adapter whose evidence does not come.
type slow struct{ *adapter }

func (slow) Identify(ctx context.Context, _ agent.Ref) (agent.Native, error) {
	<-ctx.Done()
	return agent.Native{}, ctx.Err()
}

func TestATerminalWhoseEvidenceHangsIsUnknownAndDelaysNobody(t *testing.T) { // T26
	r := newRig(t)
	r.Scanner = discover.New([]string{r.agent.rec.Server.Socket()}, slow{r.agent})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l, err := r.List(t.Context(), dispatch.ListInput{})
		if err != nil || len(l.Terminals) != 1 || len(l.Scan.Problems) != 1 {
			t.Errorf("%+v %v", l, err)
			return
		}
		if row := l.Terminals[0]; row.State != discover.Unknown || row.Actions["send"].Tool != "" || row.Reason == "" {
			t.Errorf("%+v", row)
		}
		if _, err := r.send("do it"); err == nil {
			t.Error("a task was sent to it")
		}
	}()
	faketmux.Wait(t, "the list", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, func() string { return "it still waits" })
	r.typed("", 0)
}

package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

func TestObservationsReachTheSinkInOrderAndTheMonitorEndsWithItsTurn(t *testing.T) {
	k := newSink()
	s := start(t, "worker", k)
	k.set(errors.New("the store is busy")) // case: not acknowledged, tried again
	if err := s.Watch(t.Context(), spec("turn-1", "complete")); err != nil {
		t.Fatal(err)
	}
	pid := status(s, "turn-1").PID
	k.set(nil)
	if !eventually(func() bool { return len(s.Status()) == 0 }) {
		t.Fatal("the monitor of a finished turn is still wanted")
	}
	got := k.of("turn-1")
	if len(got) != 6 || got[5].Kind != turn.ObsCompleted || got[5].Text != "done" {
		t.Fatalf("the sink has %+v", got)
	}
	for i, o := range got[:5] {
		if o.Detail != fmt.Sprint(i) {
			t.Errorf("observation %d is %q", i, o.Detail)
		}
	}
	if pid == 0 || !eventually(func() bool { return !alive(pid) }) {
		t.Errorf("the monitor %d runs after its turn", pid)
	}
}

func TestAMonitorThatDiedIsReplacedByOneThatKnowsWhatIsStored(t *testing.T) {
	k := newSink()
	s := start(t, "worker", k)
	if err := s.Watch(t.Context(), spec("turn-1", "crash-once "+filepath.Join(t.TempDir(), "crashed"))); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return len(k.of("turn-1")) == 3 }) {
		t.Fatalf("the sink has %+v", k.of("turn-1"))
	}
	want := "accepted=true prompt=A offset=77"
	if o := k.of("turn-1")[2]; o.Kind != turn.ObsCompleted || o.Detail != want {
		t.Errorf("the second monitor observed %s %q, want %q", o.Kind, o.Detail, want)
	}
}

func TestWatchingTheSameRequestKeepsItsMonitorAndAnotherRequestReplacesIt(t *testing.T) {
	s := start(t, "worker", newSink())
	for range 2 {
		if err := s.Watch(t.Context(), spec("turn-1", "idle")); err != nil {
			t.Fatal(err)
		}
	}
	first := status(s, "turn-1")
	if first.PID == 0 || first.State != supervise.StateServing || first.Fingerprint != "sha256:test" || len(s.Status()) != 1 {
		t.Fatalf("status is %+v", s.Status())
	}
	other := spec("turn-1", "idle")
	other.MessageID = "msg-2"
	if err := s.Watch(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if second := status(s, "turn-1"); second.PID == first.PID || second.PID == 0 {
		t.Errorf("the monitor of another request is %+v", second)
	}
	if !eventually(func() bool { return !alive(first.PID) }) {
		t.Error("the first monitor was not ended")
	}
	second := status(s, "turn-1").PID
	s.Forget("turn-1")
	s.Forget("turn-1")
	if !eventually(func() bool { return !alive(second) }) {
		t.Error("the forgotten monitor was not ended")
	}
}

func TestTheMonitorHearsOfEnter(t *testing.T) {
	k := newSink()
	s := start(t, "worker", k)
	if err := s.Watch(t.Context(), spec("turn-1", "entered")); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0).UTC()
	if err := s.Entered(t.Context(), "turn-1", at); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return len(k.of("turn-1")) == 1 }) || !k.of("turn-1")[0].At.Equal(at) {
		t.Errorf("the sink has %+v", k.of("turn-1"))
	}
	if err := s.Entered(t.Context(), "turn-2", at); !fault.Is(err, fault.NotFound) {
		t.Errorf("a turn that nobody watches: %v", err)
	}
}

// The answer would else be lost on the monitor, which would take the same question for one
// that was told.
func TestAMonitorHearsOfAnAnswerThatWasGivenWhileItStarted(t *testing.T) {
	k, hold := newSink(), filepath.Join(t.TempDir(), "hold")
	s := start(t, holdRole+hold, k)
	if err := s.Watch(t.Context(), spec("turn-1", "answered "+hold)); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { _, err := os.Stat(hold + ".waiting"); return err == nil }) {
		t.Fatalf("no second monitor starts; the sink has %+v", k.of("turn-1"))
	}
	if err := s.Answered(t.Context(), "turn-1", "A"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return len(k.of("turn-1")) == 3 }) || k.of("turn-1")[2].Detail != "A was answered: A" {
		t.Errorf("the sink has %+v", k.of("turn-1"))
	}
	if err := s.Answered(t.Context(), "turn-2", "A"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a turn that nobody watches: %v", err)
	}
}

// Case H4 a: a frozen monitor is found and replaced, and nobody else waits for it.
func TestAFrozenMonitorIsFoundWithinTenSecondsWhileOthersWork(t *testing.T) {
	k := newSink()
	s := start(t, "worker", k)
	for _, id := range []string{"turn-1", "turn-2"} {
		if err := s.Watch(t.Context(), spec(id, "idle")); err != nil {
			t.Fatal(err)
		}
	}
	frozen := status(s, "turn-1").PID
	freeze.Process(t, frozen)
	begin := time.Now()

	if err := s.Watch(t.Context(), spec("turn-3", "complete")); err != nil {
		t.Error(err)
	}
	if !eventually(func() bool { return len(k.of("turn-3")) == 6 }) {
		t.Error("another turn does not get on")
	}
	if !eventually(func() bool { return !alive(frozen) }) {
		t.Fatal("the frozen monitor was not ended")
	}
	t.Logf("found and killed after %v", time.Since(begin))
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %v, allowed are 10 s", d)
	}
	if !eventually(func() bool { w := status(s, "turn-1"); return w.State == supervise.StateServing && w.PID != frozen }) {
		t.Errorf("not replaced: %+v", status(s, "turn-1"))
	}
	if w := status(s, "turn-1"); w.Restarts != 1 || w.LastError == "" {
		t.Errorf("status is %+v", w)
	}
	if w := status(s, "turn-2"); w.Restarts != 0 || w.State != supervise.StateServing {
		t.Errorf("the other monitor: %+v", w)
	}
}

// Case H4 b: the same for the callback worker.
func TestAFrozenCallbackWorkerIsReplaced(t *testing.T) {
	s := start(t, "worker", newSink())
	if out, err := s.Deliver(t.Context(), job("done")); err != nil || out.Kind != outbox.Accepted {
		t.Fatalf("%+v, %v", out, err)
	}
	frozen := status(s, "callbacks").PID
	freeze.Process(t, frozen)
	begin := time.Now()
	if _, err := s.Deliver(t.Context(), job("done")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a delivery through a frozen worker: %v", err)
	}
	if !eventually(func() bool { return !alive(frozen) }) {
		t.Fatal("the frozen worker was not ended")
	}
	if d := time.Since(begin); d > 12*time.Second {
		t.Errorf("it took %v", d)
	}
	if !eventually(func() bool { _, err := s.Deliver(t.Context(), job("done")); return err == nil }) {
		t.Errorf("not replaced: %+v", s.Status())
	}
}

// Case H4 c, S04: a worker that says NOT_SERVING gets no work.
func TestAWorkerThatSaysNotServingGetsNoWork(t *testing.T) {
	s := start(t, "sick-callback", newSink())
	for range 3 {
		out, err := s.Deliver(t.Context(), job("done"))
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("it got work: %+v, %v", out, err)
		}
		var cause *fault.Error // below the outer error: why nothing was started
		if !errors.As(errors.Unwrap(err), &cause) || cause.Code != wire.CodeNotServing {
			t.Errorf("the reason is %v, want %s", err, wire.CodeNotServing)
		}
	}
	if w := status(s, "callbacks"); w.PID == 0 {
		t.Errorf("the worker never served, so nothing is tested: %+v", w)
	}
	if !eventually(func() bool { return status(s, "callbacks").Restarts > 0 }) {
		t.Errorf("it is kept: %+v", s.Status())
	}
}

func TestADeliveryWhoseWorkerDiesIsUncertainAndTheNextOneWorks(t *testing.T) {
	s := start(t, "worker", newSink())
	if _, err := s.Deliver(t.Context(), job("die")); !fault.Is(err, wire.CodeUncertain) {
		t.Errorf("the worker died after start: %v", err)
	}
	if !eventually(func() bool { _, err := s.Deliver(t.Context(), job("done")); return err == nil }) {
		t.Errorf("not restarted: %+v", s.Status())
	}
	if w := status(s, "callbacks"); w.Restarts != 1 {
		t.Errorf("status is %+v", w)
	}
}

// Case H4 e: the Bridge ends while a worker is frozen and the sink does not answer.
func TestStopIsBoundedWhateverHangs(t *testing.T) {
	k := newSink()
	k.wait = make(chan struct{})
	s := start(t, "worker", k)
	for _, id := range []string{"turn-1", "turn-2"} {
		if err := s.Watch(t.Context(), spec(id, "idle")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Watch(t.Context(), spec("turn-3", "complete")); err != nil { // the sink holds it
		t.Fatal(err)
	}
	if err := s.WarmCallback(); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return status(s, "callbacks").State == supervise.StateServing }) {
		t.Fatal("no callback worker")
	}
	var pids []int
	for _, w := range s.Status() {
		pids = append(pids, w.PID)
	}
	freeze.Process(t, status(s, "turn-1").PID)
	freeze.Process(t, status(s, "callbacks").PID)
	begin := time.Now()
	err := s.Stop(t.Context())
	if d := time.Since(begin); d > 6*time.Second {
		t.Errorf("Stop took %v", d)
	}
	if !fault.Is(err, fault.Timeout) {
		t.Errorf("a sink that hangs is not told: %v", err)
	}
	for _, pid := range pids {
		if !eventually(func() bool { return !alive(pid) }) {
			t.Errorf("worker %d runs after Stop", pid)
		}
	}
	if err := s.Watch(t.Context(), spec("turn-4", "idle")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a stopped supervisor starts something: %v", err)
	}
	close(k.wait)
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestAMonitorThatDoesNotArmIsAnErrorAndStaysWanted(t *testing.T) {
	s := start(t, "worker", newSink())
	begin := time.Now()
	if err := s.Watch(t.Context(), spec("turn-1", "never-armed")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("error is %v", err)
	}
	if d := time.Since(begin); d > 2*supervise.ArmLimit {
		t.Errorf("it took %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Watch(ctx, spec("turn-1", "never-armed")); !fault.Is(err, fault.Timeout) {
		t.Errorf("a caller that does not wait: %v", err)
	}
	if len(s.Status()) != 1 {
		t.Error("the turn is not wanted any more")
	}
}

func TestAMissingProgramIsSaidAtOnce(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "akks")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	cfg, done, err := config(base, "worker", newSink())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	cfg.Binaries = wire.Binaries{Monitor: "/nowhere/akk-monitor", Callback: "/nowhere/akk-callback"}
	s, err := supervise.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	begin := time.Now()
	if err := s.Watch(t.Context(), spec("turn-1", "idle")); !fault.Is(err, wire.CodeBinary) {
		t.Errorf("monitor: %v", err)
	}
	if _, err := s.Deliver(t.Context(), job("done")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("callback: %v", err)
	}
	if d := time.Since(begin); d > supervise.ArmLimit {
		t.Errorf("it took %v", d)
	}
}

// Case H3 c: 2 s after a SIGKILL of the Bridge no worker is left, stopped ones included.
func TestAKilledBridgeLeavesNoWorker(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "akks")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"=bridge", baseVar+"="+base)
	cmd.Stderr = os.Stderr
	stdin, _ := cmd.StdinPipe()
	defer stdin.Close()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	if err := json.NewDecoder(stdout).Decode(&pids); err != nil || len(pids) != 3 {
		cmd.Process.Kill()
		t.Fatalf("workers %v, %v", pids, err)
	}
	freeze.Process(t, pids[1])
	begin := time.Now()
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		if !eventually(func() bool { return !alive(pid) }) {
			t.Errorf("worker %d outlives its Bridge", pid)
		}
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("it took %v, allowed are 2 s", d)
	}
}

package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

func startMonitor(t *testing.T, o wire.Options, title string) *wire.Monitor {
	t.Helper()
	m, err := wire.StartMonitor(t.Context(), o, handoff(), spec(title))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	return m
}

func next(t *testing.T, m *wire.Monitor, want wire.EventKind) wire.Event {
	t.Helper()
	e, err := m.Next()
	for err == nil && e.Kind == wire.EventHeartbeat && want != wire.EventHeartbeat {
		e, err = m.Next()
	}
	if err != nil || e.Kind != want {
		t.Fatalf("next event is %+v, %v; want kind %d", e, err, want)
	}
	return e
}

func TestAMonitorArmsObservesAndEndsItsStreamInOrder(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "complete")
	next(t, m, wire.EventArmed)
	e := next(t, m, wire.EventObservation)
	if e.Number != 1 || e.Observation.Kind != turn.ObsCompleted || e.Observation.Text != "hello" {
		t.Errorf("observation is %+v", e)
	}
	if err := m.Acknowledge(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := m.Acknowledge(t.Context(), 2); !fault.Is(err, fault.Invalid) {
		t.Errorf("acknowledging what was not sent gives %v", err)
	}
	if _, err := m.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the final observation the stream gives %v, want EOF", err)
	}
	m.Stop()
	if alive(m.PID()) {
		t.Error("the monitor runs after Stop")
	}
}

func TestAMonitorHoldsBackWhatIsNotAcknowledged(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "count")
	next(t, m, wire.EventArmed)
	for i := range wire.MaxUnacknowledged {
		if e := next(t, m, wire.EventObservation); e.Number != uint64(i+1) {
			t.Fatalf("number %d at place %d", e.Number, i+1)
		}
	}
	// It waits for us now, stays healthy meanwhile, and sends nothing but heartbeats.
	if e := next(t, m, wire.EventHeartbeat); !e.Serving {
		t.Error("a monitor that waits for the Bridge calls itself unhealthy")
	}
	for n := uint64(wire.MaxUnacknowledged); ; n++ {
		if err := m.Acknowledge(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		e := next(t, m, wire.EventObservation)
		if e.Observation.Kind == turn.ObsInterrupted {
			if e.Number != 201 {
				t.Errorf("the last number is %d, want 201", e.Number)
			}
			return
		}
	}
}

func TestAMonitorHearsWhenEnterWasPressed(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "entered")
	next(t, m, wire.EventArmed)
	at := time.Unix(1700000000, 42).UTC()
	if err := m.MarkEntered(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if e := next(t, m, wire.EventObservation); !e.Observation.At.Equal(at) {
		t.Errorf("Enter was at %v, the monitor heard %v", at, e.Observation.At)
	}
}

func TestAMonitorHearsWhichPromptWasAnswered(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "answered")
	next(t, m, wire.EventArmed)
	if err := m.MarkAnswered(t.Context(), ""); err == nil {
		t.Error("an answer to no prompt was taken")
	}
	if err := m.MarkAnswered(t.Context(), "fp-1"); err != nil {
		t.Fatal(err)
	}
	if e := next(t, m, wire.EventObservation); e.Observation.Detail != "fp-1" {
		t.Errorf("the monitor heard %q", e.Observation.Detail)
	}
}

func TestAWatchThatEndsBeforeItsTurnIsAnError(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "ends-early")
	next(t, m, wire.EventArmed)
	if _, err := m.Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want a failure", err)
	}
	if err := m.Healthy(t.Context()); !fault.Is(err, wire.CodeNotServing) { // case S04
		t.Errorf("health of a monitor without a watch: %v", err)
	}
}

// Case S04: a loop that makes no progress is NOT_SERVING, in the health service too.
func TestAStuckLoopIsReportedAsNotServing(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "stuck")
	next(t, m, wire.EventArmed)
	for deadline := time.Now().Add(patience); ; {
		if e := next(t, m, wire.EventHeartbeat); !e.Serving {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the loop does not move and the monitor says SERVING")
		}
	}
	if err := m.Healthy(t.Context()); !fault.Is(err, wire.CodeNotServing) {
		t.Errorf("health is %v, want %s", err, wire.CodeNotServing)
	}
}

func TestAWorkerOfAnotherFingerprintRefuses(t *testing.T) {
	o := options(t, "monitor:other-fingerprint")
	if _, err := wire.StartMonitor(t.Context(), o, handoff(), spec("idle")); !fault.Is(err, wire.CodeFingerprint) {
		t.Errorf("monitor: %v, want %s", err, wire.CodeFingerprint)
	}
	o.Env = []string{roleVar + "=callback:other-fingerprint"}
	if _, err := wire.StartCallback(t.Context(), o, handoff()); !fault.Is(err, wire.CodeFingerprint) {
		t.Errorf("callback: %v, want %s", err, wire.CodeFingerprint)
	}
	if l := left(t, o.RunDir.Path()); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

// Cases S06 and a half-updated install: the error says what is wrong.
func TestAProgramThatIsNoWorkerOfOursGivesAClearError(t *testing.T) {
	for _, c := range []struct {
		role string
		code fault.Code
		says string
	}{
		{"monitor:other-program", wire.CodeBinary, "usage: something else"},
		{"monitor:other-version", wire.CodeVersion, "wire version 99"},
		{"monitor:other-release", wire.CodeVersion, `is of release "0.0.1-older"`},
		{"monitor:no-release", wire.CodeVersion, `is of release ""`},
		{"callback", wire.CodeStart, "akk-callback is started by the Bridge"}, // the wrong kind
	} {
		o := options(t, c.role)
		_, err := wire.StartMonitor(t.Context(), o, handoff(), spec("idle"))
		var fe *fault.Error
		if !errors.As(err, &fe) || fe.Code != c.code || !strings.Contains(fe.Msg, c.says) || fe.Hint == "" {
			t.Errorf("%s: %v; want code %s, %q and a hint", c.role, err, c.code, c.says)
		}
		if l := left(t, o.RunDir.Path()); len(l) != 0 {
			t.Errorf("%s: left behind: %v", c.role, l)
		}
	}
}

func TestAMissingProgramGivesAClearError(t *testing.T) {
	o := options(t, "monitor")
	o.Binaries.Monitor = filepath.Join(t.TempDir(), "akk-monitor")
	_, err := wire.StartMonitor(t.Context(), o, handoff(), spec("idle"))
	if !fault.Is(err, wire.CodeBinary) {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(o.Binaries.Monitor, []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = wire.StartMonitor(t.Context(), o, handoff(), spec("idle"))
	if !fault.Is(err, wire.CodeBinary) {
		t.Errorf("not executable by the kernel: %v", err)
	}
	if l := left(t, o.RunDir.Path()); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
	o.Binaries = wire.Binaries{} // next to the test binary there is none
	if err := o.Binaries.Check(); !fault.Is(err, wire.CodeBinary) {
		t.Errorf("default place: %v", err)
	}
}

// Case S06: banners, lines without an end and records that crash go-plugin's own parser.
func TestANoisyWorkerRuns(t *testing.T) {
	for _, role := range []string{"monitor:banner", "monitor:stdout-flood", "monitor:stderr-flood"} {
		var log syncBuffer
		o := options(t, role)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		m, err := wire.StartMonitor(t.Context(), o, handoff(), spec("complete"))
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		next(t, m, wire.EventArmed)
		m.Stop()
		if n := len(log.String()); n > 64<<10 {
			t.Errorf("%s: the worker put %d bytes into the log", role, n)
		}
	}
}

func TestAStartThatNeverFinishesIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o := options(t, "monitor:silent")
	begin := time.Now()
	if _, err := wire.StartMonitor(ctx, o, handoff(), spec("idle")); !fault.Is(err, wire.CodeStart) {
		t.Errorf("error is %v", err)
	}
	if d := time.Since(begin); d > patience/2 {
		t.Errorf("it took %v", d)
	}
	if l := left(t, o.RunDir.Path()); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

// Case S03: go-plugin's Ping and Kill never return for a stopped worker.
func TestAStoppedWorkerIsNoticedAndEnded(t *testing.T) {
	m := startMonitor(t, options(t, "monitor"), "idle")
	next(t, m, wire.EventArmed)
	if err := m.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	freeze.Process(t, m.PID())
	if err := m.Healthy(t.Context()); !fault.Is(err, fault.Timeout) {
		t.Errorf("health of a stopped worker is %v, want %s", err, fault.Timeout)
	}
	begin := time.Now()
	m.Stop()
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("Stop took %v", d)
	}
	eventually(t, "stopped worker reaped", func() bool { return !alive(m.PID()) })
	m.Stop() // a second stop is a no-op
	<-m.Exited()
}

// Cases S07, S12: workers that come and go leave no descriptor, goroutine or socket.
func TestManyWorkersLeaveNothingBehind(t *testing.T) {
	o := options(t, "monitor")
	cycle := func(end func(*wire.Monitor)) {
		m, err := wire.StartMonitor(t.Context(), o, handoff(), spec("idle"))
		if err != nil {
			t.Fatal(err)
		}
		next(t, m, wire.EventArmed)
		end(m)
		<-m.Exited()
	}
	crash := func(m *wire.Monitor) { syscall.Kill(m.PID(), syscall.SIGKILL); m.Stop() }
	cycle((*wire.Monitor).Stop) // what is made once is made now
	fds, routines := len(descriptors(t)), runtime.NumGoroutine()
	for range 4 {
		cycle((*wire.Monitor).Stop)
		cycle((*wire.Monitor).Kill)
		cycle(crash)
	}
	eventually(t, "descriptors and goroutines as before", func() bool {
		return len(descriptors(t)) <= fds+2 && runtime.NumGoroutine() <= routines+5
	})
	if l := left(t, o.RunDir.Path()); len(l) != 0 {
		t.Errorf("left behind: %v", l)
	}
}

func descriptors(t *testing.T) []os.DirEntry {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	return list
}

// The environment of a worker holds no secret, its stdin is /dev/null.
func TestAWorkerInheritsNoSecretAndNoStdin(t *testing.T) {
	t.Setenv("MY_TOKEN", "canary-token")
	t.Setenv("MY_SESSION", "canary-session")
	o := options(t, "callback")
	c, err := wire.StartCallback(t.Context(), o, handoff())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID()))
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	if strings.Contains(string(env), "canary") {
		t.Error("a secret is in the worker's environment")
	}
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID()))
	if strings.Contains(string(args), "canary") {
		t.Error("a secret is in the worker's arguments")
	}
	if fd, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", c.PID())); fd != os.DevNull {
		t.Errorf("stdin of the worker is %q", fd)
	}
	out, err := c.Deliver(t.Context(), job("done"))
	if err != nil || out.AcceptanceID != "canary-session/canary-token/body" {
		t.Errorf("the worker did not get its environment and session: %+v, %v", out, err)
	}
}

func job(kind string) wire.CallbackJob {
	return wire.CallbackJob{
		DeliveryID: "callback-delivery-1", AttemptID: "attempt-1", Attempt: 1, Source: outbox.Source{Kind: "managed_turn", ID: "turn-1"},
		Event: outbox.Event{ID: "msg-1", Type: kind, Body: []byte("body"), Metadata: map[string]string{"a": "b"}},
	}
}

func TestADeliveryThatWasStartedAndLostIsUncertain(t *testing.T) {
	o := options(t, "callback")
	c, err := wire.StartCallback(t.Context(), o, handoff())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	if out, err := c.Deliver(t.Context(), job("done")); err != nil || out.Kind != outbox.Accepted || *out.ExitStatus != 7 {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	if _, err := c.Deliver(t.Context(), wire.CallbackJob{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an empty job gives %v", err)
	}
	if _, err := c.Deliver(t.Context(), job("die")); !fault.Is(err, wire.CodeUncertain) {
		t.Errorf("worker died while the program ran: %v, want %s", err, wire.CodeUncertain)
	}
	if _, err := c.Deliver(t.Context(), job("done")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("worker dead before: %v, want %s", err, fault.Unavailable)
	}
}

// Case H3 c: the Bridge is SIGKILLed; every worker is gone, a stopped one too, and the
// next Bridge sweeps the sockets (case S12).
func TestAKilledBridgeLeavesNoWorker(t *testing.T) {
	base := runBase(t)
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"=bridge", "AKK_WIRE_TEST_BASE="+base)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	if err := json.NewDecoder(stdout).Decode(&pids); err != nil {
		cmd.Process.Kill()
		t.Fatal(err)
	}
	freeze.Process(t, pids[0])
	begin := time.Now()
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("worker %d gone", pid), func() bool { return !alive(pid) })
	}
	d := time.Since(begin)
	t.Logf("all workers gone after %v", d)
	if d > 2*time.Second {
		t.Errorf("workers lived %v after their Bridge, allowed are 2 s", d)
	}
	if len(left(t, base)) < 2 {
		t.Error("the killed Bridge left nothing, so the sweep proves nothing")
	}
	dir, err := wire.OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if l := left(t, base); len(l) != 0 {
		t.Errorf("left after the next start: %v", l)
	}
}

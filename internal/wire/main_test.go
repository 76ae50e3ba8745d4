package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// roleVar makes the re-executed test binary play a worker, or a whole Bridge.
const roleVar = "AKK_WIRE_TEST_ROLE"

// patience bounds every wait of these tests; machines are busy.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role string) error {
	o := wire.ServeOptions{Fingerprint: fingerprint, Log: wire.NewWorkerLog(), Stdout: os.Stdout}
	ctx := context.Background()
	name, how, _ := strings.Cut(role, ":")
	switch how {
	case "other-fingerprint":
		o.Fingerprint = func([]byte) (string, error) { return "sha256:other", nil }
	case "banner":
		fmt.Println("welcome to the wrapper")
	case "stderr-flood":
		flood := bytes.Repeat([]byte("x"), 1<<20)
		for range 20 {
			os.Stderr.Write(flood)
		}
		fmt.Fprintln(os.Stderr, `{"@message":1,"@level":2,"msg":3}`)
	case "stdout-flood":
		os.Stdout.Write(bytes.Repeat([]byte("x"), 100<<10))
		fmt.Println()
	case "other-program":
		fmt.Println("usage: something else")
		return nil
	case "other-version":
		fmt.Println("1|99|unix|/nowhere|grpc|")
		select {}
	case "other-release":
		o.Stdout = io.Discard
		fmt.Println("akk-release 0.0.1-older")
	case "no-release":
		o.Stdout = io.Discard
	case "silent":
		select {}
	}
	switch name {
	case "monitor":
		return wire.ServeMonitor(ctx, watch, o)
	case "callback":
		return wire.ServeCallback(ctx, prepare, o)
	case "bridge":
		return playBridge(ctx)
	}
	return fmt.Errorf("no role %q", role)
}

// watch does what the spec's title says.
func watch(ctx context.Context, spec wire.MonitorSpec, feed *wire.Feed) error {
	if spec.Ref.Title == "never-armed" {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := feed.Emit(turn.Observation{Kind: turn.ObsArmed, At: time.Now()}); err != nil {
		return err
	}
	switch spec.Ref.Title {
	case "complete":
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, At: time.Now(), Text: spec.Pasted})
	case "count":
		for i := range 200 {
			if err := feed.Emit(turn.Observation{Kind: turn.ObsActivity, At: time.Now(), Detail: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return feed.Emit(turn.Observation{Kind: turn.ObsInterrupted, At: time.Now()})
	case "entered":
		at := <-feed.Entered()
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, At: at})
	case "answered":
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, Detail: <-feed.Answered()})
	case "ends-early":
		return nil
	case "stuck": // no Beat
		<-ctx.Done()
		return ctx.Err()
	}
	for {
		feed.Beat()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-feed.Tick():
		}
	}
}

func prepare(h wire.Handoff) (wire.RunFunc, error) {
	return func(ctx context.Context, job wire.CallbackJob) outbox.Outcome {
		switch job.Event.Type {
		case "die":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "hang":
			<-ctx.Done()
		}
		status := 7
		return outbox.Outcome{
			Kind: outbox.Accepted, AcceptanceID: h.ControllerSession + "/" + h.Environment["MY_TOKEN"] + "/" + string(job.Event.Body),
			ExitStatus: &status, At: time.Unix(1, 0).UTC(),
		}
	}, nil
}

func fingerprint(doc []byte) (string, error) {
	s := sha256.Sum256(doc)
	return "sha256:" + hex.EncodeToString(s[:]), nil
}

func handoff() wire.Handoff {
	doc := []byte(`{"id":"test"}`)
	fp, _ := fingerprint(doc)
	return wire.Handoff{
		ProfileDocument: doc, Fingerprint: fp, Selection: "/p.json", Source: "file", Host: "h", HostVersion: "1.0.0",
		Environment: map[string]string{"MY_TOKEN": "canary-token"}, ControllerSession: "canary-session",
	}
}

func spec(title string) wire.MonitorSpec {
	return wire.MonitorSpec{
		TurnID: "turn-1", MessageID: "msg-1", Pasted: "hello",
		Ref: agent.Ref{
			Endpoint: turn.Endpoint{Socket: "/tmp/s", PaneID: "%1", PanePID: 1},
			Process:  turn.Incarnation{PID: os.Getpid(), Birth: "1@x"}, Title: title,
		},
		Anchor: turn.Anchor{Agent: "codex", Channel: turn.ChannelKeyboard},
	}
}

// options starts this test binary as both workers.
func options(tb testing.TB, role string) wire.Options {
	tb.Helper()
	o, done, err := newOptions(runBase(tb), role)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(done)
	return o
}

// runBase is a short private directory: a test's own is too long for a socket.
func runBase(tb testing.TB) string {
	tb.Helper()
	base, err := os.MkdirTemp("/tmp", "akkw")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(base) })
	return base
}

func newOptions(base, role string) (wire.Options, func(), error) {
	dir, err := wire.OpenRunDir(base)
	if err != nil {
		return wire.Options{}, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return wire.Options{}, nil, err
	}
	life, err := proc.NewLifeline()
	if err != nil {
		return wire.Options{}, nil, err
	}
	spawner := proc.NewSpawner()
	done := func() { spawner.Close(); life.Close(); dir.Close() }
	return wire.Options{
		Spawner: spawner, Lifeline: life, RunDir: dir, Log: slog.New(slog.DiscardHandler),
		Binaries: wire.Binaries{Monitor: self, Callback: self}, Env: []string{roleVar + "=" + role},
	}, done, nil
}

// playBridge starts three workers, says their pids and stays.
func playBridge(ctx context.Context) error {
	o, _, err := newOptions(os.Getenv("AKK_WIRE_TEST_BASE"), "monitor")
	if err != nil {
		return err
	}
	var pids []int
	for range 2 {
		m, err := wire.StartMonitor(ctx, o, handoff(), spec("idle"))
		if err != nil {
			return err
		}
		pids = append(pids, m.PID())
	}
	o.Env = []string{roleVar + "=callback"}
	c, err := wire.StartCallback(ctx, o, handoff())
	if err != nil {
		return err
	}
	json.NewEncoder(os.Stdout).Encode(append(pids, c.PID()))
	bufio.NewReader(os.Stdin).ReadByte()
	return nil
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// eventually polls cond until it holds.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			tb.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// alive is false for what is gone and for a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// left lists what lies in a run directory and below.
func left(tb testing.TB, dir string) []string {
	tb.Helper()
	var out []string
	filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err == nil && p != dir {
			out = append(out, p)
		}
		return nil
	})
	return out
}

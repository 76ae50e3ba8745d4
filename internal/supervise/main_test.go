package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/version"
	"github.com/agent-knock-knock/akk/internal/wire"
	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
)

// roleVar makes the re-executed test binary play a worker or a whole Bridge.
const (
	roleVar  = "AKK_SUPERVISE_TEST_ROLE"
	baseVar  = "AKK_SUPERVISE_TEST_BASE"
	patience = 30 * time.Second
)

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
	o := wire.ServeOptions{Fingerprint: func([]byte) (string, error) { return "sha256:test", nil }, Log: wire.NewWorkerLog(), Stdout: os.Stdout}
	// One binary is both workers here: the cookie says which is wanted.
	switch ctx := context.Background(); {
	case role == "bridge":
		return playBridge(ctx)
	case os.Getenv("AKK_WORKER") == "akk-monitor":
		if path, ok := strings.CutPrefix(role, holdRole); ok {
			heldBack(path)
		}
		return wire.ServeMonitor(ctx, watch, o)
	case role == "sick-callback":
		serveSick()
		return nil
	default:
		return wire.ServeCallback(ctx, prepare, o)
	}
}

// holdRole and a path: a monitor that finds the file there says so and does not start until
// it is gone.
const holdRole = "hold:"

func heldBack(path string) {
	if _, err := os.Stat(path); err != nil {
		return
	}
	os.WriteFile(path+".waiting", nil, 0o600)
	eventually(func() bool { _, err := os.Stat(path); return err != nil })
}

// watch does what the spec's title says.
func watch(ctx context.Context, spec wire.MonitorSpec, feed *wire.Feed) error {
	title, file, _ := strings.Cut(spec.Ref.Title, " ")
	if title == "never-armed" {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := feed.Emit(turn.Observation{Kind: turn.ObsArmed, At: time.Now()}); err != nil {
		return err
	}
	switch title {
	case "crash-once": // the file says that it crashed already
		if _, err := os.Stat(file); err != nil {
			feed.Emit(turn.Observation{Kind: turn.ObsAccepted})
			feed.Emit(turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Fingerprint: "A"}})
			os.WriteFile(file, nil, 0o600)
			eventually(func() bool { return feed.Acknowledged() == 2 })
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		detail := fmt.Sprintf("accepted=%v prompt=%s offset=%d", spec.Accepted, spec.OpenPrompt, spec.Anchor.Log.Offset)
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, Detail: detail})
	case "answered": // the file is the one of holdRole: the next monitor starts late
		if spec.OpenPrompt == "" {
			feed.Emit(turn.Observation{Kind: turn.ObsAccepted})
			feed.Emit(turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Fingerprint: "A"}})
			eventually(func() bool { return feed.Acknowledged() == 2 })
			os.WriteFile(file, nil, 0o600)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, Detail: spec.OpenPrompt + " was answered: " + <-feed.Answered()})
	case "complete":
		for i := range 5 {
			feed.Emit(turn.Observation{Kind: turn.ObsActivity, Detail: fmt.Sprint(i)})
		}
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, Text: "done"})
	case "entered":
		return feed.Emit(turn.Observation{Kind: turn.ObsCompleted, At: <-feed.Entered()})
	}
	for tick := time.NewTicker(time.Second); ; {
		feed.Beat()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func prepare(wire.Handoff) (wire.RunFunc, error) {
	return func(ctx context.Context, job wire.CallbackJob) outbox.Outcome {
		switch job.Event.Type {
		case "die":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "hang":
			<-ctx.Done()
		}
		return outbox.Outcome{Kind: outbox.Accepted, AcceptanceID: fmt.Sprint(os.Getpid())}
	}, nil
}

// sick is a worker that is healthy once, and then says NOT_SERVING but would still work.
type sick struct {
	plugin.NetRPCUnsupportedPlugin
	callbackv1.UnimplementedCallbackServiceServer
	checks atomic.Int32
}

func serveSick() {
	s := &sick{}
	proc.WatchLifeline(3, func() { os.Exit(0) })
	fmt.Println("akk-release " + version.Version)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: version.Wire, MagicCookieKey: "AKK_WORKER", MagicCookieValue: "akk-callback"},
		Plugins:         plugin.PluginSet{"akk-callback": s},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.UnaryInterceptor(s.health))...)
		},
	})
}

func (s *sick) health(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if _, ok := req.(*grpc_health_v1.HealthCheckRequest); !ok {
		return next(ctx, req)
	}
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}
	if s.checks.Add(1) == 1 {
		answer.Status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	return answer, nil
}

func (s *sick) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	callbackv1.RegisterCallbackServiceServer(g, s)
	return nil
}

func (*sick) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

func (*sick) Configure(context.Context, *callbackv1.ConfigureRequest) (*callbackv1.ConfigureResponse, error) {
	return &callbackv1.ConfigureResponse{Fingerprint: "sha256:test"}, nil
}

func (*sick) Deliver(s grpc.BidiStreamingServer[callbackv1.DeliverRequest, callbackv1.DeliverResponse]) error {
	for _, m := range []*callbackv1.DeliverResponse{
		{Step: &callbackv1.DeliverResponse_Ready{Ready: &callbackv1.Ready{}}},
		{Step: &callbackv1.DeliverResponse_Outcome{Outcome: &callbackv1.Outcome{Kind: string(outbox.Accepted)}}},
	} {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// sink is a Bridge's store of observations.
type sink struct {
	mu   sync.Mutex
	seen map[ids.SubjectID][]turn.Observation
	fail error
	wait chan struct{} // Observe blocks until it is closed, whatever its context says
}

func newSink() *sink { return &sink{seen: map[ids.SubjectID][]turn.Observation{}} }

func (s *sink) Observe(_ context.Context, id ids.SubjectID, o turn.Observation) error {
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.seen[id] = append(s.seen[id], o)
	return nil
}

func (s *sink) set(err error) { s.mu.Lock(); s.fail = err; s.mu.Unlock() }

func (s *sink) of(id ids.SubjectID) []turn.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]turn.Observation(nil), s.seen[id]...)
}

func spec(id, title string) wire.MonitorSpec {
	return wire.MonitorSpec{
		TurnID: ids.TurnID(id), MessageID: "msg-1",
		Ref: agent.Ref{
			Endpoint: turn.Endpoint{Socket: "/tmp/s", PaneID: "%1", PanePID: 1},
			Process:  turn.Incarnation{PID: os.Getpid(), Birth: "1@x"}, Title: title,
		},
		Anchor: turn.Anchor{Agent: "codex", Log: &turn.LogMark{Path: "/l", Offset: 77}},
	}
}

func job(kind string) wire.CallbackJob {
	return wire.CallbackJob{DeliveryID: "d", AttemptID: "a", Attempt: 1, Event: outbox.Event{ID: "msg-1", Type: kind}}
}

func config(base, role string, k supervise.Sink) (supervise.Config, func(), error) {
	dir, err := wire.OpenRunDir(base)
	if err != nil {
		return supervise.Config{}, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return supervise.Config{}, nil, err
	}
	spawner := proc.NewSpawner()
	return supervise.Config{
		Spawner: spawner, RunDir: dir, Sink: k, Log: slog.New(slog.DiscardHandler),
		Binaries: wire.Binaries{Monitor: self, Callback: self}, Env: []string{roleVar + "=" + role},
		Handoff: wire.Handoff{
			ProfileDocument: []byte("{}"), Fingerprint: "sha256:test", Selection: "p", Source: "file", Host: "h", HostVersion: "1.0.0",
		},
	}, func() { spawner.Close(); dir.Close() }, nil
}

// start returns a Supervisor whose workers are this test binary. It is stopped at the
// test's end, and what it leaves behind is an error.
func start(t *testing.T, role string, k supervise.Sink) *supervise.Supervisor {
	t.Helper()
	return startLogging(t, role, k, slog.DiscardHandler)
}

func startLogging(t *testing.T, role string, k supervise.Sink, log slog.Handler) *supervise.Supervisor {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "akks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	cfg, done, err := config(base, role, k)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = slog.New(log)
	s, err := supervise.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(context.WithoutCancel(t.Context()))
		left, _ := os.ReadDir(cfg.RunDir.Path())
		if len(left) != 0 {
			t.Errorf("left in the run directory: %v", left)
		}
		done()
	})
	return s
}

// playBridge supervises two monitors and the callback worker, says their pids and stays.
func playBridge(ctx context.Context) error {
	cfg, _, err := config(os.Getenv(baseVar), "worker", newSink())
	if err != nil {
		return err
	}
	s, err := supervise.New(ctx, cfg)
	if err != nil {
		return err
	}
	for _, id := range []string{"turn-a", "turn-b"} {
		if err := s.Watch(ctx, spec(id, "idle")); err != nil {
			return err
		}
	}
	if _, err := s.Deliver(ctx, job("done")); err != nil {
		return err
	}
	var pids []int
	for _, w := range s.Status() {
		pids = append(pids, w.PID)
	}
	json.NewEncoder(os.Stdout).Encode(pids)
	os.Stdin.Read(make([]byte, 1))
	return nil
}

func eventually(cond func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
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

func status(s *supervise.Supervisor, serves string) supervise.WorkerStatus {
	for _, w := range s.Status() {
		if w.Serves == serves {
			return w
		}
	}
	return supervise.WorkerStatus{}
}

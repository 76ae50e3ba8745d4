package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/version"
)

// Options says how the Bridge starts a worker. Spawner, Lifeline and RunDir belong to the
// caller and outlive every worker.
type Options struct {
	Spawner  *proc.Spawner
	Lifeline *proc.Lifeline
	Binaries Binaries
	RunDir   *RunDir
	Log      *slog.Logger
	// Env is added to the few variables that every worker gets. Never put a secret here.
	Env []string
}

// worker is one started worker process with its connection, from the Bridge's side.
type worker struct {
	kind    kind
	log     *slog.Logger
	client  *plugin.Client
	process *process
	conn    *grpc.ClientConn
	service string // its name in the health service
	started time.Time
	tmpDir  string // the sockets of this worker

	stop sync.Once
}

// startWorker starts the program and connects. It returns within StartLimit plus
// StopLimit, whatever the program does.
func startWorker(ctx context.Context, o Options, k kind, service string) (*worker, error) {
	path, err := o.Binaries.path(k)
	if err != nil {
		return nil, err
	}
	if err := o.RunDir.ensure(); err != nil {
		return nil, fault.Wrap(err, CodeStart, "wire.start", "cannot make the run directory %s", o.RunDir.Path())
	}
	w := &worker{kind: k, log: o.Log.With("worker", string(k)), service: service, started: time.Now()}
	o.Log = w.log
	w.process = newProcess(o, path, environment(k, o.Env))
	w.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  k.handshake(),
		Plugins:          plugin.PluginSet{string(k): connection{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     StartLimit,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: o.RunDir.Path()},
		Logger:           pluginLogger(w.log),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithStaticStreamWindowSize(windowSize), grpc.WithStaticConnWindowSize(windowSize),
			grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize), grpc.WithSharedWriteBuffer(true),
		},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, tmpDir string) (runner.Runner, error) {
			w.tmpDir = tmpDir
			w.process.cmd.Env = append(w.process.cmd.Env, cmd.Env...)
			return w.process, nil
		},
	})
	connected := make(chan error, 1)
	go func() { connected <- w.connect() }()
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	select {
	case err = <-connected:
	case <-ctx.Done():
		w.process.kill()
		select {
		case <-connected:
		case <-time.After(killLimit):
		}
		err = ctx.Err()
	}
	if err == nil {
		err = w.checkRelease()
	}
	if err != nil {
		w.end(false)
		return nil, w.startError(err)
	}
	return w, nil
}

func (w *worker) connect() error {
	p, err := w.client.Client()
	if err != nil {
		return err
	}
	conn, err := p.Dispense(string(w.kind))
	if err != nil {
		return err
	}
	w.conn = conn.(*grpc.ClientConn)
	return nil
}

// checkRelease refuses a program of another release: only programs that were built
// together are known to mean the same.
func (w *worker) checkRelease() error {
	const op = "wire.start"
	if got := w.process.handshake.release(); got != version.Version {
		return fault.New(CodeVersion, op, "%s is of release %q, this Bridge of %q", w.process.cmd.Path, got, version.Version).
			WithHint("install the three programs of one release together, then restart the Bridge")
	}
	return nil
}

// startError says why a worker did not start, in words for whoever installed it.
func (w *worker) startError(err error) error {
	const op = "wire.start"
	if fault.Is(err, CodeVersion) {
		return err
	}
	var pe *os.PathError
	if errors.As(err, &pe) && w.process.pid() == 0 {
		return fault.Wrap(err, CodeBinary, op, "%s cannot be run", w.process.cmd.Path).
			WithHint("install the three programs of one release together")
	}
	var wire int
	var banner, last string
	if w.process.pid() != 0 {
		wire, banner = w.process.handshake.result()
		last = w.process.lines.tail()
	}
	switch {
	case wire != 0 && wire != version.Wire:
		return fault.Wrap(err, CodeVersion, op, "%s speaks wire version %d, this Bridge %d", w.process.cmd.Path, wire, version.Wire).
			WithHint("install the three programs of one release together")
	case wire == 0 && banner != "":
		return fault.Wrap(err, CodeBinary, op, "%s printed %q in place of a handshake", w.process.cmd.Path, banner).
			WithHint("it must be the %s program itself, of the same release", w.kind)
	case errors.Is(err, context.Canceled):
		return fault.Wrap(err, CodeStart, op, "%s was not needed any more while it started", w.kind)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, CodeStart, op, "%s was not ready in time", w.kind).WithHint("the machine may be overloaded; it is tried again")
	case last != "":
		return fault.Wrap(err, CodeStart, op, "%s did not start; its last line was %q", w.process.cmd.Path, last).
			WithHint("install the three programs of one release together")
	}
	return fault.Wrap(err, CodeStart, op, "%s did not start", w.process.cmd.Path).
		WithHint("install the three programs of one release together")
}

// call runs f with the bound of one small call and gives its error a code.
func (w *worker) call(ctx context.Context, op string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return w.callError(op, f(ctx))
}

func (w *worker) callError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	st, _ := status.FromError(err)
	switch st.Code() {
	case codes.FailedPrecondition:
		return fault.Wrap(err, CodeFingerprint, op, "%s refuses: %s", w.kind, clip(st.Message(), maxTailShown)).
			WithHint("restart the Host Bridge; the three programs must come from one release")
	case codes.InvalidArgument:
		return fault.Wrap(err, fault.Invalid, op, "%s refuses: %s", w.kind, clip(st.Message(), maxTailShown))
	case codes.DeadlineExceeded:
		return fault.Wrap(err, fault.Timeout, op, "%s did not answer in time", w.kind)
	}
	return fault.Wrap(err, CodeLost, op, "%s is lost: %s", w.kind, clip(st.Message(), maxTailShown))
}

// Healthy asks the worker's own health service. A worker that says NOT_SERVING gives
// [CodeNotServing]; one that says nothing in time gives [fault.Timeout].
func (w *worker) Healthy(ctx context.Context) error {
	var answer *grpc_health_v1.HealthCheckResponse
	err := w.call(ctx, "wire.health", func(ctx context.Context) (err error) {
		answer, err = grpc_health_v1.NewHealthClient(w.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: w.service})
		return err
	})
	if err == nil && answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fault.New(CodeNotServing, "wire.health", "%s says that it is not serving", w.kind)
	}
	return err
}

// PID is the worker's process id.
func (w *worker) PID() int { return w.process.pid() }

// Started is when the worker was started.
func (w *worker) Started() time.Time { return w.started }

// Exited is closed when the worker's process has ended and was reaped.
func (w *worker) Exited() <-chan struct{} { return w.process.exited }

// Stop ends the worker: in order when it listens, else by killing its group. It returns
// within StopLimit, with the process gone and reaped. It may be called again.
func (w *worker) Stop() { w.end(true) }

// Kill ends the worker's group at once and releases everything, within killLimit.
func (w *worker) Kill() { w.end(false) }

func (w *worker) end(grace bool) {
	w.stop.Do(func() {
		if !grace {
			w.process.kill()
		}
		done := make(chan struct{})
		go func() { w.client.Kill(); close(done) }() // see cases S02, S03: it may never return
		if grace && !waitFor(done, graceLimit) {
			w.process.kill()
		}
		// go-plugin returns at once for a process that it does not know to run, so ours is
		// asked too.
		ended := waitFor(done, killLimit)
		w.process.kill()
		if w.process.pid() != 0 {
			ended = waitFor(w.process.exited, killLimit) && ended
		}
		if !ended {
			w.log.Error("worker could not be ended in time", "pid", w.process.pid())
		}
		if w.tmpDir != "" {
			os.RemoveAll(w.tmpDir)
		}
	})
}

func waitFor(done <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// connection is the plugin of go-plugin that hands out the connection itself.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the Bridge serves no worker")
}

// bufferSize is small because workers exchange small messages and there are many of them.
const bufferSize = 4 << 10

// windowSize is what may be under way unread. It is set, because otherwise gRPC measures
// the connection with a ping for what it received: each heartbeat, which needs no answer,
// would get two.
const windowSize = 64 << 10

// pluginLogger keeps go-plugin's own lines for debugging only. It calls every kill an
// error, and a kill is what we ordered; what matters of its failures is returned by the
// functions above.
func pluginLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Warn})
	l.RegisterSink(pluginSink{log})
	return l
}

type pluginSink struct{ log *slog.Logger }

func (s pluginSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	if level >= hclog.Warn {
		s.log.Debug("go-plugin: "+msg, args...)
	}
}

// afterFunc calls f after d unless the returned function is called first; that one says
// whether it came first.
func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

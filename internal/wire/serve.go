package wire

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/version"
)

// ServeOptions is what a worker's main gives.
type ServeOptions struct {
	// Fingerprint parses a profile document and computes its fingerprint.
	Fingerprint func(document []byte) (string, error)
	// Log goes to the process's first stderr; see [NewWorkerLog].
	Log *slog.Logger
	// Stdout is the process's own: the Bridge reads the release there, before the handshake.
	Stdout io.Writer
}

// The bounds of a worker's end. Together they stay under the grace of the Bridge's side.
const (
	drainLimit = 300 * time.Millisecond // what runs may finish or clean up
	exitLimit  = time.Second            // after that the process ends whatever it does
)

// NewWorkerLog logs to the stderr that the Bridge reads. It must be made before Serve:
// go-plugin replaces os.Stderr by a pipe with back-pressure.
func NewWorkerLog() *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// server is the part of a worker's side that both kinds share.
type server struct {
	kind   kind
	opts   ServeOptions
	health *healthState
	group  *lifecycle.Group // owns everything that runs for the Bridge

	mu         sync.Mutex
	configured bool
	handoff    Handoff
	grpc       *grpc.Server
	ending     bool
}

func newServer(ctx context.Context, k kind, service string, o ServeOptions) *server {
	return &server{kind: k, opts: o, health: newHealthState(service), group: lifecycle.NewGroup(ctx)}
}

// serve serves until the Bridge says so, is gone, or SIGTERM came.
func (s *server) serve(register func(*grpc.Server)) error {
	h := s.kind.handshake()
	if os.Getenv(h.MagicCookieKey) != h.MagicCookieValue {
		return fault.New(fault.Invalid, "wire.serve", "%s is started by the Bridge and does nothing by hand", s.kind).
			WithHint("run agent-knock-knock host-bridge")
	}
	if _, err := fmt.Fprintf(s.opts.Stdout, "%s%s\n", releaseLine, version.Version); err != nil {
		return fault.Wrap(err, fault.Unavailable, "wire.serve", "the Bridge does not read")
	}
	proc.WatchLifeline(lifelineFD, func() { s.end("the Bridge is gone") })
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(term)
	go func() {
		if _, ok := <-term; ok {
			s.end("asked to end")
		}
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: h,
		Plugins:         plugin.PluginSet{string(s.kind): service{register: register}},
		GRPCServer:      s.newGRPC,
		Logger:          servedLogger(s.opts.Log),
	})
	s.end("the Bridge said so")
	s.drain()
	return nil
}

func (s *server) newGRPC(opts []grpc.ServerOption) *grpc.Server {
	opts = append(opts,
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(windowSize), grpc.StaticConnWindowSize(windowSize),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize), grpc.SharedWriteBuffer(true),
		grpc.UnaryInterceptor(s.health.unary), grpc.StreamInterceptor(s.health.stream))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grpc = grpc.NewServer(opts...)
	return s.grpc
}

// end stops everything once: work is cancelled and gets drainLimit, then serve returns.
// If anything of that hangs, the process ends after exitLimit all the same.
func (s *server) end(why string) {
	s.mu.Lock()
	again := s.ending
	s.ending = true
	g := s.grpc
	s.mu.Unlock()
	if again {
		return
	}
	time.AfterFunc(exitLimit, func() { os.Exit(1) })
	s.health.shutdown()
	s.group.Cancel()
	go func() {
		s.drain()
		if g != nil {
			g.Stop()
		}
	}()
	s.opts.Log.Debug("worker ends", "why", why) // may be the last thing it does: nobody may read
}

// drain waits for what runs, at most drainLimit.
func (s *server) drain() {
	done := make(chan struct{})
	go func() { s.group.Stop(); close(done) }()
	waitFor(done, drainLimit)
}

func (s *server) configure(h Handoff) (string, error) {
	return s.configureWith(h, func() error { return nil })
}

// configureWith proves that worker and Bridge mean the same profile, then runs prepare.
// It succeeds once.
func (s *server) configureWith(h Handoff, prepare func() error) (fingerprint string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configured {
		return "", status.Error(codes.Aborted, "the worker is configured already")
	}
	if err := h.check(); err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	got, err := s.opts.Fingerprint(h.ProfileDocument)
	if err != nil {
		_, msg, _ := fault.Public(err)
		return "", status.Errorf(codes.FailedPrecondition, "the profile document is not valid here: %s", msg)
	}
	if got != h.Fingerprint {
		return "", status.Errorf(codes.FailedPrecondition, "the profile fingerprint is %s here and %s at the Bridge", got, h.Fingerprint)
	}
	if err := prepare(); err != nil {
		return "", err
	}
	s.configured, s.handoff = true, h
	if !s.ending {
		s.health.set(true)
	}
	return got, nil
}

// ready returns the handoff when work may be taken.
func (s *server) ready() (Handoff, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.configured:
		return Handoff{}, status.Error(codes.Aborted, "the worker is not configured")
	case s.ending:
		return Handoff{}, status.Error(codes.Unavailable, "the worker is ending")
	}
	return s.handoff, nil
}

// service is the plugin of go-plugin that registers our own service.
type service struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

func (p service) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error { p.register(s); return nil }

func (service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fault.New(fault.Internal, "wire.serve", "a worker is no client")
}

// servedLogger keeps the errors of go-plugin's server side: they explain a failed start.
func servedLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Error})
	l.RegisterSink(servedSink{log})
	return l
}

type servedSink struct{ log *slog.Logger }

func (s servedSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	if level >= hclog.Error {
		s.log.Error("go-plugin: "+msg, args...)
	}
}

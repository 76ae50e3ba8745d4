package harnessserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/version"
)

// ProtocolVersion is what a compatible server answers to ping.
const ProtocolVersion = 4

// Waits of the HTTP server.
const (
	headerLimit   = 10 * time.Second
	bodyLimit     = time.Minute
	idleLimit     = time.Minute
	drainLimit    = time.Second     // for answers that are being written at the end
	shutdownLimit = 8 * time.Second // for agents to end; a supervisor waits 10 s
	// A server whose supervisor died ends within 2 s, whatever its agents do.
	hurriedDrain    = 200 * time.Millisecond
	hurriedShutdown = 700 * time.Millisecond
)

// Options of a server.
type Options struct {
	Config     config.Config
	ConfigPath string // of the file that was read, "" for none
	Launcher   sessions.Launcher
	// Lifeline, when not nil, ends the server at its EOF: who started it is gone.
	Lifeline io.Reader
	Log      *slog.Logger
	// Ready, when not nil, is called once with the address when the server answers.
	Ready func(addr string)
}

// Server answers the API.
type Server struct {
	opts        Options
	gate        gate
	ops         map[string]operation
	sessions    *sessions.Service
	addr        string
	fingerprint string
	startedAt   time.Time
	stop        context.CancelCauseFunc
}

var (
	errAsked    = errors.New("asked to end")
	errLifeline = errors.New("who started the server is gone")
)

// Run serves until ctx ends, the lifeline ends or a client asks for the end; then it ends
// every agent and returns nil. Order of the start: state directory, its lock, port,
// database, token, answers. A second server on the same directory gets
// server_already_running.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir := o.Config.StateDir
	if err := prepareDir(dir); err != nil {
		return err
	}
	var patience time.Duration
	if o.Lifeline != nil { // the one before may be ending
		patience = lockPatience
	}
	lock, err := lockDir(ctx, dir, patience)
	if err != nil {
		return err
	}
	defer lock.Close()
	listener, err := listen(o.Config.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	db, err := store.OpenFile(ctx, config.DatabaseFile(dir), store.Options{Sets: []store.Set{harnesssql.Tables()}})
	if err != nil {
		return err
	}
	defer db.Close()
	return serve(ctx, o, lock, listener, db)
}

func listen(addr string) (net.Listener, error) {
	place, err := config.Loopback(addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", place.String())
	if err != nil {
		return nil, harness.Fail(err, fault.Unavailable, "the address %s cannot be listened on: %v", place, rootCause(err)).
			Advise("end what uses it, or set listen")
	}
	return l, nil
}

func rootCause(err error) error {
	var se *os.SyscallError
	if errors.As(err, &se) {
		return se.Err
	}
	return err
}

func serve(ctx context.Context, o Options, lock *os.File, listener net.Listener, db *store.DB) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &Server{opts: o, addr: listener.Addr().String(), startedAt: time.Now().UTC().Truncate(time.Second), stop: stop}
	var err error
	if s.fingerprint, err = o.Config.Fingerprint(); err != nil {
		return err
	}
	token := secret()
	_, port, _ := net.SplitHostPort(s.addr) // our own listener's address has a port
	s.gate = newGate(port, o.Config.AllowedHosts, o.Config.AllowedOrigins, token, !o.Config.RequireToken)
	if err := record(lock, Holder{PID: os.Getpid(), StartedAt: s.startedAt, BootID: bootID(), Address: s.addr, Nonce: secret()[:16]}); err != nil {
		return harness.Fail(err, fault.Internal, "the lock file cannot be written: %v", rootCause(err))
	}
	if err := writeToken(o.Config.StateDir, token); err != nil {
		return harness.Fail(err, fault.Internal, "the token file cannot be written: %v", rootCause(err))
	}
	// The sessions end in an order of their own, after the listener.
	if s.sessions, err = sessions.New(context.WithoutCancel(ctx), db, sessions.Options{Config: o.Config, Launcher: o.Launcher, Log: o.Log}); err != nil {
		return err
	}
	s.ops = s.operations()
	if o.Lifeline != nil {
		go func() { // ends with the process: a read of a pipe cannot be taken back
			_, _ = io.Copy(io.Discard, o.Lifeline)
			stop(errLifeline)
		}()
	}
	return s.loop(ctx, listener)
}

func (s *Server) loop(ctx context.Context, listener net.Listener) error {
	// Requests end with work, which ends before the drain begins: a long-poll must not
	// hold the server open.
	work, endWork := context.WithCancel(ctx)
	defer endWork()
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerLimit,
		ReadTimeout:       bodyLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return work },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	s.opts.Log.Info("the harness server answers", "address", s.addr, "pid", os.Getpid(), "state_dir", s.opts.Config.StateDir)
	if s.opts.Ready != nil {
		s.opts.Ready(s.addr)
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.opts.Log.Info("the harness server ends", "reason", context.Cause(ctx))
	}
	endWork()
	forAnswers, forAgents := drainLimit, shutdownLimit
	if errors.Is(context.Cause(ctx), errLifeline) {
		forAnswers, forAgents = hurriedDrain, hurriedShutdown
	}
	base := context.WithoutCancel(ctx)
	drain, endDrain := context.WithTimeout(base, forAnswers)
	defer endDrain()
	if web.Shutdown(drain) != nil {
		_ = web.Close() // what still writes is cut off
	}
	agents, endAgents := context.WithTimeout(base, forAgents)
	defer endAgents()
	s.sessions.Close(agents)
	return err
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, isAPI := strings.CutPrefix(r.URL.Path, "/api/")
	op, known := s.ops[name]
	// Without the token nobody learns which operations exist.
	if err := s.gate.check(r, !known || !op.public); err != nil {
		reply(w, nil, err)
		return
	}
	if !isAPI || !known {
		reply(w, nil, harness.Refuse(harness.UnsupportedOperation, "there is no operation at %s", strconv.Quote(r.URL.Path)))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		reply(w, nil, err)
		return
	}
	data, err := op.call(r.Context(), body)
	if fault.CodeOf(err) == fault.Internal {
		s.opts.Log.Error("an operation failed", "operation", name, "error", err)
	}
	reply(w, data, err)
}

type pong struct {
	Status      string    `json:"status"`
	Protocol    int       `json:"protocol_version"`
	PID         int       `json:"pid"`
	Uptime      int64     `json:"uptime_seconds"`
	Sessions    int       `json:"sessions"`
	Fingerprint string    `json:"config_fingerprint"`
	StartedAt   time.Time `json:"started_at"`
	Version     string    `json:"version"`
	Listen      string    `json:"listen"`
	StateDir    string    `json:"state_dir"`
	ConfigPath  string    `json:"config_path,omitempty"`
	Token       bool      `json:"token_required"`
	Features    []string  `json:"features"`
}

// features name what this server has beyond the common operations.
var features = []string{"wait_ms", "events", "list_sessions", "reopen_session", "mcp_servers"}

func (s *Server) ping(_ context.Context, _ struct{}) (any, error) {
	return pong{Status: "ok", Protocol: ProtocolVersion, PID: os.Getpid(), Uptime: int64(time.Since(s.startedAt).Seconds()), Sessions: s.sessions.Live(),
		Fingerprint: s.fingerprint, StartedAt: s.startedAt, Version: version.Version, Listen: s.addr, StateDir: s.opts.Config.StateDir,
		ConfigPath: s.opts.ConfigPath, Token: s.opts.Config.RequireToken, Features: features}, nil
}

// shutdown ends the server after its answer.
func (s *Server) shutdown(_ context.Context, _ struct{}) (any, error) {
	time.AfterFunc(25*time.Millisecond, func() { s.stop(errAsked) })
	return map[string]any{"status": "stopping"}, nil
}

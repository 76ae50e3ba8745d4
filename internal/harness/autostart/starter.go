package autostart

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/logkeeper"
	"github.com/agent-knock-knock/akk/internal/redact"
)

const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 50 * time.Millisecond
	// settleLimit bounds what comes after a start that did not work.
	settleLimit = 15 * time.Second
	maxTail     = 8 << 10
)

// Starter brings the server of one client's settings to life.
type Starter struct {
	Settings client.Settings
	Client   *client.Client
	Self     string   // the path of this program
	Env      []string // of this process
	Log      *slog.Logger
}

// Found is a server that answers.
type Found struct {
	client.Pong
	Started bool // by us, just now; otherwise it is reused
}

// Ensure returns the server of the address, and starts it when nothing listens there and
// the settings and the address allow it. A server of another kind or protocol is refused
// and left alone.
func (s *Starter) Ensure(ctx context.Context) (Found, error) {
	pong, err := s.ping(ctx)
	if err == nil {
		s.adopt(pong)
		return Found{Pong: pong}, nil
	}
	if !client.Unsent(err) || fault.Is(err, client.Cancelled) {
		return Found{}, err
	}
	switch {
	case !s.Settings.Loopback() && s.Settings.AutoStart:
		return Found{}, harness.Fail(err, client.RemoteAutostartRefused, "nothing answers at %s, and a server is only ever started on this machine", s.Settings.Key()).
			Advise("start it there, or use a loopback address")
	case !client.Absent(err):
		return Found{}, err
	case !s.Settings.AutoStart:
		return Found{}, harness.Fail(err, client.AutostartDisabled, "nothing listens at %s and autostart is off", s.Settings.Key()).
			Advise("start `agent-knock-knock harness serve`, or switch autostart on")
	case s.Settings.BaseURL.Scheme != "http" || s.Settings.BaseURL.Path != "":
		return Found{}, harness.Fail(err, client.RemoteAutostartRefused, "nothing listens at %s, and only a plain http address without a path can be started", s.Settings.Key())
	}
	return s.start(ctx)
}

// ping asks once more when the connection broke: a server that ends resets connections.
func (s *Starter) ping(ctx context.Context) (client.Pong, error) {
	pong, err := s.Client.Ping(ctx)
	if fault.Is(err, client.ServerUnreachable) && !client.Unsent(err) {
		return s.Client.Ping(ctx)
	}
	return pong, err
}

// start serializes starts of one address, looks again, and starts a server.
func (s *Starter) start(ctx context.Context) (Found, error) {
	dir := s.Settings.ClientDir
	if err := logkeeper.PrivateDir(dir); err != nil {
		return Found{}, s.failed(err, "the client directory cannot be used", 0, "")
	}
	lock, err := logkeeper.OpenPrivate(filepath.Join(dir, s.fileName()+".lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return Found{}, s.failed(err, "the start lock cannot be opened", 0, "")
	}
	defer lock.Close()
	waiting, stop := context.WithTimeout(ctx, s.Settings.StartupTimeout+settleLimit)
	defer stop()
	if err := await(waiting, lock); err != nil {
		if ctx.Err() != nil {
			return Found{}, harness.Fail(context.Cause(ctx), client.Cancelled, "the start was not waited for")
		}
		return Found{}, harness.Fail(err, harness.StartupTimeout, "another client has been starting this server for too long").Advise("try again")
	}
	pong, err := s.ping(ctx)
	if err == nil {
		s.adopt(pong)
		return Found{Pong: pong}, nil
	}
	if !client.Absent(err) {
		return Found{}, err
	}
	return s.launch(ctx)
}

func (s *Starter) launch(ctx context.Context) (Found, error) {
	env := serverEnv(s.Env)
	e, err := resolve(s.Settings, s.Self)
	if err == nil {
		err = e.prove(ctx, env)
	}
	if err != nil {
		s.Log.Error("the server cannot be started", "err", err)
		return Found{}, err
	}
	sweep(s.Settings.ClientDir)
	nonce := newNonce()
	l := &launch{starter: s, nonce: nonce, entry: e, log: filepath.Join(s.Settings.ClientDir, "server-"+s.fileName()+".log")}
	if info, err := os.Stat(l.log); err == nil {
		l.from = info.Size()
	}
	if err := l.spawn(env); err != nil {
		return Found{}, s.failed(err, "the supervisor cannot be started", 0, l.log)
	}
	s.Log.Info("starting a harness server", "address", s.Settings.Key(), "entry", e.from)
	return l.await(ctx)
}

// launch is one start.
type launch struct {
	starter *Starter
	nonce   string
	entry   entry
	log     string
	from    int64 // where the log of this start begins

	cmd  *exec.Cmd
	gone chan struct{} // closed when the supervisor ended
}

// spawn starts the supervisor in a session of its own: no signal of our terminal and no end
// of ours reaches it. What it shall do goes through its stdin.
func (l *launch) spawn(env []string) error {
	s := l.starter
	argv := []string{l.entry.path, "harness", "serve", "--supervised", "--listen", s.listen()}
	if s.Settings.ConfigPath != "" {
		argv = append(argv, "--config", s.Settings.ConfigPath)
	}
	order, err := json.Marshal(logkeeper.Order{Nonce: l.nonce, Dir: s.Settings.ClientDir, Log: filepath.Base(l.log), Argv: argv, Name: ownName, Env: env})
	if err != nil {
		return err
	}
	l.cmd = exec.Command(s.Self, "harness", "supervise")
	l.cmd.Args[0] = ownName
	l.cmd.Env, l.cmd.Dir = env, s.Settings.ClientDir
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return err
	}
	l.gone = make(chan struct{})
	go func() { // ends with the supervisor; when we end first it goes on alone
		_ = l.cmd.Wait() // the log says why it ended
		close(l.gone)
	}()
	_, err = stdin.Write(order)
	if closeErr := stdin.Close(); err == nil {
		err = closeErr
	}
	return err
}

// await waits until a compatible server answers, and finds out whose it is.
func (l *launch) await(ctx context.Context) (Found, error) {
	s := l.starter
	limit := time.NewTimer(s.Settings.StartupTimeout)
	defer limit.Stop()
	wait := firstPoll
	for {
		pong, err := s.Client.Ping(ctx)
		switch {
		case err == nil:
			return l.claim(ctx, pong)
		case client.Slow(err): // it listens before its database is open
		case fault.Is(err, client.IncompatibleServer):
			l.stop()
			return Found{}, err
		}
		timer := time.NewTimer(wait)
		wait = min(2*wait, lastPoll)
		select {
		case <-timer.C:
			continue
		case <-l.gone:
			timer.Stop()
			return l.afterEnd(ctx)
		case <-limit.C:
			timer.Stop()
			l.stop()
			return Found{}, l.starter.failedCode(nil, harness.StartupTimeout, "the server did not answer within "+s.Settings.StartupTimeout.String(), l.from, l.log)
		case <-ctx.Done():
			timer.Stop()
			// The start goes on: the next call finds the server.
			return Found{}, harness.Fail(context.Cause(ctx), client.Cancelled, "the start was not waited for")
		}
	}
}

// afterEnd looks once more when our supervisor ended: another client's server may have taken
// the address first.
func (l *launch) afterEnd(ctx context.Context) (Found, error) {
	pong, err := l.starter.Client.Ping(ctx)
	if err == nil {
		return Found{Pong: pong}, nil
	}
	if fault.Is(err, client.IncompatibleServer) {
		return Found{}, err
	}
	return Found{}, l.starter.failed(nil, "the server ended before it answered", l.from, l.log)
}

// claim decides whether the server that answers is the one that we started. The proof is
// its pid together with the file that only our supervisor could write.
func (l *launch) claim(ctx context.Context, pong client.Pong) (Found, error) {
	s := l.starter
	proof, ok := l.proof(ctx)
	if !ok || proof.ServerPID != pong.PID || proof.SupervisorPID != l.cmd.Process.Pid {
		if l.lost(ctx) {
			s.Log.Info("another client's server is reused", "pid", pong.PID)
			return Found{Pong: pong}, nil
		}
		l.stop() // ours runs beside the one that answers
		if !l.entry.own {
			return Found{}, s.failed(nil, "the server that answers is not the process that was started", l.from, l.log)
		}
		return Found{Pong: pong}, nil
	}
	r := record{ServerPID: proof.ServerPID, SupervisorPID: proof.SupervisorPID, LogPath: l.log, NonceHash: hashed(l.nonce), Entry: l.entry.path, StartedAt: time.Now().UTC()}
	if err := register(s.Settings.ClientDir, s.Settings.Key(), r); err != nil {
		s.Log.Warn("the registry of servers cannot be written", "err", err)
	}
	return Found{Pong: pong, Started: true}, nil
}

// proof waits for the file that the supervisor writes once its server runs.
func (l *launch) proof(ctx context.Context) (logkeeper.Proof, bool) {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	tick := time.NewTicker(firstPoll)
	defer tick.Stop()
	for {
		if p, ok := logkeeper.ReadProof(l.starter.Settings.ClientDir, l.nonce); ok {
			return p, true
		}
		select {
		case <-tick.C:
		case <-l.gone:
			return logkeeper.Proof{}, false
		case <-limit.C:
			return logkeeper.Proof{}, false
		case <-ctx.Done():
			return logkeeper.Proof{}, false
		}
	}
}

// lost waits a moment for our own server to give up because another has its address.
func (l *launch) lost(ctx context.Context) bool {
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-l.gone:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// stop ends the supervisor that this launch started, and with it its server.
func (l *launch) stop() {
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(settleLimit)
	defer timer.Stop()
	select {
	case <-l.gone:
	case <-timer.C:
		_ = l.cmd.Process.Kill()
		<-l.gone
	}
}

func (s *Starter) failed(cause error, why string, from int64, log string) error {
	return s.failedCode(cause, client.StartupFailed, why, from, log)
}

// failedCode says why a start did not work, with the end of the log of this start.
func (s *Starter) failedCode(cause error, code fault.Code, why string, from int64, log string) error {
	d := harness.Detail{}
	if log != "" {
		d["log_path"] = log
		if tail := tailOf(log, from); tail != "" {
			d["log_tail"] = tail
		}
	}
	return harness.Fail(cause, code, "the harness server could not be started: %s", why).Advise("read log_tail; nothing else was tried").With(d)
}

// tailOf reads the end of the log behind from. The log is masked already; it is masked once
// more because it is a file.
func tailOf(path string, from int64) string {
	f, err := logkeeper.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		if info.Size() < from { // it was put aside
			from = 0
		}
		from = max(from, info.Size()-maxTail)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if err != nil {
		return ""
	}
	b = redact.Bytes(b)
	return strings.ToValidUTF8(string(bytes.TrimSpace(b[max(0, len(b)-maxTail):])), "\uFFFD")
}

// listen is the address that the server is told.
func (s *Starter) listen() string {
	host, port := s.Settings.BaseURL.Hostname(), s.Settings.BaseURL.Port()
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(host, port)
}

// fileName is the address in the names of files.
func (s *Starter) fileName() string {
	return strings.NewReplacer(":", "_", "[", "", "]", "", "%", "_").Replace(s.listen())
}

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}

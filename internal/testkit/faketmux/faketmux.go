// Package faketmux gives tests a real tmux server of their own: private socket, no
// configuration, gone at the end of the test. Nothing about tmux is faked; what is fake
// are the programs in the panes, above all a [Recorder], which notes every byte it gets.
//
// Only tests import it.
package faketmux

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Patience bounds every wait for a condition; it is long because machines are loaded.
const Patience = 20 * time.Second

const pollEvery = 15 * time.Millisecond

// Server is a private tmux server.
type Server struct {
	tb     testing.TB
	socket string
	argv   []string // tmux and its global flags
	tmpdir string   // TMUX_TMPDIR of its clients, "" for none
	pid    int
	mu     sync.Mutex
}

// New prepares a server on a private socket with a short path. It starts with the first
// pane and is killed when the test ends. Without tmux the test is skipped.
func New(tb testing.TB) *Server {
	tb.Helper()
	dir := ShortDir(tb)
	return newServer(tb, filepath.Join(dir, "s"), "", "-S", filepath.Join(dir, "s"))
}

// NewNamed prepares a server as `tmux -L name` makes it, with TMUX_TMPDIR set to dir. The
// name "default" gives the default socket of that directory.
func NewNamed(tb testing.TB, dir, name string) *Server {
	tb.Helper()
	socket := filepath.Join(dir, "tmux-"+strconv.Itoa(os.Geteuid()), name)
	return newServer(tb, socket, dir, "-L", name)
}

func newServer(tb testing.TB, socket, tmpdir string, flags ...string) *Server {
	tb.Helper()
	path, err := exec.LookPath("tmux")
	if err != nil {
		tb.Skip("skipped: no tmux on PATH, and this test drives a real one")
	}
	s := &Server{tb: tb, socket: socket, tmpdir: tmpdir, argv: append([]string{path, "-u", "-f", "/dev/null"}, flags...)}
	tb.Cleanup(s.Kill)
	return s
}

// ShortDir is a directory for sockets, whose paths must be short; it is removed when the
// test ends.
func ShortDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "akkt")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Socket is the absolute path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Client is the product's view of the server.
func (s *Server) Client() tmux.Server { return tmux.At(s.socket) }

// PID is the process of the server, 0 before its first pane.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// Try runs one tmux command on this server, past the product.
func (s *Server) Try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.tb.Context(), Patience)
	defer cancel()
	return s.try(ctx, args...)
}

func (s *Server) try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.argv[0], append(s.argv[1:len(s.argv):len(s.argv)], args...)...)
	cmd.Env = s.env()
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// Tmux is Try that ends the test on failure.
func (s *Server) Tmux(args ...string) string {
	s.tb.Helper()
	out, err := s.Try(args...)
	if err != nil {
		s.tb.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return out
}

// env is the environment of clients and so of the server and its panes: this process's
// own, without what would lead to another tmux.
func (s *Server) env() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "TMUX") && name != "LANG" && !strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	env = append(env, "LANG=C.UTF-8", "TERM=xterm-256color")
	if s.tmpdir != "" {
		env = append(env, "TMUX_TMPDIR="+s.tmpdir)
	}
	return env
}

// Kill ends the server at once, as a crash would, and waits for its end. Panes may be
// started again afterwards, in a new server on the same socket.
func (s *Server) Kill() {
	s.mu.Lock()
	pid := s.pid
	s.pid = 0
	s.mu.Unlock()
	if pid == 0 {
		return
	}
	syscall.Kill(pid, syscall.SIGKILL)
	// The server is nobody's child here, so its end is seen on the socket.
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if syscall.Kill(pid, 0) != nil || s.refused() {
			return
		}
		<-time.After(pollEvery)
	}
	s.tb.Errorf("tmux server %d did not end", pid)
}

func (s *Server) refused() bool {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return syscall.Connect(fd, &syscall.SockaddrUnix{Name: s.socket}) != nil
}

// Spec says what runs in a new pane. The zero value is a pane of 120x40 that runs cat.
type Spec struct {
	Argv   []string
	Env    []string // added to the test's own
	Dir    string
	Width  int // of the window
	Height int
	Remain bool   // the pane stays, dead, when its program ends
	Name   string // session name; with it the pane gets a session of its own
}

// Pane is one pane of a test's server.
type Pane struct {
	Server *Server
	ID     string
	PID    int
}

// Run starts a pane in a window of its own.
func (s *Server) Run(spec Spec) *Pane {
	s.tb.Helper()
	argv := spec.Argv
	if len(argv) == 0 {
		argv = []string{"cat", "-"} // two words: tmux gives a single one to a shell
	}
	args := []string{"new-session", "-d", "-x", strconv.Itoa(orElse(spec.Width, 120)), "-y", strconv.Itoa(orElse(spec.Height, 40))}
	if spec.Name != "" {
		args = append(args, "-s", spec.Name)
	}
	args = append(args, "-P", "-F", "#{pane_id} #{pane_pid} #{pid}", "-c", strings.ReplaceAll(orElse(spec.Dir, "/"), "#", "##"))
	for _, kv := range spec.Env {
		args = append(args, "-e", kv)
	}
	args = append(append(args, "--"), argv...)
	if spec.Remain {
		args = append([]string{"set-option", "-g", "remain-on-exit", "on", ";"}, args...)
	}
	f := strings.Fields(s.Tmux(args...))
	if len(f) != 3 {
		s.tb.Fatalf("tmux printed %q for a new pane", f)
	}
	p := &Pane{Server: s, ID: f[0]}
	p.PID, _ = strconv.Atoi(f[1])
	s.mu.Lock()
	s.pid, _ = strconv.Atoi(f[2])
	s.mu.Unlock()
	p.awaitExec()
	return p
}

// awaitExec waits until the pane's process is the program it was started for. Until then
// it is a copy of the server, and for an instant of its exec it has no arguments at all.
func (p *Pane) awaitExec() {
	server := cmdline(p.Server.PID())
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if now := cmdline(p.PID); now != server && (now != "" || p.ended()) {
			return
		}
		<-time.After(time.Millisecond)
	}
	p.Server.tb.Fatalf("pane %s still runs no program of its own", p.ID)
}

// ended reports that the process is gone or waits to be reaped.
func (p *Pane) ended() bool {
	now, err := procinfo.Read(p.PID)
	return err != nil || now.Zombie()
}

func cmdline(pid int) string {
	p, err := procinfo.Read(pid)
	if err != nil {
		return ""
	}
	return strings.Join(p.Args, "\x00")
}

func orElse[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Target is where input to the pane goes.
func (p *Pane) Target() tmux.Target {
	return tmux.Target{Socket: p.Server.socket, PaneID: p.ID, PanePID: p.PID}
}

// WaitScreen waits until cond holds for a capture of the pane and returns that capture.
func (p *Pane) WaitScreen(cond func(tmux.Capture) bool) tmux.Capture {
	p.Server.tb.Helper()
	var last tmux.Capture
	var err error
	Wait(p.Server.tb, "the screen of pane "+p.ID, func() bool {
		last, err = p.Server.Client().Capture(p.Server.tb.Context(), p.ID, tmux.CaptureOptions{})
		return err == nil && cond(last)
	}, func() string {
		if err != nil {
			return err.Error()
		}
		return strings.TrimRight(strings.Join(last.Lines, "\n"), "\n")
	})
	return last
}

// WaitText waits until the text stands in a line of the screen.
func (p *Pane) WaitText(text string) tmux.Capture {
	p.Server.tb.Helper()
	return p.WaitScreen(func(c tmux.Capture) bool {
		return strings.Contains(strings.Join(c.Lines, "\n"), text)
	})
}

// Wait waits until cond holds, or ends the test and tells what and the last state.
func Wait(tb testing.TB, what string, cond func() bool, state func() string) {
	tb.Helper()
	for end := time.Now().Add(Patience); ; {
		if cond() {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("waited %v in vain for %s; last seen:\n%s", Patience, what, state())
		}
		<-time.After(pollEvery)
	}
}

package proc

import (
	"context"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	// runnerReplyLimit bounds the wait for a runner to say that a program started.
	runnerReplyLimit = 10 * time.Second
	// killGrace is how long a runner may take from the kill request to the end of the last
	// descendant, before it is killed itself.
	killGrace = sweepLimit + 500*time.Millisecond
	// runnerLinger is how long a runner above the kept number stays idle before it ends.
	runnerLinger = 10 * time.Second
)

// Runners is a pool of runner processes. A runner runs one program at a time and is used
// again only when it reported that nothing of the last program is left.
type Runners struct {
	spawner *Spawner
	keep    int

	mu     sync.Mutex
	idle   []*runnerProcess // last returned, first taken
	live   map[*runnerProcess]struct{}
	trim   *time.Timer
	closed bool
}

// NewRunners returns a pool that keeps up to keep idle runners ready. It starts none
// until [Runners.Warm] or the first program.
func NewRunners(s *Spawner, keep int) *Runners {
	return &Runners{spawner: s, keep: keep, live: make(map[*runnerProcess]struct{})}
}

// Warm starts runners until the kept number is idle, so that the next program does not
// wait for a process start.
func (p *Runners) Warm() error {
	for {
		p.mu.Lock()
		enough := p.closed || len(p.idle) >= p.keep
		p.mu.Unlock()
		if enough {
			return nil
		}
		r, err := p.start()
		if err != nil {
			return err
		}
		p.release(r)
	}
}

// Close ends every runner, and with it every program that still runs, and waits for that
// with a bound. It may be called twice.
func (p *Runners) Close() {
	p.mu.Lock()
	p.closed = true
	p.idle = nil
	if p.trim != nil {
		p.trim.Stop()
	}
	live := make([]*runnerProcess, 0, len(p.live))
	for r := range p.live {
		live = append(live, r)
	}
	p.mu.Unlock()
	for _, r := range live {
		r.conn.Close()
	}
	for _, r := range live {
		r.retire()
	}
}

func (p *Runners) take() (*runnerProcess, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		r := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if r.alive() {
			p.mu.Unlock()
			return r, nil
		}
	}
	p.mu.Unlock()
	return p.start()
}

// release gives back a runner that has nothing left to do.
func (p *Runners) release(r *runnerProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !r.alive() {
		r.conn.Close()
		return
	}
	p.idle = append(p.idle, r)
	if len(p.idle) > p.keep && p.trim == nil {
		p.trim = time.AfterFunc(runnerLinger, p.trimIdle)
	}
}

func (p *Runners) trimIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim = nil
	for len(p.idle) > p.keep {
		p.idle[0].conn.Close() // it sees the end and exits
		p.idle = p.idle[1:]
	}
}

// runnerProcess is the starter's side of one runner.
type runnerProcess struct {
	cmd     *exec.Cmd
	conn    *net.UnixConn
	replies chan reply    // closed when the runner's socket ended
	ended   chan struct{} // closed when the process was reaped
}

func (p *Runners) start() (*runnerProcess, error) {
	const op = "proc.runner"
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot make a socket pair")
	}
	defer theirs.Close()
	exe, err := selfPath()
	if err != nil {
		ours.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot find our own executable")
	}
	r := &runnerProcess{
		cmd:     &exec.Cmd{Path: exe, Args: []string{os.Args[0], runnerArg}, Env: []string{}, ExtraFiles: []*os.File{theirs}},
		conn:    ours,
		replies: make(chan reply, 2),
		ended:   make(chan struct{}),
	}
	// SIGTERM, not SIGKILL: the runner must live long enough to end what it started.
	if err := p.spawner.Start(r.cmd, Options{DeathSignal: syscall.SIGTERM}); err != nil {
		ours.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot start a runner process")
	}
	p.mu.Lock()
	p.live[r] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	go r.read()
	go func() {
		_ = r.cmd.Wait()
		p.mu.Lock()
		delete(p.live, r)
		p.mu.Unlock()
		close(r.ended)
	}()
	if closed {
		r.retire()
		return nil, fault.New(fault.Unavailable, op, "the runners are closed").WithHint("this process is stopping")
	}
	return r, nil
}

func (r *runnerProcess) read() {
	defer close(r.replies)
	for {
		var rep reply
		if _, err := readFrame(r.conn, &rep); err != nil {
			return
		}
		r.replies <- rep
	}
}

func (r *runnerProcess) alive() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// retire ends the runner: it is asked by closing its socket, then killed. The program's
// death signal then ends what the runner could not.
func (r *runnerProcess) retire() {
	r.conn.Close()
	select {
	case <-r.ended:
		return
	case <-time.After(killGrace):
	}
	_ = r.cmd.Process.Kill() // os.Process knows when it was reaped: never a stranger
	<-r.ended
}

// expect waits for the next reply.
func (r *runnerProcess) expect(ctx context.Context, limit time.Duration) (reply, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case rep, ok := <-r.replies:
		if !ok {
			return reply{}, fault.New(fault.Unavailable, "proc.runner", "the runner process ended")
		}
		return rep, nil
	case <-timer.C:
		return reply{}, fault.New(fault.Timeout, "proc.runner", "the runner process is silent")
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "runner")
	file := os.NewFile(uintptr(fds[0]), "runner control")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

package wire

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// pipeGrace is how long the pipes of an ended worker may stay open for what it wrote
// last; a descendant that kept them is not waited for.
const pipeGrace = 200 * time.Millisecond

// process is one worker process as go-plugin's runner. It is started once. go-plugin
// sees a stdout that holds the handshake line and nothing else, and no stderr: its own
// readers stop, or crash us, on lines they do not like.
type process struct {
	cmd      *exec.Cmd
	spawner  *proc.Spawner
	lifeline *os.File
	log      *slog.Logger

	handshake *handshakeReader
	handOut   *io.PipeReader
	lines     *lineLog

	mu      sync.Mutex // guards reaped against KillGroup of a reused number
	started bool
	doomed  bool // killed, perhaps before it was started
	reaped  bool
	exited  chan struct{} // closed when reaped and the pipes are closed
	waitErr error         // valid after exited
}

func newProcess(o Options, path string, env []string) *process {
	p := &process{spawner: o.Spawner, lifeline: o.Lifeline.ChildEnd(), log: o.Log, exited: make(chan struct{})}
	p.cmd = exec.Command(path)
	p.cmd.Env = env
	return p
}

// Start implements go-plugin's runner.
func (p *process) Start(context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		outW.Close()
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = outW, errW // files, so that Wait waits for no copying
	p.cmd.ExtraFiles = []*os.File{p.lifeline}
	err = p.spawner.Start(p.cmd, proc.Options{})
	outW.Close()
	errW.Close()
	if err != nil {
		outR.Close()
		errR.Close()
		return err
	}
	handOut, handIn := io.Pipe()
	p.handOut = handOut
	p.handshake = newHandshakeReader(handIn)
	p.lines = newLineLog(p.log.With("pid", p.cmd.Process.Pid))
	p.mu.Lock()
	p.started = true
	if p.doomed { // somebody gave it up while it was being started
		proc.KillGroup(p.cmd.Process.Pid)
	}
	p.mu.Unlock()

	var readers sync.WaitGroup
	readers.Go(func() { p.handshake.run(outR) })
	readers.Go(func() { p.lines.run(errR) })
	go p.wait(&readers, outR, errR)
	return nil
}

// wait reaps the worker. It ends within pipeGrace of the worker's end.
func (p *process) wait(readers *sync.WaitGroup, pipes ...*os.File) {
	if p.waitEnd() {
		// The leader is dead and not reaped, so the number still is ours: whatever else is
		// in its group goes now.
		p.mu.Lock()
		proc.KillGroup(p.cmd.Process.Pid)
		p.waitErr = p.cmd.Wait()
	} else {
		p.waitErr = p.cmd.Wait()
		p.mu.Lock()
	}
	p.reaped = true
	p.mu.Unlock()

	read := make(chan struct{})
	go func() { readers.Wait(); close(read) }()
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
	}
	for _, f := range pipes {
		f.Close()
	}
	<-read
	close(p.exited)
}

// waitEnd returns true when the process has ended and is not reaped yet. It costs no
// thread. Where the system offers no such wait it returns false at once, and the number
// is ours only until Wait returns.
func (p *process) waitEnd() bool {
	pid := p.cmd.Process.Pid
	birth, err := procinfo.Birth(pid)
	if err != nil {
		return false
	}
	gone, stop, err := procinfo.Watch(turn.Incarnation{PID: pid, Birth: birth})
	if err != nil {
		return false
	}
	defer stop()
	<-gone
	return true
}

// kill ends the worker's whole group at once. It is safe at any time, and no-op for a
// worker that was reaped: its number may belong to a stranger by then.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = true
	if p.started && !p.reaped {
		if err := proc.KillGroup(p.cmd.Process.Pid); err != nil {
			p.log.Error("worker group could not be killed", "pid", p.cmd.Process.Pid, "error", err)
		}
	}
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return p.cmd.Process.Pid
}

// The rest of go-plugin's runner.

func (p *process) Wait(context.Context) error {
	<-p.exited
	return p.waitErr
}

func (p *process) Kill(context.Context) error { p.kill(); return nil }

func (p *process) ID() string {
	if pid := p.pid(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

func (p *process) Name() string                                     { return p.cmd.Path }
func (p *process) Stdout() io.ReadCloser                            { return p.handOut }
func (p *process) Stderr() io.ReadCloser                            { return io.NopCloser(strings.NewReader("")) }
func (p *process) Diagnose(context.Context) string                  { return "" }
func (p *process) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (p *process) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }

package launch

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/proc"
)

// sweepLimit bounds the wait for the end of the tree after SIGKILL.
const sweepLimit = 10 * time.Second

// Process is a started program. Stdin and Stdout are the caller's to use and to close;
// Close closes both too.
type Process struct {
	PID       int // also the id of its process group and session
	StartedAt time.Time

	child  *proc.Contained
	pipes  *pipes
	opts   Options
	stderr *tail
	exited chan struct{}
	exit   Exit // before exited is closed
	closed sync.Once
}

// watch waits for the end of the child. The wait outlives the start's ctx on purpose: it
// ends with the child, which Close ends.
func watch(ctx context.Context, child *proc.Contained, p *pipes, o Options, started time.Time, env []string, mark string, each func(string)) *Process {
	run := &Process{
		PID: child.PID, StartedAt: started, child: child, pipes: p, opts: o,
		stderr: newTail(o.StderrLines, env), exited: make(chan struct{}),
	}
	run.stderr.each = each
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(run.stderr, p.err)
	}()
	go func() {
		status, err := child.Wait(context.WithoutCancel(ctx))
		if err != nil { // the runner was lost, and with it who knows the tree
			status.Left = endMarked(mark)
		}
		run.exit = Exit{Code: status.Exit, Signal: status.Signal, Lost: err != nil, Left: status.Left}
		if status.Left > 0 || err != nil {
			_ = p.err.Close() // somebody may still hold the other end
		}
		<-drained
		_ = p.err.Close()
		close(run.exited)
	}()
	return run
}

// Started is its process id, which is also that of its group and session, and when it began.
func (p *Process) Started() (pid int, at time.Time) { return p.PID, p.StartedAt }

// Stdin is the program's standard input.
func (p *Process) Stdin() io.WriteCloser { return p.pipes.in }

// Stdout is the program's standard output. It ends when the whole tree is gone.
func (p *Process) Stdout() io.ReadCloser { return p.pipes.out }

// StderrTail returns the last lines of the program's error output, redacted.
func (p *Process) StderrTail() []string { return p.stderr.lines() }

// Exited is closed when the program ended and nothing of its tree is left. A program that
// ends by itself takes its whole tree with it.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit is how it ended; only after Exited.
func (p *Process) Exit() Exit { return p.exit }

// Close ends the program: it closes stdin, waits a moment, sends SIGTERM to its group,
// waits, and kills every process of the tree. It returns after the end of all, at the
// latest EOFGrace + TermGrace + 10 s later, earlier when ctx ends first, which skips the
// graces. It may be called more than once, from any goroutine.
func (p *Process) Close(ctx context.Context) Exit {
	p.closed.Do(func() { _ = p.pipes.in.Close() })
	steps := []struct {
		act  func()
		wait time.Duration
	}{
		{func() {}, p.opts.EOFGrace},
		{p.child.Terminate, p.opts.TermGrace},
		{p.child.Kill, sweepLimit},
	}
	for i, step := range steps {
		step.act()
		if p.await(ctx, step.wait, i == len(steps)-1) {
			break
		}
	}
	_ = p.pipes.out.Close()
	select {
	case <-p.exited:
		return p.exit
	default:
		return Exit{Code: -1, Lost: true, Left: 1}
	}
}

// Kill ends the whole tree at once and does not wait.
func (p *Process) Kill() { p.child.Kill() }

// await reports whether the program ended within the limit. The last wait does not end
// with ctx: a killed tree is gone in a moment.
func (p *Process) await(ctx context.Context, limit time.Duration, last bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	hurry := ctx.Done()
	if last {
		hurry = nil
	}
	select {
	case <-p.exited:
		return true
	case <-timer.C:
	case <-hurry:
	}
	return false
}

// pipes are the six ends of the three standard files.
type pipes struct {
	childIn, childOut, childErr *os.File
	in, out, err                *os.File
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	var err error
	if p.childIn, p.in, err = os.Pipe(); err == nil {
		if p.out, p.childOut, err = os.Pipe(); err == nil {
			p.err, p.childErr, err = os.Pipe()
		}
	}
	if err != nil {
		p.closeChild()
		p.closeOurs()
		return nil, err
	}
	return p, nil
}

// Close of a nil *os.File is an error that nobody needs.
func (p *pipes) closeChild() {
	for _, f := range []*os.File{p.childIn, p.childOut, p.childErr} {
		_ = f.Close()
	}
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		_ = f.Close()
	}
}

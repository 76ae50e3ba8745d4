package proc

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Program is what to run. No shell is involved.
type Program struct {
	Path string   // absolute
	Args []string // whole argv, Args[0] included
	Env  []string // the whole environment, "NAME=value"
	Dir  string   // "" keeps ours
	// Session gives the program a session of its own, without a controlling terminal.
	// Without it the program gets a process group of its own.
	Session bool
	// Terminal makes stdin, which must be a terminal, the controlling one of the session; it
	// includes Session.
	Terminal bool
}

// Status is how a contained program ended.
type Status struct {
	Exit   int            // exit status, -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
	// Left counts descendants that could not be ended within the limit, such as those of
	// another user. 0 means that nothing of the program is left.
	Left int
}

// StartError says that a program was provably not started, so nothing it could do was done.
type StartError struct {
	Errno syscall.Errno // 0 when the reason is not an errno of exec
	Err   error
}

func (e *StartError) Error() string { return "not started: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Contained is a program that runs under a runner. When this process ends in any way,
// SIGKILL included, the program and all its descendants are ended by the runner.
type Contained struct {
	PID    int
	pool   *Runners
	runner *runnerProcess
	group  groupHold

	mu   sync.Mutex
	over bool // Wait saw the end: the runner may serve another program
}

// Start runs prog with the three files as its stdin, stdout and stderr; it does not close
// them. A *[StartError] means that nothing was started; any other error means that the
// runner was lost and the program may have run. The caller must call Wait.
func (p *Runners) Start(ctx context.Context, prog Program, stdin, stdout, stderr *os.File) (*Contained, error) {
	if err := ctx.Err(); err != nil {
		return nil, &StartError{Err: context.Cause(ctx)}
	}
	req := request{Op: "run", Path: []byte(prog.Path), Args: bytesOf(prog.Args), Env: bytesOf(prog.Env), Dir: []byte(prog.Dir),
		Own: prog.Session || prog.Terminal, TTY: prog.Terminal}
	r, err := p.send(req, stdin, stdout, stderr)
	if err != nil {
		return nil, err
	}
	// Not ctx: once the request is out, only the answer tells whether the program runs.
	rep, err := r.expect(context.WithoutCancel(ctx), runnerReplyLimit)
	switch {
	case err != nil:
		r.retire()
		return nil, err
	case rep.Op == "failed":
		p.release(r)
		return nil, &StartError{Errno: rep.Errno, Err: startCause(rep)}
	case rep.Op != "started":
		r.retire()
		return nil, fault.New(fault.Internal, "proc.Start", "the runner answered %q to a run request", rep.Op)
	}
	return &Contained{PID: rep.PID, pool: p, runner: r, group: holdGroup(rep.PID)}, nil
}

// send hands the request to a runner. An idle runner may have ended meanwhile; then the
// request did not arrive whole, and a fresh runner gets it.
func (p *Runners) send(req request, stdin, stdout, stderr *os.File) (*runnerProcess, error) {
	const tries = 2
	var last error
	for range tries {
		r, err := p.take()
		if err != nil {
			return nil, &StartError{Err: err}
		}
		err = writeFrame(r.conn, req, int(stdin.Fd()), int(stdout.Fd()), int(stderr.Fd()))
		if err == nil {
			return r, nil
		}
		if errors.Is(err, syscall.E2BIG) { // refused before a byte was written
			p.release(r)
			return nil, &StartError{Errno: syscall.E2BIG, Err: err}
		}
		r.retire()
		last = err
	}
	return nil, &StartError{Err: last}
}

func startCause(rep reply) error {
	if rep.Errno != 0 {
		return rep.Errno
	}
	return errors.New(rep.Msg)
}

// Kill asks for the end of the program and all its descendants and does not wait.
func (c *Contained) Kill() { c.ask("kill") }

// Terminate sends SIGTERM to the program's process group and does not wait.
func (c *Contained) Terminate() { c.ask("term") }

func (c *Contained) ask(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		_ = writeFrame(c.runner.conn, request{Op: op})
	}
}

// Wait returns when the program ended and its descendants are gone. When ctx ends first,
// everything is killed and Wait still returns within a bound. An error means that the
// runner was lost, so how the program ended is unknown. Call it exactly once.
func (c *Contained) Wait(ctx context.Context) (Status, error) {
	defer c.group.close()
	rep, err := c.await(ctx)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	if err != nil || rep.Op != "done" {
		c.runner.retire()
		// The kernel killed the program with its runner, but not what the program forked
		// just before. Whatever left the group by then stays.
		c.group.kill()
		return Status{Exit: -1}, fault.New(fault.Unavailable, "proc.Wait", "the runner process was lost")
	}
	if rep.Left > 0 {
		c.runner.retire()
	} else {
		c.pool.release(c.runner)
	}
	return Status{Exit: rep.Exit, Signal: syscall.Signal(rep.Signal), Left: rep.Left}, nil
}

func (c *Contained) await(ctx context.Context) (reply, error) {
	select {
	case rep, ok := <-c.runner.replies:
		if !ok {
			return reply{}, errors.New("the runner process ended")
		}
		return rep, nil
	case <-ctx.Done():
	}
	c.Kill()
	return c.runner.expect(context.WithoutCancel(ctx), killGrace)
}

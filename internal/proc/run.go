package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// drainLimit bounds the reading of what a program left in its pipes after everything of
// it was ended; only a descendant that could not be ended makes it count.
const drainLimit = 250 * time.Millisecond

// Spec is a program with bounded time and output.
type Spec struct {
	Program
	Stdin   []byte        // all of it is there before the program starts; a program may ignore it
	Timeout time.Duration // from the start of the program; must be positive
	// MaxOutput bounds each of stdout and stderr, in bytes. One byte more ends the program.
	MaxOutput int
}

// Result tells what happened to a program that Run started or tried to start.
type Result struct {
	// StartErr is set when the program was provably not started; then nothing else is.
	StartErr *StartError
	// Err is set when the runner was lost: whether and how the program ran is unknown.
	Err error

	Status
	Stdout   []byte
	TimedOut bool // ended by us at Timeout
	Overflow bool // ended by us, or refused, because of MaxOutput
	Canceled bool // ended by us because ctx ended
}

var (
	errTimeout  = errors.New("time limit")
	errOverflow = errors.New("output limit")
)

// Run runs spec under a runner and returns when the program has ended and nothing of it
// is left: its group and every descendant is killed at its end, at the time limit, at the
// output limit, or when ctx ends. A descendant that keeps a pipe open does not delay the
// result. Stderr is counted and thrown away.
func (p *Runners) Run(ctx context.Context, spec Spec) Result {
	io3, err := newStdio(spec.Stdin)
	if err != nil {
		return Result{StartErr: &StartError{Errno: errnoOf(err), Err: err}}
	}
	defer io3.close()
	c, err := p.Start(ctx, spec.Program, io3.child[0], io3.child[1], io3.child[2])
	io3.closeChild()
	if err != nil {
		var start *StartError
		if errors.As(err, &start) {
			return Result{StartErr: start}
		}
		return Result{Err: err}
	}

	limited, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(spec.Timeout, func() { end(errTimeout) })
	defer timer.Stop()
	pump := io3.pump(spec, func() { end(errOverflow) })

	var res Result
	res.Status, res.Err = c.Wait(limited)
	cause := context.Cause(limited)
	io3.deadline(time.Now().Add(drainLimit))
	var overflow bool
	res.Stdout, overflow = pump.wait()

	res.TimedOut = cause == errTimeout
	res.Overflow = cause == errOverflow || overflow
	res.Canceled = cause != nil && !res.TimedOut && !res.Overflow
	return res
}

// stdio is the input file and the two output pipes of one program.
type stdio struct {
	child [stdioFiles]*os.File // what the program gets
	ours  [stdioFiles]*os.File // our ends of the pipes; none for the input
}

func newStdio(stdin []byte) (*stdio, error) {
	var s stdio
	var err error
	if s.child[0], err = input(stdin); err != nil {
		return nil, err
	}
	for i := 1; i < stdioFiles; i++ {
		if s.ours[i], s.child[i], err = os.Pipe(); err != nil {
			s.close()
			return nil, err
		}
		// The program expects blocking files; our ends keep the runtime's poller.
		if err := syscall.SetNonblock(int(s.child[i].Fd()), false); err != nil {
			s.close()
			return nil, err
		}
	}
	return &s, nil
}

func (s *stdio) closeChild() {
	for _, f := range s.child {
		if f != nil {
			f.Close()
		}
	}
}

func (s *stdio) close() {
	s.closeChild()
	for _, f := range s.ours {
		if f != nil {
			f.Close()
		}
	}
}

func (s *stdio) deadline(t time.Time) {
	for _, f := range s.ours[1:] {
		_ = f.SetDeadline(t)
	}
}

// pumping is the two goroutines that read what a program writes.
type pumping struct {
	wg       sync.WaitGroup
	stdout   bytes.Buffer
	overflow atomic.Bool
}

func (s *stdio) pump(spec Spec, onOverflow func()) *pumping {
	p := &pumping{}
	read := func(from io.Reader, to io.Writer) {
		n, _ := io.Copy(to, io.LimitReader(from, int64(spec.MaxOutput)+1))
		if n > int64(spec.MaxOutput) {
			p.overflow.Store(true)
			onOverflow()
		}
	}
	p.wg.Go(func() { read(s.ours[1], &p.stdout) })
	p.wg.Go(func() { read(s.ours[2], io.Discard) })
	return p
}

func (p *pumping) wait() (stdout []byte, overflow bool) {
	p.wg.Wait()
	return p.stdout.Bytes(), p.overflow.Load()
}

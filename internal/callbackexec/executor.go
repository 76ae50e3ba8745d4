package callbackexec

import (
	"context"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
)

// Executor runs callback programs. It may run several at once.
type Executor struct {
	runners *proc.Runners
	clock   clock.Clock
}

// New returns an Executor over a pool of runners, which it does not own.
func New(r *proc.Runners, c clock.Clock) *Executor { return &Executor{runners: r, clock: c} }

// Run makes one attempt and classifies it. When it returns, nothing of the program is
// left. It returns no later than the Profile's time limit plus a fixed small bound; when
// ctx ends, the program is ended and the outcome is uncertain.
func (e *Executor) Run(ctx context.Context, j Job) outbox.Outcome {
	if code := j.refuse(); code != codeNone {
		return e.outcome(verdict{kind: outbox.PermanentFailure, code: code})
	}
	argv, ok := j.argv()
	if !ok {
		return e.outcome(verdict{kind: outbox.PermanentFailure, code: CodeConfiguration})
	}
	c := j.Profile.Callback
	crashpoint.At(crashpoint.WorkerStart)
	res := e.runners.Run(ctx, proc.Spec{
		Program:   proc.Program{Path: c.Executable, Args: argv, Env: j.environment()},
		Stdin:     j.Body,
		Timeout:   time.Duration(c.TimeoutMs) * time.Millisecond,
		MaxOutput: c.MaxOutputBytes,
	})
	crashpoint.At(crashpoint.WorkerEnded)
	switch {
	case res.StartErr != nil:
		return e.outcome(notStarted(res.StartErr.Errno))
	case res.Err != nil:
		return e.outcome(uncertain(CodeExecution))
	}
	var v verdict
	switch {
	case res.TimedOut || res.Overflow:
		v = uncertain(CodeLimit)
	case res.Canceled:
		v = uncertain(CodeExecution)
	default:
		ended := res.Signal == 0 && res.Exit == 0
		v = judge(res.Stdout, ended, c.Acknowledgement, string(j.DeliveryID), j.MessageID)
	}
	out := e.outcome(v)
	if res.Signal != 0 {
		out.Signal = res.Signal.String()
	} else {
		out.ExitStatus = &res.Exit
	}
	return out
}

// notStarted classifies a start that provably did nothing.
func notStarted(no syscall.Errno) verdict {
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOEXEC:
		return verdict{kind: outbox.PermanentFailure, code: CodeExecutableUnavailable}
	case syscall.E2BIG, syscall.EINVAL:
		return verdict{kind: outbox.PermanentFailure, code: CodeConfiguration}
	}
	return verdict{kind: outbox.RetryableFailure, code: CodeNotStarted}
}

func (e *Executor) outcome(v verdict) outbox.Outcome {
	return outbox.Outcome{Kind: v.kind, ErrorCode: v.code, AcceptanceID: v.acceptance, At: e.clock.Now().UTC()}
}

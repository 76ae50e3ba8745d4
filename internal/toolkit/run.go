package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Run checks the arguments, waits for the call's turn, runs the handler and renders its
// outcome. The error is non-nil only for a call that was refused before anything ran,
// with code [BadCall]; every other failure is a Result with IsError.
//
// Run returns within [CallLimit]. The handler may outlive it; see [Session.Drain].
func (t *Ticket) Run(ctx context.Context, args json.RawMessage) (Result, error) {
	if t.tool == nil {
		return Result{}, fault.New(BadCall, "toolkit.call", "unknown tool %q", shown(t.arrival.Tool))
	}
	ready, err := t.tool.check(args)
	if err != nil {
		t.Release()
		switch refused := fault.Is(err, BadCall); {
		case fault.Is(err, fault.Internal):
			t.session.log.Error("a tool cannot be called", "tool", t.arrival.Tool, "error", err)
			return t.failed(WithRetry(err, RetrySafe)), nil
		case refused && t.session.registry.failures == nil:
			return Result{}, err
		}
		return t.failed(err), nil
	}
	start := time.Now()
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, ticketKey{}, t))
	ctx, stop := t.limited(ctx)
	if !t.bind(cancel) {
		cancel(ErrCancelled)
	}
	if err := t.waitTurn(ctx); err != nil {
		stop()
		cancel(err)
		t.Release()
		return t.failed(t.explain(ctx, err, false)), nil
	}
	if err := context.Cause(ctx); err != nil { // cancelled before its start
		stop()
		t.Release()
		return t.failed(t.explain(ctx, err, false)), nil
	}

	done := t.launch(ctx, ready, func() { stop(); cancel(nil) })
	if t.tool.spec.Unlimited {
		return <-done, nil
	}
	limit := time.NewTimer(CallLimit - time.Since(start))
	defer limit.Stop()
	select {
	case result := <-done:
		return result, nil
	case <-limit.C:
		t.session.log.Error("a tool call outlives its time limit and is left to finish",
			"tool", t.arrival.Tool, "limit", CallLimit)
		return t.failed(t.explain(ctx, errDeadline, true)), nil
	}
}

// limited gives the context its time limit.
func (t *Ticket) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.tool.spec.Unlimited {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, CallLimit-replyReserve, errDeadline)
}

// failed renders err in the form of the table.
func (t *Ticket) failed(err error) Result {
	if f := t.session.registry.failures; f != nil {
		return f.Render(err)
	}
	return failed(err)
}

// launch runs the handler on its own goroutine, which Session.Drain waits for.
func (t *Ticket) launch(ctx context.Context, ready run, release func()) <-chan Result {
	done := make(chan Result, 1)
	t.mu.Lock()
	t.started = true
	t.mu.Unlock()
	t.session.enter()
	go func() {
		defer t.session.leave(t)
		defer t.settle()
		defer release()
		done <- t.outcome(ctx, ready)
	}()
	return done
}

// outcome runs the handler; whatever it does ends as a Result.
func (t *Ticket) outcome(ctx context.Context, ready run) (result Result) {
	log := t.session.log.With("tool", t.arrival.Tool)
	defer func() {
		if p := recover(); p != nil {
			log.Error("a tool panicked", "panic", p, "stack", string(debug.Stack()))
			result = t.failed(t.afterStart(fault.New(fault.Internal, "toolkit.call", "%s failed unexpectedly", t.arrival.Tool).
				WithHint("see the Bridge's log on stderr")))
		}
	}()
	value, err := ready(ctx, t.call())
	if asks, ok := value.(InputNeeded); ok && err == nil {
		return Result{Input: &asks}
	}
	if err == nil {
		result, err = t.tool.succeeded(value, t.session.registry.checkOutput)
	}
	if err == nil {
		return result
	}
	err = t.explain(ctx, err, true)
	if code := fault.CodeOf(err); code == fault.Internal {
		log.Error("a tool call failed", "code", code, "error", err)
	} else {
		log.Debug("a tool call failed", "code", code, "error", err)
	}
	return t.failed(err)
}

func (t *Ticket) call() Call {
	call := Call{
		ID:       "host-bridge:[" + quote(string(t.session.instance)) + "," + string(t.arrival.ID) + "]",
		Tool:     t.arrival.Tool,
		Progress: t.arrival.Progress,
		Host:     t.host,
		Resumed:  t.resumed,
	}
	if call.Host == nil {
		call.Host = deaf{}
	}
	if call.Progress == nil {
		call.Progress = func(float64, float64, string) {}
	}
	return call
}

// explain gives a code to an uncoded error that the end of the call's context explains.
// A coded error stays as it is.
func (t *Ticket) explain(ctx context.Context, err error, started bool) error {
	var coded *fault.Error
	cause := context.Cause(ctx)
	if errors.As(err, &coded) || cause == nil {
		return err
	}
	var plain *fault.Error
	switch {
	case errors.Is(cause, errDeadline):
		plain = fault.Wrap(err, fault.Timeout, "toolkit.call", "%s did not finish within %s", t.arrival.Tool, CallLimit)
	default:
		plain = fault.Wrap(err, fault.Unavailable, "toolkit.call", "%s was cancelled", t.arrival.Tool)
	}
	if !started {
		return WithRetry(plain.WithHint("it was not started"), RetrySafe)
	}
	return t.afterStart(plain)
}

// afterStart adds what a repetition would mean once the handler has begun.
func (t *Ticket) afterStart(err *fault.Error) error {
	if t.tool.spec.Effect == ReadOnly {
		return WithRetry(err, RetrySafe)
	}
	if err.Hint == "" {
		err = err.WithHint("its effect may or may not be in place; look before you call it again")
	}
	return WithRetry(err, RetryCheck)
}

func quote(s string) string {
	b, err := marshal(s)
	if err != nil { // a string always marshals
		return `""`
	}
	return string(b)
}

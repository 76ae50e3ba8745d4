// Package delivery is the pump that moves due deliveries of one Bridge to the callback
// worker and settles what came back.
//
// It owns when an attempt is made: exactly at its due time or when told that a commit
// enqueued something, never by polling. An attempt is stored as started before the worker
// hears of it, so no crash can cause a second send. It knows no Turn, no Profile file, no
// process and no gRPC, and it never touches a delivery of another Bridge that lives.
package delivery

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
)

// Error codes of outcomes that no callback program brought.
const (
	CodeWorkerUnavailable = "callback_worker_unavailable" // nothing was started, it is tried again
	CodeProfileDrift      = "callback_profile_drift"      // the same: the Profile is not the one that this Bridge serves
	CodeWorkerLost        = "callback_worker_lost"        // the program may have run
	CodeEnvelopeInvalid   = "callback_envelope_invalid"   // the worker refused the job as such
	CodeOwnerGone         = "callback_owner_gone"         // claimed by a Bridge that ended before the start
)

// Job is one attempt of one delivery. All but AttemptID and Attempt is the same on every
// attempt.
type Job struct {
	DeliveryID     ids.DeliveryID
	AttemptID      ids.AttemptID
	Attempt        int // from 1
	IdempotencyKey string
	RouteID        ids.RouteID
	Route          outbox.Route
	Source         outbox.Source
	Event          outbox.Event
}

// Worker makes attempts.
type Worker interface {
	// Serving reports whether a job would be started now. It does not wait.
	Serving() bool
	// Ready waits until the worker serves. It returns within a bound and soon after ctx
	// ended; an error says that it will not serve soon.
	Ready(ctx context.Context) error
	// Deliver makes one attempt. It returns within a bound and soon after ctx ended. An
	// error with fault.Unavailable or CodeProfileDrift proves that the callback program was
	// not started, and the attempt does not count; fault.Invalid proves the same for a job
	// that no attempt can deliver. Any other error means that the program may have run.
	Deliver(ctx context.Context, job Job) (outbox.Outcome, error)
}

// result is what one attempt brought.
type result struct {
	delivery outbox.Delivery
	outcome  outbox.Outcome
	postpone string // why the attempt did not begin, "" when it may have
}

func (p *Pump) attempt(ctx context.Context, d outbox.Delivery) result {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	o, err := p.Worker.Deliver(ctx, Job{
		DeliveryID: d.DeliveryID, AttemptID: d.AttemptID, Attempt: d.Attempts,
		IdempotencyKey: d.IdempotencyKey, RouteID: d.RouteID, Route: d.Route, Source: d.Source, Event: d.Event,
	})
	crashpoint.At(crashpoint.OutboxAnswer)
	r := result{delivery: d, outcome: o}
	if err == nil {
		return r
	}
	p.Log.Warn("callback attempt brought no outcome", "delivery", d.DeliveryID, "attempt", d.Attempts, "error", err)
	switch now := p.Clock.Now().UTC(); fault.CodeOf(err) {
	case fault.Unavailable:
		r.postpone = CodeWorkerUnavailable
	case CodeProfileDrift:
		r.postpone = CodeProfileDrift
	case fault.Invalid:
		r.outcome = outbox.Outcome{Kind: outbox.PermanentFailure, ErrorCode: CodeEnvelopeInvalid, At: now}
	default:
		r.outcome = outbox.Outcome{Kind: outbox.Uncertain, ErrorCode: CodeWorkerLost, At: now}
	}
	return r
}

package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// sink closes the circle: monitors tell the use cases, which start monitors.
type sink struct {
	turns   *dispatch.Service
	watches *watcher.Service
}

var _ supervise.Sink = (*sink)(nil)

func (s *sink) Observe(ctx context.Context, subject ids.SubjectID, o turn.Observation) error {
	if id, ok := subject.Watch(); ok {
		return s.watches.Observe(ctx, id, o)
	}
	return s.turns.Observe(ctx, ids.TurnID(subject), o)
}

// monitors lets the use cases start monitors without knowing gRPC.
type monitors struct{ s *supervise.Supervisor }

var _ dispatch.Monitors = monitors{}

func (m monitors) Watch(ctx context.Context, w dispatch.Watch) error {
	spec := wire.MonitorSpec{TurnID: w.Turn.ID, MessageID: w.Turn.MessageID, Ref: w.Ref, Anchor: w.Turn.Anchor, Pasted: w.Pasted,
		EnteredAt: w.Turn.EnteredAt, Accepted: !w.Turn.AcceptedAt.IsZero()}
	if w.Turn.Prompt != nil {
		spec.OpenPrompt = w.Turn.Prompt.Fingerprint
	}
	return m.s.Watch(ctx, spec)
}

func (m monitors) Entered(ctx context.Context, id ids.TurnID, at time.Time) error {
	return m.s.Entered(ctx, id, at)
}

func (m monitors) Answered(ctx context.Context, id ids.TurnID, fingerprint string) error {
	return m.s.Answered(ctx, id, fingerprint)
}

func (m monitors) Forget(id ids.TurnID) { m.s.Forget(ids.SubjectID(id)) }

// callbackWorker lets the pump deliver without knowing gRPC. A Profile that is not the one
// that the Bridge started with runs no program.
type callbackWorker struct {
	s            *supervise.Supervisor
	checkProfile func() error
}

var _ delivery.Worker = callbackWorker{}

func (c callbackWorker) Serving() bool                   { return c.s.CallbackServing() }
func (c callbackWorker) Ready(ctx context.Context) error { return c.s.AwaitCallback(ctx) }

func (c callbackWorker) Deliver(ctx context.Context, j delivery.Job) (outbox.Outcome, error) {
	if err := c.checkProfile(); err != nil {
		return outbox.Outcome{}, fault.Wrap(err, delivery.CodeProfileDrift, "bridge.deliver", "no callback was started")
	}
	return c.s.Deliver(ctx, wire.CallbackJob{DeliveryID: j.DeliveryID, AttemptID: j.AttemptID, Attempt: j.Attempt,
		IdempotencyKey: j.IdempotencyKey, RouteID: j.RouteID, Route: j.Route, Source: j.Source, Event: j.Event})
}

func uid() string { return strconv.Itoa(os.Getuid()) }

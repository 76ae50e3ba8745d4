package wire

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
)

// CallbackJob is one attempt of one delivery.
type CallbackJob struct {
	DeliveryID ids.DeliveryID
	AttemptID  ids.AttemptID
	Attempt    int // 1, 2, ...
	// Route was captured when the Turn or Watch was made; RouteID is the one that the
	// envelope names.
	Route   outbox.Route
	RouteID ids.RouteID
	// IdempotencyKey is the Host's to compare: the same for every attempt.
	IdempotencyKey string
	Source         outbox.Source
	Event          outbox.Event
}

func (j CallbackJob) check() error {
	const op = "wire.callback_job"
	if j.DeliveryID == "" || j.AttemptID == "" || j.Attempt < 1 || j.Event.ID == "" {
		return fault.New(fault.Invalid, op, "a callback job needs a delivery id, an attempt id, an attempt number and a message id")
	}
	if len(j.Event.Body) > maxBody {
		return fault.New(fault.Invalid, op, "the callback body has %d bytes, allowed are %d", len(j.Event.Body), maxBody)
	}
	if len(j.Event.Metadata) > maxEntries {
		return fault.New(fault.Invalid, op, "the event has %d metadata entries, allowed are %d", len(j.Event.Metadata), maxEntries)
	}
	text := map[string]string{
		"delivery_id": string(j.DeliveryID), "attempt_id": string(j.AttemptID), "message_id": j.Event.ID,
		"type": j.Event.Type, "kind": j.Event.Kind, "source.kind": j.Source.Kind, "source.id": j.Source.ID,
		"route_id": string(j.RouteID), "idempotency_key": j.IdempotencyKey,
	}
	for k, v := range j.Event.Metadata {
		text["metadata."+k] = v
	}
	return checkText(op, text)
}

func jobToProto(j CallbackJob) *callbackv1.Job {
	return &callbackv1.Job{
		DeliveryId: string(j.DeliveryID), AttemptId: string(j.AttemptID), AttemptNumber: int64(j.Attempt),
		Route: routeToProto(j.Route), Source: &callbackv1.Source{Kind: j.Source.Kind, Id: j.Source.ID}, RouteId: string(j.RouteID), IdempotencyKey: j.IdempotencyKey,
		Event: &callbackv1.Event{
			Id: j.Event.ID, Type: j.Event.Type, Kind: j.Event.Kind, Body: j.Event.Body,
			RequiresResponse: j.Event.RequiresResponse, Metadata: j.Event.Metadata,
		},
	}
}

func jobFromProto(p *callbackv1.Job) CallbackJob {
	e := p.GetEvent()
	return CallbackJob{
		DeliveryID: ids.DeliveryID(p.GetDeliveryId()), AttemptID: ids.AttemptID(p.GetAttemptId()), Attempt: int(p.GetAttemptNumber()),
		Route: routeFromProto(p.GetRoute()), Source: outbox.Source{Kind: p.GetSource().GetKind(), ID: p.GetSource().GetId()},
		RouteID: ids.RouteID(p.GetRouteId()), IdempotencyKey: p.GetIdempotencyKey(),
		Event: outbox.Event{
			ID: e.GetId(), Type: e.GetType(), Kind: e.GetKind(), Body: e.GetBody(),
			RequiresResponse: e.GetRequiresResponse(), Metadata: e.GetMetadata(),
		},
	}
}

func outcomeToProto(o outbox.Outcome) *callbackv1.Outcome {
	p := &callbackv1.Outcome{
		Kind: string(o.Kind), ErrorCode: o.ErrorCode, AcceptanceId: shown(o.AcceptanceID), Signal: o.Signal, At: timeToProto(o.At),
	}
	if o.ExitStatus != nil {
		status := int64(*o.ExitStatus)
		p.ExitStatus = &status
	}
	return p
}

// outcomeFromProto refuses a kind that it does not know: nothing may be read into it.
func outcomeFromProto(p *callbackv1.Outcome) (outbox.Outcome, error) {
	o := outbox.Outcome{
		Kind: outbox.OutcomeKind(p.GetKind()), ErrorCode: p.GetErrorCode(), AcceptanceID: p.GetAcceptanceId(),
		Signal: p.GetSignal(), At: timeFromProto(p.GetAt()),
	}
	if p.ExitStatus != nil {
		status := int(*p.ExitStatus)
		o.ExitStatus = &status
	}
	switch o.Kind {
	case outbox.Accepted, outbox.RetryableFailure, outbox.PermanentFailure, outbox.Uncertain:
		return o, nil
	}
	return outbox.Outcome{}, fault.New(CodeUncertain, "wire.outcome", "the worker answered an outcome of unknown kind")
}

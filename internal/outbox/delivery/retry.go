package delivery

import (
	"context"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Retry is the answer to a manual retry: what the record allowed, and the record after it.
type Retry struct {
	Disposition outbox.Disposition
	Delivery    outbox.Delivery
}

type retryRequest struct {
	source outbox.Source
	only   ids.DeliveryID     // "": the newest that leaves something to do
	answer chan<- retryAnswer // has room for one
}

type retryAnswer struct {
	Retry
	settled <-chan outbox.Delivery // of the attempt that this request began
	err     error
}

// RetryNow makes one attempt of a Turn's newest unsettled callback now, if its record
// allows it, and waits for the outcome until ctx ends; then the record shows the attempt
// in flight. What may have been heard is never sent again: the Disposition says why. A
// Turn without a callback is fault.NotFound; one of another Bridge that lives is
// fault.Conflict.
func (p *Pump) RetryNow(ctx context.Context, turn ids.TurnID) (Retry, error) {
	return p.retryNow(ctx, outbox.Source{Kind: outbox.SourceTurn, ID: string(turn)}, "")
}

// RetryDelivery is RetryNow for one callback of any source.
func (p *Pump) RetryDelivery(ctx context.Context, source outbox.Source, id ids.DeliveryID) (outbox.Disposition, outbox.Delivery, error) {
	r, err := p.retryNow(ctx, source, id)
	return r.Disposition, r.Delivery, err
}

func (p *Pump) retryNow(ctx context.Context, source outbox.Source, only ids.DeliveryID) (Retry, error) {
	p.mu.Lock()
	started := p.group != nil
	p.mu.Unlock()
	if !started {
		return Retry{}, fault.New(fault.Unavailable, "delivery.retry", "callbacks are not delivered yet").WithHint("try again when the Bridge is up")
	}
	answer := make(chan retryAnswer, 1)
	request := retryRequest{source, only, answer}
	select {
	case p.retries <- request:
	case <-p.ended:
		return Retry{}, fault.New(fault.Unavailable, "delivery.retry", "callbacks are not delivered any more").WithHint("the Bridge is stopping")
	case <-ctx.Done():
		return Retry{}, context.Cause(ctx)
	}
	a := <-answer // the loop answers every request that it took
	if a.err != nil || a.settled == nil {
		return a.Retry, a.err
	}
	select {
	case a.Delivery = <-a.settled:
	case <-ctx.Done():
	case <-p.ended:
		select {
		case a.Delivery = <-a.settled: // settled while the Pump stopped
		default:
		}
	}
	return a.Retry, nil
}

// retry serves one request. The attempt comes on top of MaxConcurrent: a person waits.
func (l *loop) retry(ctx context.Context, r retryRequest) {
	var a retryAnswer
	err := l.DB.Update(ctx, func(tx *store.Tx) (err error) {
		a.Retry, err = l.decide(tx, r.source, r.only)
		return err
	})
	if err != nil {
		r.answer <- retryAnswer{err: err}
		return
	}
	if a.Disposition == outbox.DoRetry {
		settled := make(chan outbox.Delivery, 1)
		a.settled = settled
		l.running[a.Delivery.DeliveryID] = append(l.running[a.Delivery.DeliveryID], settled)
		l.launch(a.Delivery)
	}
	r.answer <- a
}

// decide applies the retry table to the callbacks of a source, newest first, and does
// what the table says for the first one that leaves something to do.
func (l *loop) decide(tx *store.Tx, source outbox.Source, only ids.DeliveryID) (Retry, error) {
	const op = "delivery.retry"
	rows, err := outboxsql.RowsBySource(tx, source.Kind, source.ID)
	if err != nil {
		return Retry{}, err
	}
	if only != "" {
		rows = slices.DeleteFunc(rows, func(r outboxsql.Row) bool { return r.DeliveryID != only })
	}
	if len(rows) == 0 {
		return Retry{}, fault.New(fault.NotFound, op, "%s has no callback", source.ID).WithHint("agent_knock_knock_status shows what it waits for")
	}
	last := rows[len(rows)-1]
	found := Retry{Disposition: outbox.Decide(last.Delivery, tx.Now, true), Delivery: last.Delivery}
	for i := len(rows) - 1; i >= 0; i-- {
		r := rows[i]
		alive := true
		if r.Owner != l.Owner && r.Status.Open() {
			if alive, err = l.DB.Alive(r.Owner); err != nil {
				alive = true
			}
		}
		switch do := outbox.Decide(r.Delivery, tx.Now, alive); do {
		case outbox.DoWait:
			return Retry{do, r.Delivery}, nil
		case outbox.DoRetry, outbox.DoSettle, outbox.DoGiveUp:
			if r.Owner != l.Owner {
				if alive && r.Status.Open() {
					return Retry{}, fault.New(fault.Conflict, op, "the callback belongs to another Bridge that runs").WithHint("ask that Bridge")
				}
				if r, err = outboxsql.TakeOver(tx, r, l.Owner); err != nil {
					return Retry{}, err
				}
			}
			d, err := l.do(tx, do, r)
			return Retry{do, d}, err
		}
	}
	return found, nil
}

func (l *loop) do(tx *store.Tx, what outbox.Disposition, r outboxsql.Row) (outbox.Delivery, error) {
	if what == outbox.DoRetry {
		d, err := outboxsql.Claim(tx, r)
		if err != nil {
			return d, err
		}
		return outboxsql.MarkStarted(tx, d, l.Owner)
	}
	o := outbox.Lost(tx.Now)
	if what == outbox.DoSettle {
		o = *r.Outcome
	}
	d, _, err := outboxsql.Settle(tx, r.DeliveryID, r.AttemptID, l.Owner, o)
	return d, err
}

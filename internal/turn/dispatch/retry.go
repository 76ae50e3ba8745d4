package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// retryWait bounds one retry_callback; an attempt that takes longer is reported in flight.
const retryWait = 8 * time.Second

// Callbacks makes single attempts of callbacks.
type Callbacks interface {
	// RetryDelivery makes one attempt of a delivery now if its record allows it, and waits
	// for the outcome until ctx ends. The disposition says what the record allowed.
	RetryDelivery(ctx context.Context, source outbox.Source, id ids.DeliveryID) (outbox.Disposition, outbox.Delivery, error)
}

// RetryInput names whose callbacks are tried again: a Turn's or a Terminal Watch's.
type RetryInput struct {
	TurnID  ids.TurnID
	WatchID ids.WatchID
}

// Retried is what became of one callback.
type Retried struct {
	CallbackView
	Disposition    outbox.Disposition `json:"disposition"`
	LeaseExpiresAt time.Time          `json:"lease_expires_at,omitzero"` // in flight
	PID            int                `json:"pid,omitempty"`             // of the Bridge that makes the attempt
}

// RetryResult is what became of every callback that was not settled before.
type RetryResult struct {
	Attempted int // attempts that this call made
	Callbacks []Retried
}

// Retry tries the undelivered callbacks of a Turn or Watch again, oldest first, once each.
// Only the Host's program is run, never the agent. What the Host may have heard is not
// sent again, and neither is what it refused for good.
func (s *Service) Retry(ctx context.Context, in RetryInput) (RetryResult, error) {
	const op = "dispatch.retry"
	if err := s.DB.CheckWritable(); err != nil {
		return RetryResult{}, err
	}
	source, err := in.source()
	if err != nil {
		return RetryResult{}, err
	}
	if s.Callbacks == nil {
		return RetryResult{}, fault.New(fault.Unavailable, op, "callbacks are not delivered by this process").WithHint("call it on a Bridge")
	}
	rows, err := s.callbacksOf(ctx, source)
	if err != nil {
		return RetryResult{}, err
	}
	if len(rows) == 0 {
		return RetryResult{}, fault.New(fault.NotFound, op, "%s has no callback", source.ID).WithHint("agent_knock_knock_status shows what it waits for")
	}
	ctx, cancel := context.WithTimeout(ctx, retryWait)
	defer cancel()
	var out RetryResult
	for _, row := range rows {
		if row.Status == outbox.Delivered || row.Status == outbox.Superseded {
			continue
		}
		do, d, err := s.Callbacks.RetryDelivery(ctx, source, row.DeliveryID)
		if err != nil {
			if len(out.Callbacks) == 0 {
				return out, err
			}
			break // what was tried is told; the others are tried again next time
		}
		out.add(do, d, s.bridgePID(ctx, row.Owner))
	}
	if len(out.Callbacks) == 0 {
		last := rows[len(rows)-1]
		return out, fault.New(fault.Conflict, op, "every callback of %s is settled; the newest is %s", source.ID, last.Status).WithHint("nothing is left to send")
	}
	return out, out.refusal(op, source.ID)
}

func (in RetryInput) source() (outbox.Source, error) {
	switch {
	case (in.TurnID == "") == (in.WatchID == ""):
		return outbox.Source{}, fault.New(fault.Invalid, "dispatch.retry", "give exactly one of turn_id and watch_id").WithHint("agent_knock_knock_list shows both")
	case in.TurnID != "":
		return outbox.Source{Kind: outbox.SourceTurn, ID: string(in.TurnID)}, nil
	}
	return outbox.Source{Kind: outbox.SourceWatch, ID: string(in.WatchID)}, nil
}

func (r *RetryResult) add(do outbox.Disposition, d outbox.Delivery, pid int) {
	one := Retried{CallbackView: callbackView(d), Disposition: do}
	if do == outbox.DoRetry {
		r.Attempted++
	}
	if d.Status == outbox.Delivering {
		one.LeaseExpiresAt, one.PID = d.LeaseExpiresAt, pid
	}
	r.Callbacks = append(r.Callbacks, one)
}

// refusal is the error when nothing was tried, settled or is under way: then the callbacks
// are what they were, and stay so.
func (r RetryResult) refusal(op, id string) error {
	for _, c := range r.Callbacks {
		switch c.Disposition {
		case outbox.DoRetry, outbox.DoSettle, outbox.DoGiveUp, outbox.DoWait:
			return nil
		}
	}
	last := r.Callbacks[len(r.Callbacks)-1]
	switch last.Disposition {
	case outbox.DoLeave:
		return fault.New(fault.Conflict, op, "the Host may have heard the callback of %s: its outcome is uncertain", id).
			WithHint("read the result with agent_knock_knock_status instead; it is never sent twice")
	case outbox.DoRefuse:
		return fault.New(fault.Conflict, op, "the Host refused the callback of %s for good (%s)", id, last.LastError).
			WithHint("mend the Host's callback, and read the result with agent_knock_knock_status")
	case outbox.DoStop:
		return fault.New(fault.Conflict, op, "every automatic attempt of the callback of %s was made", id).
			WithHint("mend the Host's callback; a person may redrive it with the command line")
	}
	return fault.New(fault.Conflict, op, "the callback of %s cannot be sent again (%s)", id, last.Status).WithHint("read the result with agent_knock_knock_status")
}

func (s *Service) callbacksOf(ctx context.Context, source outbox.Source) (rows []outboxsql.Row, err error) {
	err = s.DB.View(ctx, func(tx *store.Tx) (err error) {
		if source.Kind == outbox.SourceTurn { // a Turn that is not there is not one without callbacks
			if _, err := turnsql.Get(tx, ids.TurnID(source.ID)); err != nil {
				return err
			}
		}
		rows, err = outboxsql.RowsBySource(tx, source.Kind, source.ID)
		return err
	})
	return rows, err
}

// bridgePID is the process of a Bridge, 0 when it is not known.
func (s *Service) bridgePID(ctx context.Context, id ids.BridgeID) (pid int) {
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) { pid, err = turnsql.BridgePID(tx, id); return err }); err != nil {
		return 0
	}
	return pid
}

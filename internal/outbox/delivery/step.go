package delivery

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// step settles what came back and claims what is due, in one transaction, then starts the
// claimed attempts. It returns when to look again; zero means when something happens.
func (l *loop) step(ctx context.Context) time.Time {
	free := l.MaxConcurrent - (len(l.running) - len(l.unsaved))
	may := l.granted || l.Worker.Serving()
	l.granted = false
	var claims []outbox.Delivery
	var due time.Time
	settled := make(map[ids.DeliveryID]outbox.Delivery)
	err := l.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if err = l.settle(tx, settled); err != nil {
			return err
		}
		if l.broken {
			if err = l.disown(tx); err != nil {
				return err
			}
		}
		if free <= 0 {
			return nil
		}
		if may {
			if claims, err = claim(tx, l.Owner, free); err != nil || len(claims) == free {
				return err // the end of one of these attempts is the next event
			}
		}
		due, _, err = outboxsql.NextDue(tx, l.Owner)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return time.Time{}
		}
		l.broken = true
		if fault.Is(err, store.CodeIncompatible) { // no wait mends that
			l.Log.Warn("callbacks are left to the newer release that took the Store", "error", err)
			return l.Clock.Now().Add(outgrownPause)
		}
		l.Log.Warn("the outbox could not be read or written; trying again", "error", err, "unsaved_outcomes", len(l.unsaved))
		return l.Clock.Now().Add(storePause)
	}
	l.broken = false
	l.forget(settled)
	if len(claims) > 0 {
		crashpoint.At(crashpoint.OutboxClaimed)
	}
	for _, d := range claims {
		l.launch(d)
	}
	if !may && !due.IsZero() && !due.After(l.Clock.Now()) {
		l.await(ctx)
		return time.Time{} // its answer is the next event
	}
	if soonest := l.Clock.Now().Add(storePause); !due.IsZero() && !due.After(l.Clock.Now()) {
		due = soonest // due, yet not claimable: the record is odd
	}
	return due
}

// await asks once for the worker. What is started counts as started even if this Bridge is
// killed while its worker still comes up, so nothing is claimed for a worker that is not
// there. When it does not come, the attempt itself says why.
func (l *loop) await(ctx context.Context) {
	if l.asked {
		return
	}
	l.asked = true
	go func() { // run waits for it
		if err := l.Worker.Ready(ctx); err != nil && ctx.Err() == nil {
			l.Log.Warn("no callback worker serves", "worker", "akk-callback", "error", err)
		}
		l.answered <- struct{}{}
	}()
}

// claim begins attempts and marks them started: the worker hears of them right after the
// commit, so both facts can share it.
func claim(tx *store.Tx, owner ids.BridgeID, limit int) ([]outbox.Delivery, error) {
	claims, err := outboxsql.ClaimDue(tx, owner, limit)
	if err != nil {
		return nil, err
	}
	for i, d := range claims {
		if claims[i], err = outboxsql.MarkStarted(tx, d, owner); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// settle stores the unsaved results and puts the new records into settled. A result whose
// attempt is not in flight any more changes nothing.
func (l *loop) settle(tx *store.Tx, settled map[ids.DeliveryID]outbox.Delivery) error {
	for _, r := range l.unsaved {
		id, attempt := r.delivery.DeliveryID, r.delivery.AttemptID
		var d outbox.Delivery
		var ok bool
		var err error
		if r.postpone != "" {
			d, ok, err = outboxsql.Postpone(tx, id, attempt, l.Owner, r.postpone)
		} else {
			d, ok, err = outboxsql.Settle(tx, id, attempt, l.Owner, r.outcome)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if !ok {
			l.Log.Warn("a callback outcome came too late and was dropped", "delivery", id, "attempt", attempt, "outcome", r.outcome.Kind)
		}
		settled[id] = d
	}
	return nil
}

// forget drops the settled attempts and tells those who wait for them.
func (l *loop) forget(settled map[ids.DeliveryID]outbox.Delivery) {
	for id, d := range settled {
		for _, c := range l.running[id] {
			c <- d // has room for one
		}
		delete(l.running, id)
		l.tell(d.Source)
		switch d.Status {
		case outbox.Delivered:
			l.Log.Info("callback delivered", "delivery", id, "message", d.Event.ID, "source", d.Source.ID, "attempt", d.Attempts)
		default:
			l.Log.Warn("callback not delivered", "delivery", id, "message", d.Event.ID, "source", d.Source.ID,
				"attempt", d.Attempts, "status", d.Status, "code", d.LastError)
		}
	}
	if len(settled) > 0 {
		crashpoint.At(crashpoint.OutboxSettled)
	}
	l.unsaved = nil
}

// tell says that an attempt of a source ended.
func (p *Pump) tell(s outbox.Source) {
	if p.Ended != nil {
		p.Ended(s)
	}
}

// disown settles attempts that the Store shows as ours and that we do not run: a commit
// that reported a failure and yet happened. They were never started, but nothing proves it
// to a reader of the Store, so they count as lost.
func (l *loop) disown(tx *store.Tx) error {
	rows, err := outboxsql.RunningOf(tx, l.Owner)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if _, ours := l.running[r.DeliveryID]; ours {
			continue
		}
		if _, _, err := outboxsql.Settle(tx, r.DeliveryID, r.AttemptID, l.Owner, outbox.Lost(tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

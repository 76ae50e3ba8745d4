package delivery

import (
	"context"
	"errors"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// recoverBatch is how many deliveries one transaction of Recover changes.
const recoverBatch = 200

// Recover is the startup pass. It takes over the open deliveries that dead Bridges left on
// our Profile and session, settles evidence that was stored and not settled, calls what
// was started without an outcome uncertain, and leaves the rest due. It sends nothing.
// It returns how many deliveries it took or settled. The deliveries of a Bridge that
// lives, or of which that cannot be told, are not touched. After Start it may be called
// again, to take over from Bridges that died since; then the Pump's own deliveries are in
// the Pump's hands: an attempt in flight is not a lost one.
func (p *Pump) Recover(ctx context.Context) (int, error) {
	p.mu.Lock()
	started := p.group != nil
	p.mu.Unlock()
	var owners []ids.BridgeID
	if err := p.DB.View(ctx, func(tx *store.Tx) (err error) {
		owners, err = outboxsql.OpenOwners(tx, p.Live)
		return err
	}); err != nil {
		return 0, err
	}
	total := 0
	var errs []error
	for _, owner := range owners {
		if owner == p.Owner && started {
			continue
		}
		if owner != p.Owner {
			alive, err := p.DB.Alive(owner)
			if err != nil || alive {
				errs = append(errs, err) // nil for a living owner
				continue
			}
		}
		n, err := p.recoverFrom(ctx, owner)
		total += n
		errs = append(errs, err)
	}
	return total, errors.Join(errs...)
}

func (p *Pump) recoverFrom(ctx context.Context, owner ids.BridgeID) (int, error) {
	total := 0
	var after ids.DeliveryID
	for {
		var rows []outboxsql.Row
		n := 0
		var told []outbox.Source
		err := p.DB.Update(ctx, func(tx *store.Tx) (err error) {
			n, told = 0, nil
			if rows, err = outboxsql.OpenOf(tx, owner, p.Live, after, recoverBatch); err != nil {
				return err
			}
			for _, r := range rows {
				changed, err := p.recoverOne(tx, r)
				if err != nil {
					return err
				}
				if changed {
					n++
					told = append(told, r.Source)
				}
			}
			return nil
		})
		if err != nil {
			return total, err
		}
		total += n
		for _, s := range told {
			p.tell(s)
		}
		if len(rows) < recoverBatch {
			return total, nil
		}
		after = rows[len(rows)-1].DeliveryID
	}
}

func (p *Pump) recoverOne(tx *store.Tx, r outboxsql.Row) (changed bool, err error) {
	if r.Owner != p.Owner {
		from := r.Owner
		if r, err = outboxsql.TakeOver(tx, r, p.Owner); err != nil {
			return false, err
		}
		p.Log.Info("took over a callback of a Bridge that ended", "delivery", r.DeliveryID, "from", from)
		changed = true
	}
	if r.Status != outbox.Delivering {
		return changed, nil
	}
	switch {
	case r.Outcome != nil:
		_, _, err = outboxsql.Settle(tx, r.DeliveryID, r.AttemptID, p.Owner, *r.Outcome)
	case outbox.Decide(r.Delivery, tx.Now, false) == outbox.DoGiveUp:
		_, _, err = outboxsql.Settle(tx, r.DeliveryID, r.AttemptID, p.Owner, outbox.Lost(tx.Now))
	default:
		_, _, err = outboxsql.Postpone(tx, r.DeliveryID, r.AttemptID, p.Owner, CodeOwnerGone)
	}
	return true, err
}

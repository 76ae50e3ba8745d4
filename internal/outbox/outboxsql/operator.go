package outboxsql

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// MaxList is the most deliveries of one listing; each may carry a body of 256 KiB.
const MaxList = 200

// List returns the newest deliveries in one of the statuses, newest first; without a
// status, all. Of each status only so many as are wanted are looked at.
func List(tx *store.Tx, statuses []outbox.Status, limit int) ([]Row, error) {
	limit = min(limit, MaxList)
	if len(statuses) == 0 {
		return list(tx, "ORDER BY o.seq DESC LIMIT ?", limit)
	}
	var newest []string
	var args []any
	for _, s := range statuses {
		newest = append(newest, "SELECT seq FROM (SELECT seq FROM outbox WHERE status = ? ORDER BY seq DESC LIMIT ?)")
		args = append(args, s, limit)
	}
	return list(tx, "WHERE o.seq IN ("+strings.Join(newest, " UNION ALL ")+") ORDER BY o.seq DESC LIMIT ?", append(args, limit)...)
}

// Redrive stores one more attempt of a dead delivery, see [outbox.Redrive]. Its owner, or
// the Bridge that takes over from it, sends it.
func Redrive(tx *store.Tx, id ids.DeliveryID, checked bool, alive Alive) (Row, error) {
	return operate(tx, id, alive, func(d outbox.Delivery) (outbox.Delivery, error) { return outbox.Redrive(d, checked, tx.Now) })
}

// Discard gives a delivery up, see [outbox.Discard].
func Discard(tx *store.Tx, id ids.DeliveryID, alive Alive) (Row, error) {
	return operate(tx, id, alive, func(d outbox.Delivery) (outbox.Delivery, error) { return outbox.Discard(d, tx.Now) })
}

// Alive reports whether a Bridge lives. With an error it cannot be told, which counts as yes.
type Alive func(ids.BridgeID) (bool, error)

func operate(tx *store.Tx, id ids.DeliveryID, alive Alive, rule func(outbox.Delivery) (outbox.Delivery, error)) (Row, error) {
	row, err := Get(tx, id)
	if err != nil {
		return row, err
	}
	if row, err = decideOrphan(tx, row, alive); err != nil {
		return row, err
	}
	was := row.AttemptID
	if row.Delivery, err = rule(row.Delivery); err != nil {
		return row, err
	}
	ok, err := save(tx, row.Delivery, row.Owner, was)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "outboxsql.operate", "delivery %s changed meanwhile", id).WithHint("look at it again")
	}
	return row, err
}

// decideOrphan ends the attempt of a dead Bridge, and its record, with [outbox.Orphaned].
func decideOrphan(tx *store.Tx, row Row, alive Alive) (Row, error) {
	if row.Status != outbox.Delivering {
		return row, nil
	}
	if lives, err := alive(row.Owner); err != nil || lives {
		return row, nil // what cannot be told is alive
	}
	d, ok, err := change(tx, row.DeliveryID, row.AttemptID, row.Owner, func(d outbox.Delivery) (outbox.Delivery, bool) {
		next := outbox.Orphaned(d, tx.Now)
		return next, next.Status != outbox.Delivering
	})
	if err == nil && ok {
		row.Delivery = d
	}
	return row, err
}

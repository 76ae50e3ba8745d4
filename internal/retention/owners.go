package retention

import (
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// owners forgets Sessions and a batch of Bridges that nothing names any more. more reports
// that there may be other Bridges.
func (p *Pruner) owners(tx *store.Tx, before time.Time, sum *Removed) (more bool, err error) {
	if !p.DryRun {
		n, err := turnsql.DropSessions(tx, before)
		if err != nil {
			return false, err
		}
		sum.Sessions += n
	} else if p.bridge == "" { // a count is of all: once
		if sum.Sessions, err = countSessions(tx, before); err != nil {
			return false, err
		}
	}
	list := turnsql.OldBridges
	if p.DryRun {
		list = freedBridges
	}
	old, err := list(tx, before, p.bridge, batch)
	if err != nil {
		return false, err
	}
	for _, id := range old {
		p.bridge = id
		if alive, err := p.DB.Alive(id); err != nil || alive {
			continue // what cannot be told is alive
		}
		if !p.DryRun {
			if err := turnsql.DropBridge(tx, id); err != nil {
				return false, err
			}
		}
		sum.Bridges++
	}
	return len(old) == batch, nil
}

// A dry run forgets no source, so what their owners are left with is asked of them: these are
// the conditions of step and drop, ?1 being the moment.
var (
	heard = ` AND NOT EXISTS (SELECT 1 FROM outbox u WHERE u.source_kind = '$KIND' AND u.source_id = $ID
		AND u.status NOT IN ('` + string(outbox.Delivered) + `', '` + string(outbox.Superseded) + `', '` + string(outbox.Discarded) + `'))`
	turnGoes  = `(t.blocking = 0 AND t.updated_at < ?1` + of(heard, outbox.SourceTurn, "t.turn_id") + `)`
	watchGoes = `(w.active = 0 AND w.updated_at < ?1` + of(heard, outbox.SourceWatch, "w.watch_id") + `)`
)

func of(sql, kind, id string) string {
	return strings.NewReplacer("$KIND", kind, "$ID", id).Replace(sql)
}

// countSessions counts what turnsql.DropSessions would remove after the run.
func countSessions(tx *store.Tx, before time.Time) (n int64, err error) {
	err = tx.QueryRow(`SELECT count(*) FROM session s WHERE s.status <> 'bound' AND s.updated_at < ?1
		AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_id = s.session_id AND NOT `+turnGoes+`)`, store.Millis(before)).Scan(&n)
	return n, err
}

// freedBridges returns what turnsql.OldBridges would return after the run.
func freedBridges(tx *store.Tx, before time.Time, after ids.BridgeID, limit int) ([]ids.BridgeID, error) {
	return table.Column[ids.BridgeID](tx.Query(`SELECT b.bridge_id FROM bridge b WHERE b.started_at < ?1 AND b.bridge_id > ?2
		AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.owner = b.bridge_id AND NOT `+turnGoes+`)
		AND NOT EXISTS (SELECT 1 FROM watch w WHERE w.owner = b.bridge_id AND NOT `+watchGoes+`)
		AND NOT EXISTS (SELECT 1 FROM native_transition n WHERE n.owner = b.bridge_id AND NOT (n.open = 0 AND n.updated_at < ?1))
		AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.owner = b.bridge_id
			AND NOT (o.source_kind = '`+outbox.SourceTurn+`' AND EXISTS (SELECT 1 FROM turn t WHERE t.turn_id = o.source_id AND `+turnGoes+`))
			AND NOT (o.source_kind = '`+outbox.SourceWatch+`' AND EXISTS (SELECT 1 FROM watch w WHERE w.watch_id = o.source_id AND `+watchGoes+`)))
		ORDER BY b.bridge_id LIMIT ?3`, store.Millis(before), after, limit))
}

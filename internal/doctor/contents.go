package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// contents looks for what waits, what is dead and what nobody owns.
func (r *MachineReport) contents(tx *store.Tx, db *store.DB) error {
	if err := r.callbacks(tx, db); err != nil {
		return err
	}
	if err := r.leases(tx); err != nil {
		return err
	}
	return r.owners(tx, db)
}

// callbacks tells those that are on their way from those that no Bridge comes for and
// those that nobody will deliver.
func (r *MachineReport) callbacks(tx *store.Tx, db *store.DB) error {
	counts, err := outboxsql.Counts(tx, "")
	if err != nil {
		return err
	}
	left, err := abandoned(tx, db)
	if err != nil {
		return err
	}
	counts[outbox.Pending] -= left
	dead := worded(counts, outbox.Failed, outbox.Unproved, outbox.Exhausted)
	moving := worded(counts, outbox.Pending, outbox.Delivering)
	if dead != "" {
		r.put(CheckCallbacks, Failed, "see `agent-knock-knock outbox list --dead`, then redrive or discard each", "callbacks that nobody will deliver: %s", dead)
	}
	if left > 0 {
		r.put(CheckCallbacks, Warned, "start a Bridge with their Profile and session, or discard them: `agent-knock-knock outbox list`",
			"%d callbacks wait for a Bridge of their session, and none has come for %s", left, abandonedAfter)
	}
	switch {
	case moving != "":
		r.put(CheckCallbacks, OK, "", "on their way: %s", moving)
	case dead == "" && left == 0:
		r.put(CheckCallbacks, OK, "", "none waits")
	}
	return nil
}

// worded says how many there are of each status that has any.
func worded(counts map[outbox.Status]int, statuses ...outbox.Status) string {
	var words []string
	for _, s := range statuses {
		if n := counts[s]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(words, ", ")
}

// abandonedAfter is how long a callback may wait for a Bridge of its own session before it
// looks like one that nobody comes for: a Host that names each session anew.
const abandonedAfter = 10 * time.Minute

// abandoned counts the callbacks that wait for a Bridge that ended a while ago.
func abandoned(tx *store.Tx, db *store.DB) (n int, err error) {
	waiting, err := outboxsql.WaitingSince(tx, tx.Now.Add(-abandonedAfter))
	if err != nil {
		return 0, err
	}
	for owner, count := range waiting {
		if lives, err := db.Alive(owner); err == nil && !lives {
			n += count
		}
	}
	return n, nil
}

// leases: an attempt whose lease ran out is decided by its Bridge's next pass, a few
// seconds later; one that stays has no Bridge.
func (r *MachineReport) leases(tx *store.Tx) error {
	stale, err := outboxsql.StaleLeases(tx)
	if err != nil {
		return err
	}
	if stale > 0 {
		r.put(CheckLeases, Failed, "start a Bridge of that Profile and session again, it decides them; when none will come, see `agent-knock-knock outbox show ID`, "+
			"then `outbox discard ID --yes`, or look in the Host and `outbox redrive ID --i-have-checked`", "%d callback attempts ran out of their lease and nobody decided them", stale)
		return nil
	}
	r.put(CheckLeases, OK, "", "none is stale")
	return nil
}

// owners: a Turn that keeps its terminal while its Bridge is gone waits for the next
// Bridge of its Profile.
func (r *MachineReport) owners(tx *store.Tx, db *store.DB) error {
	rows, err := turnsql.Blocking(tx)
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	orphans, damaged := []string{}, 0
	for _, row := range rows {
		if row.Damaged != nil {
			damaged++
			continue
		}
		lives, asked := alive[string(row.Owner)]
		if !asked {
			if lives, err = db.Alive(row.Owner); err != nil {
				lives = true // not known is not dead
			}
			alive[string(row.Owner)] = lives
		}
		if !lives {
			orphans = append(orphans, string(row.Turn.ID))
		}
	}
	switch {
	case damaged > 0:
		r.put(CheckOwners, Failed, "close them with agent_knock_knock_close; their records stay", "%d Turns have damaged records", damaged)
	case len(orphans) > 0:
		r.put(CheckOwners, Warned, "start a Bridge of their Profile; it takes them over", "%d Turns wait for a Bridge: %s", len(orphans), strings.Join(orphans[:min(len(orphans), 3)], ", "))
	default:
		r.put(CheckOwners, OK, "", "%d Turns run, each has its Bridge", len(rows))
	}
	return nil
}

package turnsql

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Reopen saves a plan that makes a released Turn keep its terminal again. When another Turn
// keeps the terminal or the Session, the error has turn.CodeBlocked and names it; when a
// newer Turn of the Session exists, it has turn.CodeNotAllowed.
func Reopen(tx *store.Tx, r Row, p turn.Plan) error {
	const op = "turnsql.reopen"
	t := p.Turn
	held, ok, err := one(tx, "WHERE blocking = 1 AND (endpoint_key = ? OR session_id = ?) LIMIT 1", r.Terminal, t.SessionID)
	if err != nil {
		return err
	}
	if ok {
		return fault.New(turn.CodeBlocked, op, "the terminal is kept by turn %s (%s, %s)", held.Turn.ID, held.Turn.Status, held.Turn.Stage).
			WithHint("%s", held.Turn.NextStep())
	}
	newest, err := newestOf(tx, t.SessionID)
	if err != nil {
		return err
	}
	if newest != t.ID {
		return fault.New(turn.CodeNotAllowed, op, "turn %s is not the newest of its session; turn %s is", t.ID, newest).WithHint("respond to that one, or send a new task")
	}
	return Save(tx, r, p)
}

func newestOf(tx *store.Tx, session ids.SessionID) (id ids.TurnID, err error) {
	err = tx.QueryRow("SELECT turn_id FROM turn WHERE session_id = ? ORDER BY created_at DESC, turn_id DESC LIMIT 1", session).Scan(&id)
	return id, err
}

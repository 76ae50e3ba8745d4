// Package turnsql is the SQL of Turns, Sessions and Bridges: plain functions on a
// transaction. It decides nothing; the rules are in package turn.
package turnsql

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Row is a Turn with its owner. Fence grows when another Bridge takes the Turn over; a
// write with an old fence is refused.
type Row struct {
	Turn  turn.Turn
	Owner ids.BridgeID
	Fence int64
	// Terminal is the key of the terminal that the Turn keeps or kept.
	Terminal string
	// Damaged says why the stored state cannot be read; then Turn holds what its columns
	// say and nothing else. One bad record must not hide the others, and it still keeps
	// its terminal.
	Damaged error
}

// Insert stores a new Turn of a plan made by turn.Reserve. When another Turn keeps the
// terminal, the error has turn.CodeBlocked and names it.
func Insert(tx *store.Tx, p turn.Plan, owner ids.BridgeID) (Row, error) {
	const op = "turnsql.insert"
	t := p.Turn
	held, ok, err := one(tx, "WHERE blocking = 1 AND (endpoint_key = ? OR session_id = ?) LIMIT 1", t.TerminalKey(), t.SessionID)
	if err != nil {
		return Row{}, err
	}
	if ok {
		return Row{}, fault.New(turn.CodeBlocked, op, "the terminal is kept by turn %s (%s, %s)", held.Turn.ID, held.Turn.Status, held.Turn.Stage).
			WithHint("%s", held.Turn.NextStep())
	}
	state, err := json.Marshal(t)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", op, err)
	}
	_, err = tx.Exec(`INSERT INTO turn (turn_id, session_id, call_key, owner, fence, endpoint_key, status, blocking, seq, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.SessionID, t.CallKey, owner, t.TerminalKey(), t.Status, t.Status.Blocking(), t.Seq, string(state), store.Millis(t.CreatedAt), store.Millis(t.UpdatedAt))
	if err != nil {
		return Row{}, err
	}
	return Row{Turn: t, Owner: owner, Fence: 1, Terminal: t.TerminalKey()}, appendEvents(tx, t.ID, p.Events)
}

// Save appends the plan's events and writes the Turn, if r is still its owner and nobody
// wrote in between. An empty plan writes nothing.
func Save(tx *store.Tx, r Row, p turn.Plan) error {
	const op = "turnsql.save"
	if len(p.Events) == 0 {
		return nil
	}
	t := p.Turn
	state, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	res, err := tx.Exec(`UPDATE turn SET status = ?, blocking = ?, seq = ?, state = ?, updated_at = ?
		WHERE turn_id = ? AND owner = ? AND fence = ? AND seq = ?`,
		t.Status, t.Status.Blocking(), t.Seq, string(state), store.Millis(t.UpdatedAt), t.ID, r.Owner, r.Fence, r.Turn.Seq)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return stale(t.ID, err)
	}
	return appendEvents(tx, t.ID, p.Events)
}

func appendEvents(tx *store.Tx, id ids.TurnID, events []turn.Event) error {
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("turnsql.append: %w", err)
		}
		if _, err := tx.Exec("INSERT INTO turn_event (turn_id, seq, at, kind, data) VALUES (?, ?, ?, ?, ?)",
			id, e.Seq, store.Millis(e.At), e.Kind, string(data)); err != nil {
			return err
		}
	}
	return nil
}

const selectRow = "SELECT state, owner, fence, turn_id, session_id, endpoint_key, status, created_at, updated_at FROM turn "

type scanner interface{ Scan(...any) error }

func scanRow(s scanner) (Row, error) {
	var r Row
	var state string
	var created, updated int64
	columns := turn.Turn{Stage: turn.Uncertain, Reason: "the record of this turn in the Store is damaged"}
	if err := s.Scan(&state, &r.Owner, &r.Fence, &columns.ID, &columns.SessionID, &r.Terminal, &columns.Status, &created, &updated); err != nil {
		return Row{}, err
	}
	err := json.Unmarshal([]byte(state), &r.Turn)
	if err == nil && (r.Turn.ID != columns.ID || r.Turn.Status != columns.Status) {
		err = fmt.Errorf("state and columns differ")
	}
	if err != nil {
		columns.CreatedAt, columns.UpdatedAt = store.Time(created), store.Time(updated)
		r.Turn = columns
		r.Damaged = fault.Wrap(err, store.CodeStorage, "turnsql.scan", "the record of turn %s cannot be read", columns.ID).WithHint("look at its terminal; run doctor on the Store")
	}
	return r, nil
}

func one(tx *store.Tx, where string, args ...any) (Row, bool, error) {
	r, err := scanRow(tx.QueryRow(selectRow+where, args...))
	if store.NotFound(err) {
		return Row{}, false, nil
	}
	return r, err == nil, err
}

// Get returns a Turn; a missing one is fault.NotFound, a damaged one store.CodeStorage.
func Get(tx *store.Tx, id ids.TurnID) (Row, error) {
	r, ok, err := one(tx, "WHERE turn_id = ?", id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "turnsql.get", "there is no turn %q", id).WithHint("agent_knock_knock_list shows the turns")
	}
	if err == nil {
		err = r.Damaged
	}
	return r, err
}

// CloseDamaged closes a Turn whose record cannot be read, by its columns alone. A row that
// changed since it was read is fault.Conflict.
func CloseDamaged(tx *store.Tx, r Row) error {
	res, err := tx.Exec("UPDATE turn SET status = ?, blocking = 0, fence = fence + 1, updated_at = ? WHERE turn_id = ? AND owner = ? AND fence = ?",
		turn.Closed, store.Millis(tx.Now), r.Turn.ID, r.Owner, r.Fence)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fault.New(fault.Conflict, "turnsql.close_damaged", "turn %s was changed meanwhile", r.Turn.ID).WithHint("look at it again")
}

// ByCallKey returns the Turn that a tool call made, if it made one.
func ByCallKey(tx *store.Tx, key string) (Row, bool, error) {
	r, ok, err := one(tx, "WHERE call_key = ?", key)
	if err == nil && ok {
		err = r.Damaged
	}
	return r, ok, err
}

// List returns Turns in the order of their last change, newest first. Damaged ones are
// among them.
func List(tx *store.Tx, where string, limit int, args ...any) ([]Row, error) {
	rows, err := tx.Query(selectRow+where+" ORDER BY updated_at DESC, turn_id DESC LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Row
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Blocking returns every Turn that keeps a terminal, newest change first. There are at
// most as many as terminals, so the limit is a guard only.
func Blocking(tx *store.Tx) ([]Row, error) { return List(tx, "WHERE blocking = 1", 10_000) }

// NewestOn returns the newest Turn of each of the given terminals, in one query.
func NewestOn(tx *store.Tx, terminalKeys []string) (map[string]Row, error) {
	out := make(map[string]Row, len(terminalKeys))
	if len(terminalKeys) == 0 {
		return out, nil
	}
	keys, err := json.Marshal(terminalKeys)
	if err != nil {
		return nil, err
	}
	rows, err := List(tx, `WHERE turn_id IN (SELECT (SELECT turn_id FROM turn WHERE endpoint_key = k.value ORDER BY created_at DESC, turn_id DESC LIMIT 1) FROM json_each(?) k)`,
		len(terminalKeys), string(keys))
	for _, r := range rows {
		out[r.Terminal] = r
	}
	return out, err
}

// Events returns the newest limit events of a Turn, oldest first.
func Events(tx *store.Tx, id ids.TurnID, limit int) ([]turn.Event, error) {
	rows, err := tx.Query("SELECT data FROM (SELECT seq, data FROM turn_event WHERE turn_id = ? ORDER BY seq DESC LIMIT ?) ORDER BY seq", id, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []turn.Event
	for rows.Next() {
		var data string
		var e turn.Event
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, fault.Wrap(err, store.CodeStorage, "turnsql.events", "a stored event cannot be read")
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// TakeOver makes to the owner of a Turn that from owned, with the next fence.
func TakeOver(tx *store.Tx, r Row, to ids.BridgeID) (Row, error) {
	res, err := tx.Exec("UPDATE turn SET owner = ?, fence = fence + 1 WHERE turn_id = ? AND owner = ? AND fence = ?", to, r.Turn.ID, r.Owner, r.Fence)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return r, stale(r.Turn.ID, err)
	}
	r.Owner, r.Fence = to, r.Fence+1
	return r, nil
}

func stale(id ids.TurnID, cause error) error {
	e := fault.New(turn.CodeStaleOwner, "turnsql", "turn %s has another owner by now", id)
	e.Err = cause
	return e
}

// Package nativesql is the SQL of Transitions: plain functions on a transaction. It decides
// nothing; the rules are in package native.
package nativesql

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Row is a Transition with its owner. Fence grows when another Bridge takes it over; a
// write with an old fence is refused.
type Row struct {
	Transition native.Transition
	Owner      ids.BridgeID
	Fence      int64
	// Terminal is the key of the terminal that the Transition keeps or kept.
	Terminal string
	// Damaged says why the stored state cannot be read; then Transition holds what its
	// columns say and nothing else. It still keeps its terminal.
	Damaged error
}

// CheckFree refuses with native.CodeOpen when a Transition keeps the terminal. Whoever
// makes something that types asks it in the transaction that makes it.
func CheckFree(tx *store.Tx, terminalKey string) error {
	held, ok, err := OpenOn(tx, terminalKey)
	if err != nil || !ok {
		return err
	}
	return fault.New(native.CodeOpen, "nativesql.check", "the terminal is kept by transition %s (%s, %s)", held.Transition.ID, held.Transition.Operation, held.Transition.Status).
		WithHint("%s", held.Transition.NextStep())
}

// CheckNoTurn refuses with turn.CodeBlocked when a Turn keeps the terminal: a change of
// thread under a running task would lose it.
func CheckNoTurn(tx *store.Tx, terminalKey string) error {
	var id ids.TurnID
	var status string
	err := tx.QueryRow("SELECT turn_id, status FROM turn WHERE blocking = 1 AND endpoint_key = ?", terminalKey).Scan(&id, &status)
	if store.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(turn.CodeBlocked, "nativesql.check", "the terminal is kept by turn %s (%s)", id, status).
		WithHint("wait for its callback, or look at it with agent_knock_knock_status")
}

// Insert stores a new Transition of a plan made by native.Prepare. A terminal that another
// Transition or a Turn keeps is refused by name.
func Insert(tx *store.Tx, p native.Plan, owner ids.BridgeID) (Row, error) {
	const op = "nativesql.insert"
	t := p.Transition
	if err := CheckFree(tx, t.TerminalKey()); err != nil {
		return Row{}, err
	}
	if err := CheckNoTurn(tx, t.TerminalKey()); err != nil {
		return Row{}, err
	}
	state, err := json.Marshal(t)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", op, err)
	}
	_, err = tx.Exec(`INSERT INTO native_transition (transition_id, endpoint_key, call_key, owner, fence, operation, status, open, seq, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.TerminalKey(), t.CallKey, owner, t.Operation, t.Status, t.Open(), t.Seq, string(state), store.Millis(t.CreatedAt), store.Millis(t.UpdatedAt))
	if err != nil {
		return Row{}, err
	}
	return Row{Transition: t, Owner: owner, Fence: 1, Terminal: t.TerminalKey()}, appendEvents(tx, t.ID, p.Events)
}

// Save appends the plan's events and writes the Transition, if r is still its owner and
// nobody wrote in between. An empty plan writes nothing.
func Save(tx *store.Tx, r Row, p native.Plan) (Row, error) {
	const op = "nativesql.save"
	if len(p.Events) == 0 {
		return r, nil
	}
	t := p.Transition
	state, err := json.Marshal(t)
	if err != nil {
		return r, fmt.Errorf("%s: %w", op, err)
	}
	res, err := tx.Exec(`UPDATE native_transition SET status = ?, open = ?, seq = ?, state = ?, updated_at = ?
		WHERE transition_id = ? AND owner = ? AND fence = ? AND seq = ?`,
		t.Status, t.Open(), t.Seq, string(state), store.Millis(t.UpdatedAt), t.ID, r.Owner, r.Fence, r.Transition.Seq)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return r, stale(t.ID, err)
	}
	r.Transition = t
	return r, appendEvents(tx, t.ID, p.Events)
}

func appendEvents(tx *store.Tx, id ids.TransitionID, events []native.Event) error {
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("nativesql.append: %w", err)
		}
		if _, err := tx.Exec("INSERT INTO native_transition_event (transition_id, seq, at, kind, data) VALUES (?, ?, ?, ?, ?)",
			id, e.Seq, store.Millis(e.At), e.Kind, string(data)); err != nil {
			return err
		}
	}
	return nil
}

const selectRow = "SELECT state, owner, fence, endpoint_key, transition_id, operation, status, seq, created_at, updated_at FROM native_transition "

type scanner interface{ Scan(...any) error }

func scanRow(s scanner) (Row, error) {
	var r Row
	var state string
	var columns native.Transition
	var created, updated int64
	if err := s.Scan(&state, &r.Owner, &r.Fence, &r.Terminal, &columns.ID, &columns.Operation, &columns.Status, &columns.Seq, &created, &updated); err != nil {
		return r, err
	}
	err := json.Unmarshal([]byte(state), &r.Transition)
	if err == nil && (r.Transition.ID != columns.ID || r.Transition.Status != columns.Status || r.Transition.Seq != columns.Seq) {
		err = fmt.Errorf("state and columns differ")
	}
	if err != nil {
		columns.CreatedAt, columns.UpdatedAt = store.Time(created), store.Time(updated)
		r.Transition = columns
		r.Damaged = fault.Wrap(err, store.CodeStorage, "nativesql.scan", "the record of transition %s cannot be read", columns.ID).WithHint("look at its terminal; run doctor on the Store")
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

// Get returns a Transition; a missing one is fault.NotFound, a damaged one store.CodeStorage.
func Get(tx *store.Tx, id ids.TransitionID) (Row, error) {
	r, ok, err := one(tx, "WHERE transition_id = ?", id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "nativesql.get", "there is no transition %q", id).WithHint("agent_knock_knock_list shows what keeps a terminal")
	}
	if err == nil {
		err = r.Damaged
	}
	return r, err
}

// ByCallKey returns the Transition that a tool call made, if it made one.
func ByCallKey(tx *store.Tx, key string) (Row, bool, error) {
	r, ok, err := one(tx, "WHERE call_key = ?", key)
	if err == nil && ok {
		err = r.Damaged
	}
	return r, ok, err
}

// OpenOn returns the Transition that keeps a terminal. It may be a damaged one.
func OpenOn(tx *store.Tx, terminalKey string) (Row, bool, error) {
	return one(tx, "WHERE open = 1 AND endpoint_key = ?", terminalKey)
}

// Open returns every Transition that keeps a terminal. There are at most as many as
// terminals, so the limit is a guard only.
func Open(tx *store.Tx) ([]Row, error) {
	rows, err := tx.Query(selectRow + "WHERE open = 1 ORDER BY created_at, transition_id LIMIT 10000")
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

// LastCommitted returns the newest committed Transition of a terminal.
func LastCommitted(tx *store.Tx, terminalKey string) (Row, bool, error) {
	r, ok, err := one(tx, "WHERE endpoint_key = ? AND status = ? ORDER BY created_at DESC, transition_id DESC LIMIT 1", terminalKey, native.Committed)
	if err == nil && ok && r.Damaged != nil {
		return Row{}, false, nil
	}
	return r, ok, err
}

// Events returns the journal of a Transition.
func Events(tx *store.Tx, id ids.TransitionID) ([]native.Event, error) {
	rows, err := tx.Query("SELECT data FROM native_transition_event WHERE transition_id = ? ORDER BY seq LIMIT 1000", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []native.Event
	for rows.Next() {
		var data string
		var e native.Event
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, fault.Wrap(err, store.CodeStorage, "nativesql.events", "a stored event cannot be read")
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// TakeOver makes to the owner of a Transition, with the next fence.
func TakeOver(tx *store.Tx, r Row, to ids.BridgeID) (Row, error) {
	res, err := tx.Exec("UPDATE native_transition SET owner = ?, fence = fence + 1 WHERE transition_id = ? AND owner = ? AND fence = ?", to, r.Transition.ID, r.Owner, r.Fence)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return r, stale(r.Transition.ID, err)
	}
	r.Owner, r.Fence = to, r.Fence+1
	return r, nil
}

// SameProfile reports whether two Bridges serve the same Profile: what a dead one left, the
// other may take over.
func SameProfile(tx *store.Tx, a, b ids.BridgeID) (bool, error) {
	var n int
	err := tx.QueryRow("SELECT count(DISTINCT profile_id) FROM bridge WHERE bridge_id IN (?, ?)", a, b).Scan(&n)
	return n == 1, err
}

func stale(id ids.TransitionID, cause error) error {
	e := fault.New(turn.CodeStaleOwner, "nativesql", "transition %s has another owner by now", id)
	e.Err = cause
	return e
}

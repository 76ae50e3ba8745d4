// Package watchsql is the SQL of Terminal Watches: plain functions on a transaction. It
// decides nothing; the rules are in package watch.
package watchsql

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
	"github.com/agent-knock-knock/akk/internal/watch"
)

// Row is a Watch with its owner. Fence grows when another Bridge takes the Watch over; a
// write with an old fence is refused.
type Row struct {
	Watch watch.Watch
	Owner ids.BridgeID
	Fence int64
	// Terminal is the key of the terminal that is watched.
	Terminal string
	// Damaged says why the stored state cannot be read; then Watch holds what its columns
	// say and nothing else. One bad record must not hide the others.
	Damaged error
}

// Insert stores a new Watch of a plan made by watch.Create. When an active Watch observes
// the task already, the error has watch.CodeActive and names it.
func Insert(tx *store.Tx, p watch.Plan, owner ids.BridgeID) (Row, error) {
	const op = "watchsql.insert"
	w := p.Watch
	held, ok, err := one(tx, "WHERE active = 1 AND task_key = ? LIMIT 1", w.TaskKey)
	if err != nil {
		return Row{}, err
	}
	if ok {
		return Row{}, Conflict(held.Watch.ID)
	}
	state, err := json.Marshal(w)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", op, err)
	}
	_, err = tx.Exec(`INSERT INTO watch (watch_id, task_key, endpoint_key, call_key, owner, fence, route_id, status, active, seq, state, deadline_at, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.ID, w.TaskKey, w.TerminalKey(), w.CallKey, owner, w.Route, w.Status, w.Status == watch.Active, w.Seq, string(state),
		store.Millis(w.DeadlineAt), store.Millis(w.CreatedAt), store.Millis(w.UpdatedAt))
	if err != nil {
		return Row{}, err
	}
	return Row{Watch: w, Owner: owner, Fence: 1, Terminal: w.TerminalKey()}, appendEvents(tx, w.ID, p.Events)
}

// Conflict is the error of a second Watch of a task.
func Conflict(id ids.WatchID) error {
	return fault.New(watch.CodeActive, "watchsql.insert", "%s watches this task already", id).
		WithHint("its callback will come; agent_knock_knock_unwatch ends it")
}

// Save appends the plan's events and writes the Watch, if r is still its owner and nobody
// wrote in between. An empty plan writes nothing.
func Save(tx *store.Tx, r Row, p watch.Plan) error {
	const op = "watchsql.save"
	if len(p.Events) == 0 {
		return nil
	}
	w := p.Watch
	state, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	res, err := tx.Exec(`UPDATE watch SET status = ?, active = ?, seq = ?, state = ?, updated_at = ?
		WHERE watch_id = ? AND owner = ? AND fence = ? AND seq = ?`,
		w.Status, w.Status == watch.Active, w.Seq, string(state), store.Millis(w.UpdatedAt), w.ID, r.Owner, r.Fence, r.Watch.Seq)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return stale(w.ID, err)
	}
	return appendEvents(tx, w.ID, p.Events)
}

func appendEvents(tx *store.Tx, id ids.WatchID, events []watch.Event) error {
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("watchsql.append: %w", err)
		}
		if _, err := tx.Exec("INSERT INTO watch_event (watch_id, seq, at, kind, data) VALUES (?, ?, ?, ?, ?)",
			id, e.Seq, store.Millis(e.At), e.Kind, string(data)); err != nil {
			return err
		}
	}
	return nil
}

const selectRow = "SELECT state, owner, fence, watch_id, task_key, route_id, endpoint_key, status, deadline_at, created_at, updated_at FROM watch "

type scanner interface{ Scan(...any) error }

func scanRow(s scanner) (Row, error) {
	var r Row
	var state string
	var deadline, created, updated int64
	var columns watch.Watch
	if err := s.Scan(&state, &r.Owner, &r.Fence, &columns.ID, &columns.TaskKey, &columns.Route, &r.Terminal, &columns.Status, &deadline, &created, &updated); err != nil {
		return Row{}, err
	}
	err := json.Unmarshal([]byte(state), &r.Watch)
	if err == nil && (r.Watch.ID != columns.ID || r.Watch.Status != columns.Status || r.Watch.TaskKey != columns.TaskKey) {
		err = fmt.Errorf("state and columns differ")
	}
	if err != nil {
		columns.DeadlineAt, columns.CreatedAt, columns.UpdatedAt = store.Time(deadline), store.Time(created), store.Time(updated)
		r.Watch = columns
		r.Damaged = fault.Wrap(err, store.CodeStorage, "watchsql.scan", "the record of watch %s cannot be read", columns.ID).WithHint("run doctor on the Store")
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

// Get returns a Watch; a missing one is fault.NotFound, a damaged one store.CodeStorage.
func Get(tx *store.Tx, id ids.WatchID) (Row, error) {
	r, ok, err := one(tx, "WHERE watch_id = ?", id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "watchsql.get", "there is no watch %q", id).WithHint("agent_knock_knock_list shows the watches")
	}
	if err == nil {
		err = r.Damaged
	}
	return r, err
}

// ByCallKey returns the Watch that a tool call made, if it made one.
func ByCallKey(tx *store.Tx, key string) (Row, bool, error) {
	r, ok, err := one(tx, "WHERE call_key = ?", key)
	if err == nil && ok {
		err = r.Damaged
	}
	return r, ok, err
}

// List returns Watches in the order of their last change, newest first. Damaged ones are
// among them.
func List(tx *store.Tx, where string, limit int, args ...any) ([]Row, error) {
	rows, err := tx.Query(selectRow+where+" ORDER BY updated_at DESC, watch_id DESC LIMIT ?", append(args, limit)...)
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

// activeLimit guards against a Store that is out of hand.
const activeLimit = 10_000

// ActiveOf returns the active Watches of a Bridge.
func ActiveOf(tx *store.Tx, owner ids.BridgeID) ([]Row, error) {
	return List(tx, "WHERE active = 1 AND owner = ?", activeLimit, owner)
}

// ActiveOn returns the newest active Watch of each of the given terminals.
func ActiveOn(tx *store.Tx, terminalKeys []string) (map[string]Row, error) {
	out := make(map[string]Row)
	if len(terminalKeys) == 0 {
		return out, nil
	}
	keys, err := json.Marshal(terminalKeys)
	if err != nil {
		return nil, err
	}
	rows, err := List(tx, "WHERE active = 1 AND endpoint_key IN (SELECT value FROM json_each(?))", activeLimit, string(keys))
	for _, r := range rows {
		if _, newer := out[r.Terminal]; !newer {
			out[r.Terminal] = r
		}
	}
	return out, err
}

// Events returns the newest limit events of a Watch, oldest first.
func Events(tx *store.Tx, id ids.WatchID, limit int) ([]watch.Event, error) {
	rows, err := tx.Query("SELECT data FROM (SELECT seq, data FROM watch_event WHERE watch_id = ? ORDER BY seq DESC LIMIT ?) ORDER BY seq", id, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []watch.Event
	for rows.Next() {
		var data string
		var e watch.Event
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, fault.Wrap(err, store.CodeStorage, "watchsql.events", "a stored event cannot be read")
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// OwnersOfActive returns the Bridges other than self that own an active Watch and serve
// the same Profile: what a dead one left, self may take over.
func OwnersOfActive(tx *store.Tx, self ids.BridgeID, profileID string) ([]ids.BridgeID, error) {
	return table.Column[ids.BridgeID](tx.Query(`SELECT DISTINCT owner FROM watch JOIN bridge ON bridge_id = owner WHERE active = 1 AND owner <> ? AND profile_id = ?`, self, profileID))
}

// TakeOver makes to the owner of a Watch, with the next fence.
func TakeOver(tx *store.Tx, r Row, to ids.BridgeID) (Row, error) {
	res, err := tx.Exec("UPDATE watch SET owner = ?, fence = fence + 1 WHERE watch_id = ? AND owner = ? AND fence = ?", to, r.Watch.ID, r.Owner, r.Fence)
	if err != nil {
		return r, err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return r, stale(r.Watch.ID, err)
	}
	r.Owner, r.Fence = to, r.Fence+1
	return r, nil
}

func stale(id ids.WatchID, cause error) error {
	e := fault.New(watch.CodeStale, "watchsql", "watch %s has another owner by now", id)
	e.Err = cause
	return e
}

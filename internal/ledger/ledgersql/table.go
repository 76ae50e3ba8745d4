// Package ledgersql is the SQL of the coordination ledger: plain functions on *store.Tx
// that read and write the records of package ledger, and the counters beside them.
//
// It decides nothing: a rule that refuses belongs to ledger, the order of steps in a
// transaction to coord. Counters and what is derived from them are kept by triggers of
// the migrations, so that no writer can forget them.
package ledgersql

import (
	"database/sql"
	"database/sql/driver"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
)

//go:embed migrations/*.sql
var files embed.FS

// Writer is the writer protocol of these tables.
const Writer = 1

// Tables is the set that a Store must carry.
func Tables() store.Set {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the directory is embedded in this file
	}
	return store.Set{Name: "ledger", Files: sub, Writer: Writer}
}

// table binds a Go record to its columns. bind returns a pointer for every column, used
// for scanning and, since database/sql follows pointers, for writing.
type table[T any] struct {
	name string
	keys []string // the primary key, a prefix of cols
	cols []string
	bind func(*T) []any
}

func (t table[T]) selectSQL() string {
	return "SELECT " + strings.Join(t.cols, ", ") + " FROM " + t.name + " "
}

func (t table[T]) insert(tx *store.Tx, v T) error {
	_, err := tx.Exec("INSERT INTO "+t.name+" ("+strings.Join(t.cols, ", ")+") VALUES (?"+strings.Repeat(", ?", len(t.cols)-1)+")", t.bind(&v)...)
	return err
}

// update writes every column of the row with v's key. It reports whether there is one.
func (t table[T]) update(tx *store.Tx, v T) (bool, error) {
	args := t.bind(&v)
	n := len(t.keys)
	set := strings.Join(t.cols[n:], " = ?, ") + " = ?"
	r, err := tx.Exec("UPDATE "+t.name+" SET "+set+" WHERE "+t.where(), append(append([]any{}, args[n:]...), args[:n]...)...)
	if err != nil {
		return false, err
	}
	return affected(r)
}

// put inserts or replaces.
func (t table[T]) put(tx *store.Tx, v T) error {
	if there, err := t.update(tx, v); err != nil || there {
		return err
	}
	return t.insert(tx, v)
}

func (t table[T]) where() string { return strings.Join(t.keys, " = ? AND ") + " = ?" }

func (t table[T]) get(tx *store.Tx, key ...any) (v T, ok bool, err error) {
	return t.first(tx, "WHERE "+t.where(), key...)
}

func (t table[T]) first(tx *store.Tx, tail string, args ...any) (v T, ok bool, err error) {
	err = tx.QueryRow(t.selectSQL()+tail, args...).Scan(t.bind(&v)...)
	if store.NotFound(err) {
		return v, false, nil
	}
	return v, err == nil, err
}

func (t table[T]) list(tx *store.Tx, tail string, args ...any) ([]T, error) {
	rows, err := tx.Query(t.selectSQL()+tail, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, t.bind)
}

func collect[T any](rows *sql.Rows, bind func(*T) []any) ([]T, error) {
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		var v T
		if err := rows.Scan(bind(&v)...); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func (t table[T]) delete(tx *store.Tx, key ...any) (bool, error) {
	r, err := tx.Exec("DELETE FROM "+t.name+" WHERE "+t.where(), key...)
	if err != nil {
		return false, err
	}
	return affected(r)
}

func affected(r sql.Result) (bool, error) {
	n, err := r.RowsAffected()
	return n > 0, err
}

// when stores a time in nanoseconds, the zero time as 0.
type when struct{ t *time.Time }

// Scan implements sql.Scanner.
func (w when) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*w.t = timeOf(n)
	return nil
}

// Value implements driver.Valuer.
func (w when) Value() (driver.Value, error) { return nanos(*w.t), nil }

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// packed stores a value as JSON text, an empty one as ”.
type packed struct{ v any }

func pack[T any](v *T) packed { return packed{v} }

// Scan implements sql.Scanner.
func (p packed) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("a list is stored as %T", v)
	}
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), p.v)
}

// Value implements driver.Valuer.
func (p packed) Value() (driver.Value, error) {
	b, err := json.Marshal(p.v)
	if err != nil {
		return nil, err
	}
	switch s := string(b); s {
	case "null", "[]", "{}":
		return "", nil
	default:
		return s, nil
	}
}

// Page bounds a list. Limit 0 means all.
type Page struct{ Limit, Offset int }

func (p Page) sql() string {
	if p.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d OFFSET %d", p.Limit, max(p.Offset, 0))
}

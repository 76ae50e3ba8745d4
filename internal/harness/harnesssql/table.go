// Package harnesssql is the SQL of headless agents: plain functions on *store.Tx that read
// and write the records of package harness.
//
// It decides nothing and keeps no order of steps: a rule that refuses belongs to harness,
// a transaction to sessions. It must never be given an answer to a login, an idempotency
// key or the text of a message; it stores hashes of the last two.
package harnesssql

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

// Tables is the set that the harness's database carries.
func Tables() store.Set {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the directory is embedded in this file
	}
	return store.Set{Name: "harness", Files: sub, Writer: Writer}
}

// table binds a record to its columns; the first column is the key. bind returns a pointer
// for every column, used for scanning and, since database/sql follows pointers, for
// writing.
type table[T any] struct {
	name string
	cols []string
	bind func(*T) []any
}

func (t table[T]) insert(tx *store.Tx, v T) error {
	_, err := tx.Exec("INSERT INTO "+t.name+" ("+strings.Join(t.cols, ", ")+") VALUES (?"+strings.Repeat(", ?", len(t.cols)-1)+")", t.bind(&v)...)
	return err
}

// update writes every column of the row with v's key. A missing row is an error.
func (t table[T]) update(tx *store.Tx, v T) error {
	args := t.bind(&v)
	r, err := tx.Exec("UPDATE "+t.name+" SET "+strings.Join(t.cols[1:], " = ?, ")+" = ? WHERE "+t.cols[0]+" = ?", append(args[1:len(args):len(args)], args[0])...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%s: %d rows changed instead of one: %w", t.name, n, err)
	}
	return nil
}

func (t table[T]) first(tx *store.Tx, tail string, args ...any) (v T, ok bool, err error) {
	err = tx.QueryRow("SELECT "+strings.Join(t.cols, ", ")+" FROM "+t.name+" "+tail, args...).Scan(t.bind(&v)...)
	if store.NotFound(err) {
		return v, false, nil
	}
	return v, err == nil, err
}

func (t table[T]) list(tx *store.Tx, tail string, args ...any) ([]T, error) {
	rows, err := tx.Query("SELECT "+strings.Join(t.cols, ", ")+" FROM "+t.name+" "+tail, args...)
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

// when stores a time, the zero time as 0.
type when struct{ t *time.Time }

// Scan implements sql.Scanner.
func (w when) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*w.t = store.Time(n)
	return nil
}

// Value implements driver.Valuer.
func (w when) Value() (driver.Value, error) { return store.Millis(*w.t), nil }

// packed stores a value as JSON text, an empty one as ”.
type packed struct{ v any }

func pack[T any](v *T) packed { return packed{v} }

// Scan implements sql.Scanner.
func (p packed) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("a value is stored as %T", v)
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

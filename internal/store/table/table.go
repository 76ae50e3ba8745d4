// Package table binds Go records to the columns of a table of the Store, so that a wing
// names its columns once. It writes and reads one row or a list of rows; queries that join
// or count are a wing's own SQL.
//
// It must never know a record, a rule or a migration.
package table

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
)

// Table is one table whose rows are a T each.
type Table[T any] struct {
	name string
	keys []string
	cols []string
	bind func(*T) []any
}

// New returns the table. keys is its primary key and a prefix of cols; bind returns a
// pointer for every column, used for scanning and, since database/sql follows pointers,
// for writing.
func New[T any](name string, keys, cols []string, bind func(*T) []any) Table[T] {
	return Table[T]{name, keys, cols, bind}
}

func (t Table[T]) selection() string {
	return "SELECT " + strings.Join(t.cols, ", ") + " FROM " + t.name + " "
}

func (t Table[T]) where() string { return strings.Join(t.keys, " = ? AND ") + " = ?" }

// Insert adds a row. A key that is taken is fault.AlreadyExists.
func (t Table[T]) Insert(tx *store.Tx, v T) error {
	_, err := tx.Exec("INSERT INTO "+t.name+" ("+strings.Join(t.cols, ", ")+") VALUES ("+t.marks()+")", t.bind(&v)...)
	return err
}

// InsertDerived is Insert with one column more, which is none of the record's: SQL makes it
// of args.
func (t Table[T]) InsertDerived(tx *store.Tx, v T, column, expression string, args ...any) error {
	_, err := tx.Exec("INSERT INTO "+t.name+" ("+strings.Join(t.cols, ", ")+", "+column+") VALUES ("+t.marks()+", ("+expression+"))", append(t.bind(&v), args...)...)
	return err
}

func (t Table[T]) marks() string { return "?" + strings.Repeat(", ?", len(t.cols)-1) }

// Update writes every column of the row with v's key. It reports whether there is one.
func (t Table[T]) Update(tx *store.Tx, v T) (bool, error) {
	args := t.bind(&v)
	n := len(t.keys)
	r, err := tx.Exec("UPDATE "+t.name+" SET "+strings.Join(t.cols[n:], " = ?, ")+" = ? WHERE "+t.where(), append(append([]any{}, args[n:]...), args[:n]...)...)
	if err != nil {
		return false, err
	}
	return affected(r)
}

// Put replaces the row with v's key, or adds it.
func (t Table[T]) Put(tx *store.Tx, v T) error {
	if there, err := t.Update(tx, v); err != nil || there {
		return err
	}
	return t.Insert(tx, v)
}

// Get reads the row with the key.
func (t Table[T]) Get(tx *store.Tx, key ...any) (v T, ok bool, err error) {
	return t.First(tx, "WHERE "+t.where(), key...)
}

// First reads the first row that the end of a query finds, such as "WHERE x = ?".
func (t Table[T]) First(tx *store.Tx, tail string, args ...any) (v T, ok bool, err error) {
	err = tx.QueryRow(t.selection()+tail, args...).Scan(t.bind(&v)...)
	if store.NotFound(err) {
		return v, false, nil
	}
	return v, err == nil, err
}

// List reads the rows that the end of a query finds. The caller bounds it.
func (t Table[T]) List(tx *store.Tx, tail string, args ...any) ([]T, error) {
	rows, err := tx.Query(t.selection()+tail, args...)
	if err != nil {
		return nil, err
	}
	return Collect(rows, t.bind)
}

// Delete removes the row with the key and reports whether there was one.
func (t Table[T]) Delete(tx *store.Tx, key ...any) (bool, error) {
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

// Column reads the only column of what a query found, and closes it: Column[ID](tx.Query(…)).
func Column[T any](rows *sql.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return Collect(rows, func(v *T) []any { return []any{v} })
}

// Collect reads rows of a query of a wing's own and closes them. No rows give an empty list.
func Collect[T any](rows *sql.Rows, bind func(*T) []any) ([]T, error) {
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

// Packed stores a value as JSON text, an empty one as an empty text.
type Packed struct{ v any }

// Pack binds a value to a column of JSON text.
func Pack[T any](v *T) Packed { return Packed{v} }

// Scan implements sql.Scanner.
func (p Packed) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("JSON text is stored as %T", v)
	}
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), p.v)
}

// Value implements driver.Valuer.
func (p Packed) Value() (driver.Value, error) {
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

// Moment stores a time as a whole number, the zero time as 0.
type Moment struct {
	t    *time.Time
	from func(int64) time.Time
	to   func(time.Time) int64
}

// Millis binds a time to a column of milliseconds, as [store.Millis] writes them.
func Millis(t *time.Time) Moment { return Moment{t, store.Time, store.Millis} }

// Nanos binds a time to a column of nanoseconds.
func Nanos(t *time.Time) Moment { return Moment{t, timeOf, NanosOf} }

// Scan implements sql.Scanner.
func (m Moment) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*m.t = m.from(n)
	return nil
}

// Value implements driver.Valuer.
func (m Moment) Value() (driver.Value, error) { return m.to(*m.t), nil }

// The first and the last time of a column of nanoseconds.
var firstNano, lastNano = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// NanosOf is a time as a column of nanoseconds holds it: one that it cannot hold is the
// nearest that it can.
func NanosOf(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(firstNano):
		return math.MinInt64
	case t.After(lastNano):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

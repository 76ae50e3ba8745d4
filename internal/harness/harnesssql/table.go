// Package harnesssql is the SQL of headless agents: plain functions on *store.Tx that read
// and write the records of package harness.
//
// It decides nothing and keeps no order of steps: a rule that refuses belongs to harness,
// a transaction to sessions. It must never be given an answer to a login, an idempotency
// key or the text of a message; it stores hashes of the last two.
package harnesssql

import (
	"database/sql/driver"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
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

// saved makes an update of a row that is not there an error.
func saved(there bool, err error) error {
	if err == nil && !there {
		err = fault.New(store.CodeStorage, "harnesssql.save", "a record that was to be replaced is not in the database")
	}
	return err
}

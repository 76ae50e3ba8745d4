// Package ledgersql is the SQL of the coordination ledger: plain functions on *store.Tx
// that read and write the records of package ledger, and the counters beside them.
//
// It decides nothing: a rule that refuses belongs to ledger, the order of steps in a
// transaction to coord. Counters and what is derived from them are kept by triggers of
// the migrations, so that no writer can forget them.
package ledgersql

import (
	"embed"
	"fmt"
	"io/fs"

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

// Page bounds a list. Limit 0 means all.
type Page struct{ Limit, Offset int }

func (p Page) sql() string {
	if p.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d OFFSET %d", p.Limit, max(p.Offset, 0))
}

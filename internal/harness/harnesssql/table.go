// Package harnesssql is the SQL of headless agents: plain functions on *store.Tx that read
// and write the records of package harness.
//
// It decides nothing and keeps no order of steps: a rule that refuses belongs to harness,
// a transaction to sessions. It must never be given an answer to a login, an idempotency
// key or the text of a message; it stores hashes of the last two.
package harnesssql

import (
	"embed"
	"io/fs"

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

// saved makes an update of a row that is not there an error.
func saved(there bool, err error) error {
	if err == nil && !there {
		err = fault.New(store.CodeStorage, "harnesssql.save", "a record that was to be replaced is not in the database")
	}
	return err
}

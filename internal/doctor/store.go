package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// What is said of each check of the Store while nobody knows where it is.
const (
	noStore     = "no Store directory is known: HOME is not an absolute path"
	noStoreHint = "set HOME, or name the directory with --store-dir"
)

// store opens the Store for reading and looks at what waits in it.
func (m Machine) store(ctx context.Context, r *MachineReport) {
	if m.StoreDir == "" {
		r.put(CheckStore, Unchecked, noStoreHint, noStore)
		return
	}
	file := filepath.Join(m.StoreDir, store.FileName)
	db, err := store.Open(ctx, m.StoreDir, store.Options{ReadOnly: true})
	switch {
	case fault.Is(err, fault.NotFound):
		r.put(CheckStore, OK, "", "none yet in %s", m.StoreDir)
		return
	case fault.Is(err, store.CodeIncompatible): // of a format that this release cannot even read
		r.putErr(CheckStore, Failed, err)
		return
	case err != nil:
		r.unread(file, err)
		return
	}
	defer db.Close()
	info, err := os.Stat(file)
	if err != nil {
		r.unread(file, err)
		return
	}
	if err := db.CheckRelease(); err != nil {
		r.putErr(CheckStore, Failed, err)
		return
	}
	inside := MachineReport{OK: true} // its rows come after the Store's own
	if err := db.View(ctx, func(tx *store.Tx) error { return inside.contents(tx, db) }); err != nil {
		r.unread(file, err)
	} else {
		r.put(CheckStore, OK, "", "readable, %s", size(uint64(info.Size())))
	}
	r.Checks, r.OK = append(r.Checks, inside.Checks...), r.OK && inside.OK
}

// sqliteError is SQLite's code of a statement that does not fit the file (sqlite.org/rescode.html):
// our statements fit every Store that is whole.
const sqliteError = 1

// unread says why the Store's content is not known, and what to do: no log of a Bridge
// holds what doctor found.
func (r *MachineReport) unread(file string, err error) {
	const mend = "end its Bridges, then put a copy of it back, or move it away with its -wal: the next Bridge makes a new one"
	var driver interface {
		error
		Code() int
	}
	coded := errors.As(err, &driver)
	code, msg, hint := fault.Public(err)
	switch {
	case store.Damaged(err):
		hint = mend
		if code == fault.Internal {
			msg = file + " is damaged: " + driver.Error()
		}
	case coded && driver.Code()&0xff == sqliteError:
		code, msg, hint = store.CodeStorage, file+" is damaged, or not a Store of this product: "+driver.Error(), mend+"; if it is of another program, pass another --store-dir"
	case code == fault.Internal:
		msg, hint = err.Error(), ""
	}
	if hint == "" {
		hint = "look at the disk and the permissions of " + filepath.Dir(file) + ", or name another directory with --store-dir"
	}
	r.Checks = append(r.Checks, Check{Name: CheckStore, Status: Unchecked, Code: code, Detail: msg, Hint: hint})
	r.OK = false
}

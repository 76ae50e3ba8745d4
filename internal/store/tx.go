package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Tx is one transaction. Now is its one timestamp, UTC in whole milliseconds: every row
// that a transaction writes carries the same time.
type Tx struct {
	Now time.Time
	ctx context.Context
	tx  *sql.Tx
}

// Exec runs a statement. Errors carry codes: a broken UNIQUE or PRIMARY KEY rule is
// fault.AlreadyExists, a broken FOREIGN KEY or CHECK is fault.Invalid.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	r, err := t.tx.ExecContext(t.ctx, query, args...)
	if err != nil {
		return nil, mapError(err, "store.exec")
	}
	return r, nil
}

// Query runs a query; the caller closes the rows and asks rows.Err.
func (t *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	r, err := t.tx.QueryContext(t.ctx, query, args...)
	if err != nil {
		return nil, mapError(err, "store.query")
	}
	return r, nil
}

// QueryRow runs a query for one row. Scan of a missing row gives sql.ErrNoRows, which
// [NotFound] recognises.
func (t *Tx) QueryRow(query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.ctx, query, args...)
}

// NotFound reports whether a Scan found no row.
func NotFound(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// Millis is how times are stored: unix milliseconds, 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time is the inverse of Millis, in UTC.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// mapError gives SQLite's result codes our codes, once, so that no caller reads text.
func mapError(err error, op string) error {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return fault.Wrap(err, fault.AlreadyExists, op, "the record exists already")
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL:
		return fault.Wrap(err, fault.Invalid, op, "the record breaks a rule of the Store")
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(err, CodeBusy, op, "the Store is locked by another process").WithHint("try again in a moment")
	case sqlite3.SQLITE_FULL:
		return fault.Wrap(err, CodeStorage, op, "the disk of the Store is full").WithHint("free space; nothing of this call was stored")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return fault.Wrap(err, CodeUnwritable, op, "the Store cannot be written").WithHint("check the disk and its permissions, or pass another --store-dir")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.Wrap(err, CodeStorage, op, "the Store file is damaged").WithHint("%s", damagedHint)
	case sqlite3.SQLITE_IOERR:
		return fault.Wrap(err, CodeStorage, op, "the Store file cannot be read or written").WithHint("check the disk; run doctor")
	}
	return err
}

// damagedHint is what to do about a damaged file.
const damagedHint = "end what uses the file, then put a copy of it back, or move it away with its -wal and begin a new one"

// Damaged reports whether err says that the bytes of a file are not those of a database any
// more. Its code is CodeStorage, as that of a disk that fails.
func Damaged(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	code := se.Code() & 0xff
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// named gives what opening the file found damaged the name of the file.
func (db *DB) named(err error) error {
	if !Damaged(err) {
		return err
	}
	return fault.Wrap(err, CodeStorage, "store.open", "%s is damaged, or was never a database", db.file).WithHint("%s", damagedHint)
}

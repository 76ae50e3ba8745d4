package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// newSuffix marks a database that is being made. It is nobody's until it has its name.
const newSuffix = ".new"

// create makes a fresh database beside its place, without a wait for the disk, and gives it
// its name when it is whole and on the disk: a crash, or a full disk, leaves no file that is
// half a Store, and a start waits for the disk twice instead of eleven times. The caller
// holds the Store's lock, so a leftover is of a process that died.
func (db *DB) create(ctx context.Context) error {
	const op = "store.create"
	// A log without its database would be replayed into the new one.
	for _, stale := range []string{db.file + "-wal", db.file + "-shm", db.file + "-journal",
		db.file + newSuffix, db.file + newSuffix + "-wal", db.file + newSuffix + "-shm", db.file + newSuffix + "-journal"} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.Wrap(err, CodeUnwritable, op, "cannot remove %s: %v", stale, rootCause(err)).WithHint("remove it, or pass another --store-dir")
		}
	}
	fresh := db.file + newSuffix
	if err := createPrivate(fresh); err != nil {
		return err
	}
	if err := db.fill(ctx, fresh); err != nil {
		os.Remove(fresh)
		return err
	}
	if err := publish(fresh, db.file); err != nil {
		os.Remove(fresh)
		return fault.Wrap(err, CodeStorage, op, "cannot put the new Store in its place: %v", rootCause(err)).WithHint("check the disk")
	}
	return nil
}

// fill makes every table in the file at path and leaves it in WAL mode, closed.
func (db *DB) fill(ctx context.Context, path string) (err error) {
	const op = "store.create"
	db.write = openPool(newDSN(path), 1)
	defer func() {
		if closeErr := db.write.Close(); err == nil && closeErr != nil {
			err = mapError(closeErr, op)
		}
		db.write = nil
	}()
	if err := migrate(ctx, db); err != nil {
		return err
	}
	var mode string
	if err := db.write.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return mapError(err, op)
	}
	return nil
}

// publish brings the content of from to the disk and gives it the name to. Nothing has that
// name: the caller looked, under the lock.
func publish(from, to string) error {
	if err := syncPath(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncPath(filepath.Dir(to))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// newDSN is of a database that nobody else opens and that a crash may destroy.
func newDSN(path string) string {
	return dsn(path, "_busy_timeout=5000&_journal_mode=MEMORY&_synchronous=OFF&_foreign_keys=on&_txlock=immediate&_dqs=0&_defensive=1&_pragma=auto_vacuum(2)")
}

package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// PresenceDir of a Store holds one lock file per Bridge, ID.lock. Holding the flock is being alive: it ends
// with the process, whatever ended it, and no pid can be reused into it.
const PresenceDir = "bridges"

// Announce makes the Bridge visibly alive on this Store until release is called or the
// process ends.
func (db *DB) Announce(id ids.BridgeID) (release func(), err error) {
	const op = "store.announce"
	dir := filepath.Join(db.dir, PresenceDir)
	if err := prepareDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, string(id)+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, CodeUnwritable, op, "cannot create %s: %v", path, rootCause(err))
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fault.Wrap(err, fault.Conflict, op, "another process uses the identity %s", id)
	}
	return func() {
		_ = os.Remove(path) // best effort: a file without a holder means the same as no file
		f.Close()
	}, nil
}

// Alive reports whether a Bridge lives. An error means that it cannot be told; callers
// treat that as alive.
func (db *DB) Alive(id ids.BridgeID) (bool, error) {
	path := filepath.Join(db.dir, PresenceDir, string(id)+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, fault.Wrap(err, CodeStorage, "store.alive", "cannot open %s", path)
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return true, fault.Wrap(err, CodeStorage, "store.alive", "cannot lock %s", path)
	}
	return false, nil
}

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// prepareDir makes dir and repairs its mode. A symlink is refused: whoever can place one
// would choose where our records go.
func prepareDir(dir string) error {
	const op = "store.open"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(err, CodeUnwritable, op, "cannot make the Store directory %s: %v", dir, rootCause(err)).
			WithHint("pass a writable --store-dir")
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fault.Wrap(err, CodeUnwritable, op, "cannot look at the Store directory %s", dir)
	}
	if !info.IsDir() {
		return fault.New(CodeUnsafe, op, "the Store directory %s is a link or not a directory", dir).WithHint("name the real directory")
	}
	if !ownedByUs(info) {
		return fault.New(CodeUnsafe, op, "the Store directory %s belongs to another user", dir).WithHint("pass a --store-dir of your own")
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fault.Wrap(err, CodeUnsafe, op, "the Store directory %s is open to others", dir).WithHint("chmod 700 it")
		}
	}
	return nil
}

// createPrivate makes an empty file of mode 0600; one that is there is refused. SQLite
// gives its -wal and -shm files the mode of the database.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		// Nobody has the database open yet, so closing this descriptor drops no lock.
		return f.Close()
	}
	return fault.Wrap(err, CodeUnwritable, "store.open", "cannot create %s: %v", path, rootCause(err)).WithHint("pass a writable --store-dir")
}

func checkPrivate(path string) error {
	const op = "store.open"
	info, err := os.Lstat(path)
	if err != nil {
		return fault.Wrap(err, CodeUnwritable, op, "cannot look at %s", path)
	}
	if !info.Mode().IsRegular() || !ownedByUs(info) {
		return fault.New(CodeUnsafe, op, "%s is not a regular file of this user", path).WithHint("remove it or pass another --store-dir")
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return fault.Wrap(err, CodeUnsafe, op, "%s is open to others", path).WithHint("chmod 600 it")
		}
	}
	return nil
}

func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func rootCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

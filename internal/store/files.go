package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// prepareStoreDir is prepareDir for the directory of a Store: one that holds files and none
// of ours is somebody else's, and stays as it is.
func prepareStoreDir(dir string) error {
	const op = "store.open"
	foreign, err := isForeign(dir)
	if err != nil {
		return fault.Wrap(err, CodeUnwritable, op, "cannot look into the Store directory %s: %v", dir, rootCause(err)).WithHint("pass another --store-dir")
	}
	if foreign {
		return fault.New(CodeUnsafe, op, "the directory %s holds files and no Store", dir).WithHint("name a new or an empty directory with --store-dir")
	}
	return prepareDir(dir)
}

// isForeign reports that dir is a directory that is not empty and holds nothing of a Store.
func isForeign(dir string) (bool, error) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !ownedByUs(info) {
		return false, nil // prepareDir makes it, or says what it is
	}
	if _, err := os.Lstat(filepath.Join(dir, LockName)); err == nil {
		return false, nil // the first thing that a Store has: other starts look no further
	}
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		// Whoever removed a Store by hand may have left its log, or only the Bridges' locks.
		if name == LockName || name == PresenceDir || strings.HasPrefix(name, FileName) {
			return false, nil
		}
	}
	return len(names) > 0, err
}

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

// checkOurs refuses a file that is not a regular one of this user. It changes nothing.
func checkOurs(path string) (fs.FileInfo, error) {
	const op = "store.open"
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fault.Wrap(err, CodeUnwritable, op, "cannot look at %s", path)
	}
	if !info.Mode().IsRegular() || !ownedByUs(info) {
		return nil, fault.New(CodeUnsafe, op, "%s is not a regular file of this user", path).WithHint("remove it or pass another --store-dir")
	}
	return info, nil
}

// makePrivate is checkOurs for who may write: a mode that lets others in is repaired.
func makePrivate(path string) error {
	info, err := checkOurs(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return fault.Wrap(err, CodeUnsafe, "store.open", "%s is open to others", path).WithHint("chmod 600 it")
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

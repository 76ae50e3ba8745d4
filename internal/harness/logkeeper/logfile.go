package logkeeper

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	// maxLog is the size at which a log is put aside; keptLogs of them are kept.
	maxLog   = 32 << 20
	keptLogs = 3
)

// PrivateDir makes a directory of mode 0700 that is this user's own and no link.
func PrivateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user", path)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700)
	}
	return nil
}

// OpenPrivate opens a file of mode 0600 that is this user's own and no link.
func OpenPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !info.Mode().IsRegular() || !ok || int(st.Uid) != os.Getuid() {
			err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		} else if info.Mode().Perm() != 0o600 {
			err = f.Chmod(0o600)
		}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// logFile is an append-only file. When it is full it gets another name; no byte in it is
// ever changed.
type logFile struct {
	path string
	most int64

	mu   sync.Mutex
	f    *os.File
	size int64
}

func openLog(path string, most int64) (*logFile, error) {
	l := &logFile{path: path, most: most}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *logFile) open() (err error) {
	if l.f, err = OpenPrivate(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE); err != nil {
		return err
	}
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	l.size = info.Size()
	return nil
}

// Write appends all of p or fails.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.most {
		if err := l.putAside(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *logFile) putAside() error {
	if err := l.f.Close(); err != nil {
		return err
	}
	for k := keptLogs - 1; k >= 1; k-- {
		if err := os.Rename(fmt.Sprintf("%s.%d", l.path, k), fmt.Sprintf("%s.%d", l.path, k+1)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := os.Rename(l.path, l.path+".1"); err != nil && !os.IsNotExist(err) {
		return err
	}
	return l.open()
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// WriteAtomic replaces a private file as a whole.
func WriteAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort: the failure is what counts
	}
	return err
}

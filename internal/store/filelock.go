package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// fileLock is an advisory flock. It dies with its process, so no dead owner can hold it,
// and the kernel queues its waiters. Its methods are for one caller at a time.
type fileLock struct {
	path string

	mu      sync.Mutex
	waiting *waiter // the one that is blocked in the kernel, nil for none
}

// waiter is a blocking flock. It cannot be cancelled, so it outlives a caller that gives up,
// and the next caller takes it over: however long another process is stopped while it
// holds the lock, one thread and one descriptor wait for it.
type waiter struct {
	file   *os.File
	wanted bool          // somebody waits for done
	done   chan struct{} // closed when the lock is held, or err is set
	err    error
}

func openFileLock(path string) (*fileLock, error) {
	l := &fileLock{path: path}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return l, f.Close()
}

func (l *fileLock) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, fault.Wrap(err, CodeUnsafe, "store.lock", "%s is a link", l.path).WithHint("remove it")
	}
	return nil, fault.Wrap(err, CodeUnwritable, "store.lock", "cannot open %s: %v", l.path, rootCause(err)).WithHint("pass a writable --store-dir")
}

// acquire takes the lock within wait. Each acquisition has a descriptor of its own:
// flock belongs to the open file, so a waiter that gave up can never release, by closing
// its own descriptor, what a later one got.
func (l *fileLock) acquire(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	w, unlock, err := l.enter()
	if err != nil || unlock != nil {
		return unlock, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
		l.leave(w)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, context.Cause(ctx)
		}
		// The caller's time is over, but it is the other process that took it.
		return nil, fault.Wrap(context.Cause(ctx), CodeBusy, "store.lock", "another process keeps the Store locked").WithHint("run doctor to see who")
	case <-timer.C:
		l.leave(w)
		return nil, fault.New(CodeBusy, "store.lock", "another process kept the Store locked for %s", wait).WithHint("run doctor to see who")
	}
	if w.err != nil {
		w.file.Close()
		return nil, fault.Wrap(w.err, CodeStorage, "store.lock", "cannot lock the Store")
	}
	return func() { w.file.Close() }, nil // closing the only descriptor drops the lock
}

// enter takes the lock at once, or joins the waiter.
func (l *fileLock) enter() (w *waiter, unlock func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting; w != nil {
		w.wanted = true
		return w, nil, nil
	}
	f, err := l.open()
	if err != nil {
		return nil, nil, err
	}
	switch err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return nil, func() { f.Close() }, nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, nil, fault.Wrap(err, CodeStorage, "store.lock", "cannot lock the Store")
	}
	l.waiting = &waiter{file: f, wanted: true, done: make(chan struct{})}
	go l.block(l.waiting)
	return l.waiting, nil, nil
}

// block waits in the kernel. A lock that nobody wants any more is released at once.
func (l *fileLock) block(w *waiter) {
	err := flock(w.file, syscall.LOCK_EX)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, w.err = nil, err
	if !w.wanted {
		w.file.Close()
	}
	close(w.done)
}

// leave gives up. What came at the same moment is released.
func (l *fileLock) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.done:
		w.file.Close()
	default:
		w.wanted = false
	}
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

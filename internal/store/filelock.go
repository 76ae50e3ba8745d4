package store

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// fileLock is an advisory flock. It dies with its process, so no dead owner can hold it,
// and the kernel queues its waiters.
type fileLock struct{ path string }

func openFileLock(path string) (*fileLock, error) {
	l := &fileLock{path}
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
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	release := func() { f.Close() } // closing the only descriptor drops the lock
	switch err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return release, nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		release()
		return nil, fault.Wrap(err, CodeStorage, "store.lock", "cannot lock the Store")
	}
	// A blocking flock cannot be cancelled. The goroutine outlives a caller that gives
	// up, at most until the other process lets go; then it releases at once.
	got := make(chan error)
	gaveUp := make(chan struct{})
	go func() {
		err := flock(f, syscall.LOCK_EX)
		select {
		case got <- err:
		case <-gaveUp:
			release()
		}
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-got:
		if err != nil {
			release()
			return nil, fault.Wrap(err, CodeStorage, "store.lock", "cannot lock the Store")
		}
		return release, nil
	case <-ctx.Done():
		close(gaveUp)
		return nil, context.Cause(ctx)
	case <-timer.C:
		close(gaveUp)
		return nil, fault.New(CodeBusy, "store.lock", "another process kept the Store locked for %s", wait).WithHint("run doctor to see who")
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

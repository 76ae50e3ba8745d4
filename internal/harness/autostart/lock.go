package autostart

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lockTick = 20 * time.Millisecond

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// await takes the lock of f, at most until ctx ends. The lock ends with the file or the
// process.
func await(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

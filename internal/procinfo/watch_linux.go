package procinfo

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Watch closes gone when this very start of the process has ended, at once if it already
// has. It costs one descriptor and one parked goroutine, and wakes nobody before that.
//
// stop ends the watch, waits for its goroutine and may be called more than once; after a
// stop, gone stays open if the process lives. The caller must call it.
func Watch(inc turn.Incarnation) (gone <-chan struct{}, stop func(), err error) {
	const op = "procinfo.watch"
	if err := checkIncarnation(op, inc); err != nil {
		return nil, nil, err
	}
	ch := make(chan struct{})
	fd, err := unix.PidfdOpen(inc.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		close(ch)
		return ch, func() {}, nil
	}
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.Unavailable, op, "cannot watch process %d", inc.PID).
			WithHint("AKK needs Linux 5.3 or newer")
	}
	// The descriptor pins the process it was opened for; only now does the check say that
	// it is the one that was meant.
	alive, err := Alive(inc)
	if err != nil || !alive {
		unix.Close(fd)
		if err != nil {
			return nil, nil, err
		}
		close(ch)
		return ch, func() {}, nil
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, nil, fault.Wrap(err, fault.Internal, op, "cannot watch process %d", inc.PID)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, nil, fault.Wrap(err, fault.Internal, op, "cannot watch process %d", inc.PID)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer f.Close()
		if conn.Read(ended) == nil {
			close(ch)
		}
	})
	return ch, func() { f.Close(); wg.Wait() }, nil
}

// ended asks a pidfd without waiting; the runtime's poller waits between two calls.
func ended(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

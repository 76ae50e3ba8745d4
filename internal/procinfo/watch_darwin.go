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
// has. It waits in the kernel and wakes nobody before that.
//
// stop ends the watch, waits for its goroutine and may be called more than once; after a
// stop, gone stays open if the process lives. The caller must call it.
func Watch(inc turn.Incarnation) (gone <-chan struct{}, stop func(), err error) {
	const op = "procinfo.watch"
	if err := checkIncarnation(op, inc); err != nil {
		return nil, nil, err
	}
	ch := make(chan struct{})
	failed := func(err error) error {
		return fault.Wrap(err, fault.Unavailable, op, "cannot watch process %d", inc.PID)
	}
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, nil, failed(err)
	}
	unix.CloseOnExec(kq)
	r, w, err := os.Pipe() // its end of input ends the wait
	if err != nil {
		unix.Close(kq)
		return nil, nil, failed(err)
	}
	closeAll := func() { w.Close(); r.Close(); unix.Close(kq) }
	var events [2]unix.Kevent_t
	unix.SetKevent(&events[0], inc.PID, unix.EVFILT_PROC, unix.EV_ADD)
	events[0].Fflags = unix.NOTE_EXIT
	unix.SetKevent(&events[1], int(r.Fd()), unix.EVFILT_READ, unix.EV_ADD)
	_, err = unix.Kevent(kq, events[:], nil, nil)
	// The event is bound to whoever has the pid now; only now does the check say that it is
	// the process that was meant.
	alive, aerr := Alive(inc)
	if aerr == nil && !alive {
		closeAll()
		close(ch)
		return ch, func() {}, nil
	}
	if err != nil || aerr != nil {
		closeAll()
		return nil, nil, failed(errors.Join(err, aerr))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var got [1]unix.Kevent_t
		for {
			n, err := unix.Kevent(kq, nil, got[:], nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n == 1 && got[0].Filter == unix.EVFILT_PROC {
				close(ch)
			}
			return
		}
	})
	var once sync.Once
	return ch, func() { once.Do(func() { w.Close(); wg.Wait(); closeAll() }) }, nil
}

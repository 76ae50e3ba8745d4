package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// errStopped is what a stopped source returns when nothing more can be read at once.
var errStopped = errors.New("reading was stopped")

// leftover bounds the bytes that are still read after a stop, to turn requests away that
// have already arrived.
const leftover = 1 << 20

// source is a byte stream whose Read another goroutine can end.
type source interface {
	io.Reader
	// stop makes Read return what can be read without waiting, then errStopped.
	stop()
}

// stopper is a pipe that a poll watches beside its file; closing the write end wakes it.
type stopper struct {
	once sync.Once
	r, w *os.File
	fd   int // of r
}

func newStopper() (*stopper, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("wake-up pipe: %w", err)
	}
	return &stopper{r: r, w: w, fd: int(r.Fd())}, nil
}

func (s *stopper) fire() { s.once.Do(func() { _ = s.w.Close() }) }

func (s *stopper) close() {
	s.fire()
	_ = s.r.Close()
}

// wait polls a descriptor for events, at most for limit (negative: no limit). It reports whether
// it is ready and whether the stopper fired.
func (s *stopper) wait(fd int, events int16, limit time.Duration) (ready, stopped bool, err error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(s.fd), Events: unix.POLLIN}}
	until := time.Now().Add(limit)
	for {
		ms := -1
		if limit >= 0 {
			ms = int(max(0, time.Until(until).Milliseconds()))
		}
		_, err := unix.Poll(fds, ms)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, false, fmt.Errorf("poll: %w", err)
		}
		// Anything but "nothing" is ready: the read or write that follows names a fault.
		return fds[0].Revents != 0, fds[1].Revents != 0, nil
	}
}

// fileSource reads a file descriptor and never blocks in read(2): it polls first. The
// descriptor keeps its flags, which belong to whoever opened it.
type fileSource struct {
	file *os.File // holds the descriptor open
	fd   int
	*stopper
	after int // bytes read since the stop
}

func (f *fileSource) Read(p []byte) (int, error) {
	for {
		ready, stopped, err := f.wait(f.fd, unix.POLLIN, -1)
		if err != nil {
			return 0, err
		}
		if stopped && !ready {
			// The two events of one poll are not ordered: look once more without waiting.
			if ready, _, err = f.wait(f.fd, unix.POLLIN, 0); err != nil {
				return 0, err
			}
		}
		if stopped && (!ready || f.after >= leftover) {
			return 0, errStopped
		}
		if !ready {
			continue
		}
		n, err := unix.Read(f.fd, p)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0:
			return 0, io.EOF
		}
		if stopped {
			f.after += n
		}
		return n, nil
	}
}

func (f *fileSource) stop() { f.fire() }

// plainSource is a source over a stream without a descriptor; stop closes it.
type plainSource struct {
	r       io.Reader
	mu      sync.Mutex
	stopped bool
}

func (s *plainSource) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stopped {
			return n, errStopped
		}
	}
	return n, err
}

func (s *plainSource) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	if c, ok := s.r.(io.Closer); ok {
		_ = c.Close() // the Read that waits reports the end
	}
}

// fileSink writes a file descriptor in pieces that a poll has promised room for, so that
// it never blocks longer than stall without progress.
type fileSink struct {
	file  *os.File // holds the descriptor open
	fd    int
	stall time.Duration
	*stopper
}

func (f *fileSink) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		ready, stopped, err := f.wait(f.fd, unix.POLLOUT, f.stall)
		switch {
		case err != nil:
			return written, err
		case stopped:
			return written, errors.New("write: gave up")
		case !ready:
			return written, fmt.Errorf("write: nothing was read for %s", f.stall)
		}
		// unix.Write, not File.Write: the latter ends the process when descriptor 1 has
		// no reader any more.
		n, err := unix.Write(f.fd, p[written:min(len(p), written+writeChunk)])
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return written, fmt.Errorf("write: %w", err)
		}
		written += n
	}
	return written, nil
}

func (f *fileSink) abort() { f.fire() }

package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	// MaxQueued bounds the bytes of replies that wait for the Host to read.
	MaxQueued = 16 << 20
	// WriteStall is how long the Host may leave its stdin unread before the session ends.
	WriteStall = 60 * time.Second
	// HostGone is the code of a session that ended because nobody reads the replies.
	HostGone fault.Code = "host_gone"
)

// sink is a byte stream whose Write fails instead of waiting longer than its stall limit
// and that abort makes fail at once.
type sink interface {
	io.Writer
	abort()
}

// writer sends frames in the order of send, on one goroutine, through a bounded queue.
type writer struct {
	sink sink

	mu      sync.Mutex
	changed sync.Cond
	queue   [][]byte
	queued  int // bytes in queue and in the Write that runs
	closing bool
	err     error

	dead chan struct{} // closed when err is set
	done chan struct{} // closed when the goroutine has ended
}

func newWriter(s sink) *writer {
	w := &writer{sink: s, dead: make(chan struct{}), done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// send queues a frame, without its newline, and waits while the queue is full. It fails
// once the stream has failed or flush was called.
func (w *writer) send(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closing && w.queued > 0 && w.queued+len(frame) > MaxQueued {
		w.changed.Wait()
	}
	return w.push(frame)
}

// offer queues a frame that may be lost: only while the queue is less than half full.
func (w *writer) offer(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued < MaxQueued/2 {
		_ = w.push(frame) // a failed stream is the session's concern, not this frame's
	}
}

func (w *writer) push(frame []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return errors.New("the session has ended")
	}
	w.queue = append(w.queue, append(frame, '\n'))
	w.queued += len(frame) + 1
	w.changed.Broadcast()
	return nil
}

// flush accepts nothing more and waits until everything is written, at most for limit;
// then it gives up. The goroutine has ended when it returns.
func (w *writer) flush(limit time.Duration) error {
	w.mu.Lock()
	w.closing = true
	w.changed.Broadcast()
	w.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		w.sink.abort()
		<-w.done
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *writer) run() {
	defer close(w.done)
	for {
		frame := w.pop()
		if frame == nil {
			return
		}
		_, err := w.sink.Write(frame)
		w.mu.Lock()
		w.queued -= len(frame)
		if err != nil {
			w.err = fault.Wrap(err, HostGone, "mcpserver.write", "the Host does not read its replies")
			w.queue, w.queued = nil, 0
			close(w.dead)
		}
		w.changed.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// pop waits for the next frame; nil means that the queue is closed and empty.
func (w *writer) pop() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.closing {
			return nil
		}
		w.changed.Wait()
	}
	frame := w.queue[0]
	w.queue = w.queue[1:]
	return frame
}

// plainSink is a sink over a stream without a file descriptor. Its abort closes the
// stream where it can be closed.
type plainSink struct {
	w     io.Writer
	stall time.Duration
}

func (s plainSink) Write(p []byte) (int, error) {
	timer := time.AfterFunc(s.stall, s.abort)
	defer timer.Stop()
	n, err := s.w.Write(p)
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

func (s plainSink) abort() {
	if c, ok := s.w.(io.Closer); ok {
		_ = c.Close() // the Write that runs reports the failure
	}
}

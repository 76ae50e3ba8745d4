package acp

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// itemOverhead is what a queued item costs beside its bytes, about.
const itemOverhead = 256

// item is something to dispatch: an event, the end of a call, or both in this order.
type item struct {
	event Event
	call  *call
	size  int
}

// incoming is the queue between the reader and the Handler.
type incoming struct {
	mu    sync.Mutex
	items []item
	size  int
	ended bool
	wake  chan struct{}
}

// push reports whether there was room. A single item is always let in.
func (q *incoming) push(it item, limit int) bool {
	q.mu.Lock()
	if q.size > 0 && q.size+it.size > limit {
		q.mu.Unlock()
		return false
	}
	q.items = append(q.items, it)
	q.size += it.size
	q.mu.Unlock()
	poke(q.wake)
	return true
}

func (q *incoming) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	poke(q.wake)
}

// pop waits for the next item; false when the reader has ended and nothing is left.
func (q *incoming) pop() (item, bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			it := q.items[0]
			q.items[0] = item{}
			q.items = q.items[1:]
			q.size -= it.size
			q.mu.Unlock()
			return it, true
		}
		q.items = nil
		ended := q.ended
		q.mu.Unlock()
		if ended {
			return item{}, false
		}
		<-q.wake
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// outgoing is the queue between the callers and the pipe. A caller never waits for an
// agent that does not read.
type outgoing struct {
	mu     sync.Mutex
	lines  [][]byte
	size   int
	broken error
	wake   chan struct{}
}

// send queues a message. An error means that not a byte of it will be written. It takes
// no lock but the queue's, so it may be called with mu held.
func (c *Conn) send(message any) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line) // it ends the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(message); err != nil {
		return fault.Wrap(err, fault.Invalid, "acp.send", "the message cannot be written as JSON")
	}
	q := &c.outgoing
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.broken != nil:
		return q.broken
	case c.isClosing():
		return fault.New(Transport, "acp.send", "the connection to the agent has ended")
	case q.size > 0 && q.size+line.Len() > c.limits.OutBytes:
		return fault.New(Transport, "acp.send", "the agent does not read its input: %d bytes wait", q.size)
	}
	q.lines = append(q.lines, line.Bytes())
	q.size += line.Len()
	poke(q.wake)
	return nil
}

func (c *Conn) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// write is the writer's goroutine.
func (c *Conn) write() {
	q := &c.outgoing
	for {
		select {
		case <-c.closing:
			return
		case <-q.wake:
		}
		for {
			q.mu.Lock()
			if len(q.lines) == 0 {
				q.lines = nil
				q.mu.Unlock()
				break
			}
			line := q.lines[0]
			q.lines = q.lines[1:]
			q.mu.Unlock()
			if c.tap != nil {
				c.tap(false, line[:len(line)-1])
			}
			_, err := c.out.Write(line)
			q.mu.Lock()
			q.size -= len(line)
			q.mu.Unlock()
			if err != nil {
				c.writingBroke(err)
				return
			}
		}
	}
}

// writingBroke leaves the reader some time to see what the agent said last.
func (c *Conn) writingBroke(cause error) {
	err := fault.Wrap(cause, Transport, "acp.write", "the agent closed its input")
	c.outgoing.mu.Lock()
	c.outgoing.broken = err
	c.outgoing.mu.Unlock()
	timer := time.NewTimer(drainGrace)
	defer timer.Stop()
	select {
	case <-c.closing:
	case <-timer.C:
		c.fail(err)
	}
}

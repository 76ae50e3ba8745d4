package ledgerserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// MaxLine bounds one message; a longer line is answered with an error and skipped.
	MaxLine = 4 << 20
	// queued bounds the messages that wait their turn, queuedBytes their size.
	queued      = 256
	queuedBytes = 16 << 20
	// greetWait bounds how long the ledger stays closed for the client's first message: what
	// opens it would take the processor from the answer.
	greetWait = 200 * time.Millisecond
)

// Serve reads one message a line from in and writes the replies to out, in the order of
// arrival, until in ends or ctx does. Everything that arrived before that is answered. It
// returns nil after such an end, and the cause when the ledger cannot be opened or when
// reading or writing fails. A Read that waits is not interrupted: after ctx its goroutine
// ends with the next line or with in.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	q := newQueue()
	readErr := make(chan error, 1)
	go func() {
		err := q.fill(ctx, bufio.NewReaderSize(in, 64<<10))
		q.close()
		readErr <- err
	}()
	stop := context.AfterFunc(ctx, q.close) // what waits is still answered
	defer stop()
	var openErr error
	greeted, opened := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(opened)
		wait := time.NewTimer(greetWait)
		defer wait.Stop()
		select {
		case <-greeted:
		case <-wait.C:
		}
		if _, openErr = s.tools(); openErr != nil {
			q.close() // nobody else tells a server that waits for the next line
		}
	}()
	greet := sync.OnceFunc(func() { close(greeted) })
	err := s.answer(ctx, q, bufio.NewWriterSize(out, 64<<10), greet, opened)
	greet()  // also when there was no message: what is wrong with the ledger is said
	<-opened // also after an error: the caller closes what was opened
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return nil
	case openErr != nil:
		return openErr
	}
	return <-readErr
}

// answer serves the queue until it ends and writes every reply out. Until the ledger is
// opened each reply leaves at once, because the next message may wait for that, and greet is
// called after it.
func (s *Server) answer(ctx context.Context, q *queue, w *bufio.Writer, greet func(), opened <-chan struct{}) error {
	for {
		j, ok := q.next(w.Flush)
		if !ok {
			break
		}
		if err := s.one(ctx, w, j); err != nil {
			q.abandon()
			return err
		}
		q.done(j)
		select {
		case <-opened:
		default:
			if err := w.Flush(); err != nil {
				q.abandon()
				return err
			}
			greet()
		}
	}
	return w.Flush()
}

func (s *Server) one(ctx context.Context, w *bufio.Writer, j *job) error {
	if j.refused != nil {
		return line(w, encode(*j.refused))
	}
	if j.cancelled() {
		return nil
	}
	defer j.cancel()
	b, ok := s.serve(j.ctx, j.m)
	if !ok || j.cancelled() {
		return nil // a cancelled request has no reply
	}
	return line(w, b)
}

func line(w *bufio.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.WriteByte('\n')
}

// job is a message that waits or runs.
type job struct {
	m       message
	refused *reply
	size    int
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	dropped bool
}

func (j *job) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dropped = true
	j.cancel()
}

func (j *job) cancelled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped
}

// queue hands jobs from the reader to the server, bounded in number and bytes.
type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	jobs   []*job // the first one may be running
	bytes  int
	taken  bool // the first one is running
	closed bool
	gone   bool
}

func newQueue() *queue {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

func (q *queue) put(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.gone && len(q.jobs) > 0 && (len(q.jobs) >= queued || q.bytes+j.size > queuedBytes) {
		q.cond.Wait()
	}
	if q.gone {
		return false
	}
	q.jobs = append(q.jobs, j)
	q.bytes += j.size
	q.cond.Broadcast()
	return true
}

// next waits for a job. Before it waits it calls idle, so that replies leave in bursts.
func (q *queue) next(idle func() error) (*job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.closed {
		q.mu.Unlock()
		err := idle()
		q.mu.Lock()
		if err != nil {
			q.gone = true
			q.cond.Broadcast()
			return nil, false
		}
		if len(q.jobs) == 0 && !q.closed {
			q.cond.Wait()
		}
	}
	if len(q.jobs) == 0 {
		return nil, false
	}
	q.taken = true
	return q.jobs[0], true
}

func (q *queue) done(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = q.jobs[1:]
	q.bytes -= j.size
	q.taken = false
	q.cond.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = true
	q.cond.Broadcast()
}

// drop cancels the request of that id, waiting or running.
func (q *queue) drop(id json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if j.cancel != nil && len(id) > 0 && bytes.Equal(j.m.ID, id) {
			j.drop()
		}
	}
}

// fill reads lines until they end.
func (q *queue) fill(ctx context.Context, r *bufio.Reader) error {
	for ctx.Err() == nil {
		raw, long, err := readLine(r)
		if len(bytes.TrimRight(raw, "\r\n")) > 0 || long {
			j := &job{size: len(raw)}
			switch {
			case long:
				j.refused = &reply{Version: "2.0", ID: null, Error: &rpcError{codeRequest, "the line is longer than 4 MiB"}}
			default:
				j.m, j.refused = parse(raw)
			}
			if j.refused == nil && j.m.Method != nil && *j.m.Method == "notifications/cancelled" {
				var p struct {
					RequestID json.RawMessage `json:"requestId"`
				}
				if params(j.m.Params, &p) == nil {
					q.drop(p.RequestID)
				}
			} else {
				j.ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
				if !q.put(j) {
					j.cancel()
					return nil
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// readLine reads one line of at most MaxLine bytes; the rest of a longer one is skipped.
func readLine(r *bufio.Reader) (b []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			b = append(b, part...)
			if len(b) > MaxLine {
				b, long = nil, true
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return b, long, err
		}
	}
}

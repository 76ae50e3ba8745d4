package supervise

import (
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// record is what is known of one worker place, through all the processes that fill it.
type record struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced by every change
	state    State
	pid      int
	since    time.Time // of this process
	beat     time.Time
	restarts int
	err      error // why the last process ended
}

func newRecord() *record { return &record{changed: make(chan struct{}), state: StateStarting} }

func (r *record) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *record) starting() { r.change(func() { r.state, r.pid = StateStarting, 0 }) }

func (r *record) started(pid int, now time.Time) {
	r.change(func() { r.pid, r.since, r.beat = pid, now, now })
}

func (r *record) serving() { r.change(func() { r.state = StateServing }) }

func (r *record) unhealthy() { r.change(func() { r.state = StateUnhealthy }) }

func (r *record) failed(err error) {
	r.change(func() { r.state, r.pid, r.err = StateBackoff, 0, err; r.restarts++ })
}

func (r *record) ended() { r.change(func() { r.state, r.pid = StateEnded, 0 }) }

// heard notes a sign of life. A process that proved itself makes why the one before it ended
// history: restarts still counts it.
func (r *record) heard(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat = now
	if r.pid != 0 && now.Sub(r.since) >= provedAfter {
		r.err = nil
	}
}

func (r *record) lastHeard() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beat
}

// look returns the state, the last failure, and a channel that is closed by the next
// change.
func (r *record) look() (State, error, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.err, r.changed
}

func (r *record) status(name, serves string, now time.Time, fingerprint string) WorkerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := WorkerStatus{
		Name: name, Serves: serves, PID: r.pid, LastHeartbeat: r.beat, Restarts: r.restarts, State: r.state,
	}
	if r.pid != 0 {
		w.Age = now.Sub(r.since)
	}
	if r.state == StateServing || r.state == StateUnhealthy {
		w.Fingerprint = fingerprint // it refuses to serve under another one
	}
	if r.err != nil {
		_, w.LastError, _ = fault.Public(r.err)
	}
	return w
}

// backoff grows from backoffMin to backoffMax.
type backoff struct{ last time.Duration }

// next returns how long to wait after a process that lived for so long.
func (b *backoff) next(lived time.Duration) time.Duration {
	if lived >= provedAfter {
		b.last = 0
	}
	b.last = min(max(2*b.last, backoffMin), backoffMax)
	return b.last
}

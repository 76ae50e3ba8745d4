package mcpserver

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	// MaxInFlight bounds the requests that were read and not answered. The reader waits
	// at the bound; a Host feels that as back pressure.
	MaxInFlight = 512
	// MaxInFlightBytes bounds the frames of those requests together.
	MaxInFlightBytes = 32 << 20
)

// entry is one request in flight.
type entry struct {
	internal string          // the id that the SDK sees
	id       json.RawMessage // the Host's id as written
	key      string          // of id, see idKey
	method   string
	args     json.RawMessage // of a tools/call
	ticket   *toolkit.Ticket // of a tools/call
	size     int
	silent   bool // the Host cancelled: no reply
}

// inflight knows every request that was read and whose reply is not yet queued.
type inflight struct {
	mu    sync.Mutex
	next  uint64
	byKey map[string]*entry // by the Host's id
	byID  map[string]*entry // by ours
	bytes int
	// freed tells the one reader that an entry has gone.
	freed chan struct{}
}

func newInflight() *inflight {
	return &inflight{byKey: make(map[string]*entry), byID: make(map[string]*entry), freed: make(chan struct{}, 1)}
}

// add enters a request. It returns nil when its id is in flight already.
func (f *inflight) add(id json.RawMessage, method string, size int) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := idKey(id)
	if f.byKey[key] != nil {
		return nil
	}
	f.next++
	e := &entry{internal: "r" + strconv.FormatUint(f.next, 10), id: id, key: key, method: method, size: size}
	f.byKey[key], f.byID[e.internal] = e, e
	f.bytes += size
	return e
}

// full reports whether one more request of size must wait.
func (f *inflight) full(size int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byID) >= MaxInFlight || len(f.byID) > 0 && f.bytes+size > MaxInFlightBytes
}

// uses reports whether the id is in flight.
func (f *inflight) uses(id json.RawMessage) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[idKey(id)] != nil
}

// byInternal returns the entry of an SDK id, or nil.
func (f *inflight) byInternal(internal string) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[internal]
}

// silence marks the request with the Host's id as cancelled and returns it; nil when it
// is not in flight, or is initialize, which a Host cannot cancel.
func (f *inflight) silence(id json.RawMessage) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.byKey[idKey(id)]
	if e == nil || e.method == methodInitialize {
		return nil
	}
	e.silent = true
	return e
}

// claim takes the right to answer an SDK id: only the first claim gets it. The entry
// stays in flight until remove, so that a reply in the making is waited for.
func (f *inflight) claim(internal string) (e *entry, answer bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e = f.byID[internal]
	if e == nil {
		return nil, false
	}
	answer = !e.silent
	e.silent = true
	return e, answer
}

// live reports whether the request may still be told something.
func (f *inflight) live(e *entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[e.internal] == e && !e.silent
}

// remove forgets a request; the Host may use its id again.
func (f *inflight) remove(e *entry) {
	f.mu.Lock()
	if f.byID[e.internal] == e {
		delete(f.byID, e.internal)
		delete(f.byKey, e.key)
		f.bytes -= e.size
	}
	f.mu.Unlock()
	select {
	case f.freed <- struct{}{}:
	default:
	}
}

// all returns the entries, in no order.
func (f *inflight) all() []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*entry, 0, len(f.byID))
	for _, e := range f.byID {
		out = append(out, e)
	}
	return out
}

func (f *inflight) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byID) == 0
}

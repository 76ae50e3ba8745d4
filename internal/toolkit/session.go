package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

const (
	// CallLimit is the time within which every admitted call is answered.
	CallLimit = 10 * time.Second
	// OrderWait bounds the wait for the turn of a call; it counts into CallLimit.
	OrderWait = 5 * time.Second
	// replyReserve is what remains of CallLimit when the handler's context ends.
	replyReserve = time.Second
)

// ErrCancelled is the cause of a handler's context when the Host cancelled the call.
var ErrCancelled = errors.New("the Host cancelled the call")

var errDeadline = errors.New("the time limit of the call has passed")

// Session is the calls of one connection. It keeps their order and knows which run.
type Session struct {
	registry *Registry
	instance ids.BridgeID
	log      *slog.Logger

	mu        sync.Mutex
	unsettled []*Ticket            // changing calls that neither committed nor ended, by arrival
	detaching map[*Ticket]struct{} // calls that end with the session
	ended     bool
	running   int
	idle      chan struct{} // closed while running is 0
}

// Open starts a session. The instance becomes part of every [Call.ID].
func (r *Registry) Open(instance ids.BridgeID, log *slog.Logger) *Session {
	s := &Session{registry: r, instance: instance, log: log, idle: make(chan struct{})}
	close(s.idle)
	return s
}

// Arrival is a call as the transport saw it.
type Arrival struct {
	ID   json.RawMessage // the JSON-RPC id, byte for byte
	Tool string
	// Progress is called from the handler; nil when the Host asked for none.
	Progress func(done, total float64, note string)
}

// Ticket is the place of one call in the order of arrival.
type Ticket struct {
	session *Session
	arrival Arrival
	tool    *tool     // nil when unknown
	before  []*Ticket // the changing calls that this one waits for
	settled chan struct{}
	host    Host
	resumed *Resumed

	mu        sync.Mutex
	started   bool // a handler goroutine owns the settling
	cancelled bool
	cancel    context.CancelCauseFunc // of the running handler
}

// Arrive gives a call its place. The transport calls it in the order in which the calls
// came, then [Ticket.Run] on any goroutine, and in the end [Ticket.Release].
func (s *Session) Arrive(a Arrival) *Ticket {
	t := &Ticket{session: s, arrival: a, tool: s.registry.byName[a.Tool], settled: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.tool != nil && t.tool.spec.Unordered {
		return t
	}
	t.before = append(t.before, s.unsettled...)
	if t.tool != nil && t.tool.spec.Effect != ReadOnly {
		s.unsettled = append(s.unsettled, t)
	}
	return t
}

// settle lets later calls pass. It may be called again.
func (t *Ticket) settle() {
	s := t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-t.settled:
		return
	default:
	}
	close(t.settled)
	for i, other := range s.unsettled {
		if other == t {
			s.unsettled = append(s.unsettled[:i], s.unsettled[i+1:]...)
			break
		}
	}
}

// Cancel tells the handler that the Host wants no answer any more. A call that has not
// started does not start.
func (t *Ticket) Cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelled = true
	if t.cancel != nil {
		t.cancel(ErrCancelled)
	}
}

// Release gives the place back when the call was answered without being run. It does
// nothing while the handler runs: its end settles the call.
func (t *Ticket) Release() {
	t.mu.Lock()
	started := t.started
	t.mu.Unlock()
	if !started {
		t.settle()
	}
}

// bind connects a started call with its context; it reports false when the Host has
// already cancelled the call.
func (t *Ticket) bind(cancel context.CancelCauseFunc) bool {
	t.mu.Lock()
	t.cancel = cancel
	cancelled := t.cancelled
	t.mu.Unlock()
	if t.tool.spec.Detach && t.session.detaches(t) {
		cancel(ErrEnded)
	}
	return !cancelled
}

// detaches enters a call among those that end with the session; it reports true when the
// session has ended.
func (s *Session) detaches(t *Ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return true
	}
	if s.detaching == nil {
		s.detaching = make(map[*Ticket]struct{})
	}
	s.detaching[t] = struct{}{}
	return false
}

// End says that the Host sends nothing more: calls with [Spec.Detach] stop waiting.
func (s *Session) End() {
	s.mu.Lock()
	s.ended = true
	detaching := s.detaching
	s.detaching = nil
	s.mu.Unlock()
	for t := range detaching {
		t.mu.Lock()
		t.cancel(ErrEnded)
		t.mu.Unlock()
	}
}

// waitTurn waits until every earlier changing call has committed or ended.
func (t *Ticket) waitTurn(ctx context.Context) error {
	if len(t.before) == 0 {
		return nil
	}
	timer := time.NewTimer(OrderWait)
	defer timer.Stop()
	for _, earlier := range t.before {
		select {
		case <-earlier.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			err := fault.New(fault.Timeout, "toolkit.order",
				"an earlier call of %s has not taken effect yet, so %s was not started", earlier.arrival.Tool, t.arrival.Tool).
				WithHint("wait for the reply to %s, then call again", earlier.arrival.Tool)
			return WithRetry(err, RetrySafe)
		}
	}
	t.before = nil
	return nil
}

type ticketKey struct{}

// Committed says that the durable effect of the running call is in place: calls that
// arrived later may start. A handler that changes something calls it as soon as that is
// true and it still has to wait for something; otherwise its return does it. It does
// nothing outside a call.
func Committed(ctx context.Context) {
	if t, ok := ctx.Value(ticketKey{}).(*Ticket); ok {
		t.settle()
	}
}

func (s *Session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == 0 {
		s.idle = make(chan struct{})
	}
	s.running++
}

func (s *Session) leave(t *Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.detaching, t)
	if s.running--; s.running == 0 {
		close(s.idle)
	}
}

// Drain waits until no handler runs, also those that were answered for. It returns the
// cause of ctx when that ends first.
func (s *Session) Drain(ctx context.Context) error {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

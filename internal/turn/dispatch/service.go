// Package dispatch holds the use cases of Turns: send, status, list, and what becomes of
// the things that monitors see. It loads, asks package turn, and writes state, event and
// callback in one transaction; input to a terminal happens outside any transaction, after
// the record that it may happen and before the record that it did.
//
// It owns the submission proof. It knows no MCP, no gRPC and no agent's screen.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/policy"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Watch is what a monitor is started with.
type Watch struct {
	Turn   turn.Turn
	Ref    agent.Ref
	Pasted string // the text as typed, while this process still knows it
}

// Monitors runs one monitor per Turn, outside this process.
type Monitors interface {
	// Watch starts or keeps the Turn's monitor and returns when it is armed.
	Watch(ctx context.Context, w Watch) error
	// Entered tells the monitor when Enter was pressed.
	Entered(ctx context.Context, id ids.TurnID, at time.Time) error
	// Answered tells the monitor that a prompt was answered and then seen gone.
	Answered(ctx context.Context, id ids.TurnID, fingerprint string) error
	// Forget ends it. It does not wait.
	Forget(id ids.TurnID)
}

// Config is what a Service needs. All fields down to Clock are required.
type Config struct {
	DB       *store.DB
	Bridge   ids.BridgeID
	Scanner  *discover.Scanner
	Monitors Monitors
	// Route is captured into each new Turn.
	Route outbox.Route
	// CheckProfile fails when the Profile file no longer is the one we started with.
	CheckProfile func() error
	// Enqueued is called after a commit that added a delivery.
	Enqueued func()
	// LockDir holds the per-pane input locks. It is per user, not per Store: two Stores
	// may name the same pane.
	LockDir string
	Clock   clock.Clock
	Log     *slog.Logger

	// What other wings bring; each may be nil.
	Callbacks   Callbacks
	Transitions Transitions
	Watches     Watches
	Rows        []RowSource

	// Told, when set, is called after each commit of a plan. It must not block.
	Told func(turn.Plan)

	// Policy approves what an administrator named; the zero one approves nothing.
	Policy policy.Policy
}

// Service is the use cases. Its methods are safe for concurrent use.
type Service struct {
	Config
	waiters waiters
	prompts *offer.Book[shownPrompt] // what status showed to the Host
	// handoffs are the switches of threads that list showed, by Turn.
	handoffs *offer.Book[handoff]

	mu     sync.Mutex
	typing map[ids.TurnID]struct{} // submissions that run in this process now
}

// New returns a Service.
func New(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	return &Service{Config: c, handoffs: offer.New[handoff](c.Clock, offer.Life), waiters: waiters{m: map[ids.TurnID]map[chan struct{}]struct{}{}}, typing: map[ids.TurnID]struct{}{},
		prompts: offer.New[shownPrompt](c.Clock, offer.Life)}
}

// begin marks a submission as running until end is called.
func (s *Service) begin(id ids.TurnID) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typing[id] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.typing, id)
	}
}

// cutOff reports whether a Turn of this Bridge is in the middle of a submission or an answer
// that nobody carries on: its end could not be stored when it came.
func (s *Service) cutOff(t turn.Turn) bool {
	if t.Stage != turn.Reserved && t.Stage != turn.TextInjected && !t.AnswerPending() && !t.Untold() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, runs := s.typing[t.ID]
	return !runs
}

// change loads a Turn of this Bridge, decides, and commits the events, the row and the
// callbacks together. Effects follow the commit.
func (s *Service) change(ctx context.Context, id ids.TurnID, decide func(turn.Turn, time.Time) (turn.Plan, error)) (turn.Turn, error) {
	return s.changeWith(ctx, id, decide, nil)
}

// changeWith is change with more to write in the same transaction; also may be nil.
func (s *Service) changeWith(ctx context.Context, id ids.TurnID, decide func(turn.Turn, time.Time) (turn.Plan, error), also func(*store.Tx, turn.Turn) error) (turn.Turn, error) {
	var plan turn.Plan
	enqueued := false
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		row, err := turnsql.Get(tx, id)
		if err != nil {
			return err
		}
		if row.Owner != s.Bridge {
			return fault.New(turn.CodeStaleOwner, "dispatch.change", "turn %s belongs to another Bridge", id)
		}
		if plan, err = decide(row.Turn, tx.Now); err != nil {
			return err
		}
		if plan, enqueued, err = s.commit(tx, row, plan); err == nil && also != nil {
			err = also(tx, plan.Turn)
		}
		return err
	})
	if err != nil {
		return turn.Turn{}, err
	}
	s.after(plan, enqueued)
	return plan.Turn, nil
}

// commit writes a plan: one transaction per fact. It returns the plan as written.
func (s *Service) commit(tx *store.Tx, row turnsql.Row, plan turn.Plan) (_ turn.Plan, enqueued bool, err error) {
	if plan, err = withdraw(tx, row.Turn, plan); err != nil {
		return plan, false, err
	}
	if err := turnsql.Save(tx, row, plan); err != nil {
		return plan, false, err
	}
	if err := learnThread(tx, row.Turn, plan.Turn); err != nil {
		return plan, false, err
	}
	enqueued, err = s.enqueue(tx, row, plan)
	return plan, enqueued, err
}

// withdraw supersedes a question that the Host has not heard and that the plan makes
// pointless. Callbacks of a Turn keep their order: an old question would hold back the
// answer for as long as it is retried.
func withdraw(tx *store.Tx, before turn.Turn, plan turn.Plan) (turn.Plan, error) {
	if !plan.DropsQuestion(before) {
		return plan, nil
	}
	withdrawn := 0
	for _, kind := range turn.QuestionKinds {
		n, err := outboxsql.Supersede(tx, outbox.Source{Kind: outbox.SourceTurn, ID: string(before.ID)}, kind)
		if err != nil {
			return plan, err
		}
		withdrawn += n
	}
	if withdrawn > 0 {
		plan = plan.Unheard(tx.Now)
	}
	return plan, nil
}

// enqueue stores what the Host must hear.
func (s *Service) enqueue(tx *store.Tx, row turnsql.Row, plan turn.Plan) (bool, error) {
	if len(plan.Notices) == 0 {
		return false, nil
	}
	route, err := outboxsql.GetRoute(tx, plan.Turn.Route)
	if err != nil {
		return false, err
	}
	owner := row.Owner
	if (route.SessionDigest != s.Route.SessionDigest || route.ProfileID != s.Route.ProfileID) && plan.Turn.Origin != "" {
		// The Turn of another controller session that was taken over: this Bridge can only
		// fail to deliver for it. Under the name of the Bridge that ended, the callback
		// waits for the next Bridge of its own session.
		owner = plan.Turn.Origin
	}
	for _, n := range plan.Notices {
		d := outbox.New(route, outbox.Source{Kind: "managed_turn", ID: string(plan.Turn.ID)}, outbox.Event{
			ID: n.MessageID, Type: n.Type, Kind: n.Kind, Body: []byte(n.Body), RequiresResponse: n.RequiresResponse, Metadata: n.Metadata,
		}, tx.Now)
		if _, err := outboxsql.Enqueue(tx, d, owner); err != nil {
			return false, err
		}
	}
	return true, nil
}

// learnThread gives the Session the thread id that the agent chose. A thread that another
// Session holds already stays with that one: the Turn keeps its own record of it.
func learnThread(tx *store.Tx, before, after turn.Turn) error {
	if after.ThreadID == "" || after.ThreadID == before.ThreadID {
		return nil
	}
	session, err := turnsql.GetSession(tx, after.SessionID)
	if err != nil || session.ThreadID != "" {
		return err
	}
	if _, taken, err := turnsql.ThreadSession(tx, after.Agent, after.ThreadID); err != nil || taken {
		return err
	}
	return turnsql.PutSession(tx, session.LearnThread(after.ThreadID, tx.Now))
}

func (s *Service) after(plan turn.Plan, enqueued bool) {
	if len(plan.Events) == 0 {
		return
	}
	if enqueued {
		s.Enqueued()
	}
	if s.Told != nil {
		s.Told(plan)
	}
	s.waiters.wake(plan.Turn.ID)
	if !plan.Turn.Monitored() {
		s.Monitors.Forget(plan.Turn.ID)
	}
}

// Observe applies what a monitor saw. An error means that it was not stored and must be
// told again, but fault.NotFound, that the Turn is not ours to watch; an observation that
// changes nothing is no error.
func (s *Service) Observe(ctx context.Context, id ids.TurnID, o turn.Observation) error {
	if o.Kind == turn.ObsPrompt && s.Policy.Enabled {
		if done, err := s.autoApprove(ctx, id, o); done {
			return err
		}
	}
	t, err := s.change(ctx, id, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.Observe(t, o, now), nil })
	if fault.Is(err, turn.CodeStaleOwner) {
		return fault.Wrap(err, fault.NotFound, "dispatch.observe", "turn %s is watched by another Bridge", id)
	}
	if err != nil {
		return err
	}
	if o.Kind != turn.ObsActivity {
		s.Log.Info("observed", "turn", id, "kind", o.Kind, "source", o.Source, "status", t.Status, "submission", t.Stage)
	}
	return nil
}

// waiters wakes those who wait for a Turn to change.
type waiters struct {
	mu sync.Mutex
	m  map[ids.TurnID]map[chan struct{}]struct{}
}

// subscribe returns a channel that receives after each change, and a release function.
func (w *waiters) subscribe(id ids.TurnID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m[id] == nil {
		w.m[id] = map[chan struct{}]struct{}{}
	}
	w.m[id][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.m[id], c)
		if len(w.m[id]) == 0 {
			delete(w.m, id)
		}
	}
}

func (w *waiters) wake(id ids.TurnID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.m[id] {
		select {
		case c <- struct{}{}:
		default: // it has a wake-up pending already
		}
	}
}

// get reads one Turn.
func (s *Service) get(ctx context.Context, id ids.TurnID) (turn.Turn, error) {
	var row turnsql.Row
	err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, err = turnsql.Get(tx, id)
		return err
	})
	return row.Turn, err
}

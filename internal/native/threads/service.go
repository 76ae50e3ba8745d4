// Package threads holds the use cases of an agent's conversations: list the resumable
// ones, begin a new one, resume one, and untie a Session that does not fit what a terminal
// shows. A change of thread is a Transition: recorded before the first key, typed once
// through package keyboard, proved from the agent's own evidence or called uncertain.
//
// It owns the order of those steps and what recovery makes of them. It knows no MCP, no
// agent's words or files, and no Turn beyond asking whether one keeps a terminal.
package threads

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
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Bounds. A tool answers within 10 s whatever the agent does; a thread that is shown later
// is proved by a sweep.
const (
	answerLimit = 9 * time.Second        // of a whole change
	proveLimit  = 7 * time.Second        // of the wait for the new thread, at most
	typeLimit   = 6 * time.Second        // of the proof before Enter
	recordLimit = 10 * time.Second       // of a transaction that must not be given up
	lookPause   = 100 * time.Millisecond // between two looks at the agent's evidence
	// SnapshotLife is how long what a listing showed may be acted on.
	SnapshotLife = 5 * time.Minute
)

// Codes of this package.
const (
	CodeNotListed   fault.Code = "thread_not_listed"    // resume needs a row of a fresh listing
	CodeUnresumable fault.Code = "thread_not_resumable" // the row, or what it became, cannot be resumed
)

// Scanner finds terminals. [discover.Scanner] is one.
type Scanner interface {
	keyboard.Finder
	Scan(ctx context.Context, o discover.Options) (discover.Scan, error)
}

// Config is what a Service needs. All fields but Log are required.
type Config struct {
	DB      *store.DB
	Bridge  ids.BridgeID
	Scanner Scanner
	Desk    keyboard.Desk
	// CheckProfile fails when the Profile file no longer is the one we started with.
	CheckProfile func() error
	Clock        clock.Clock
	Log          *slog.Logger
}

// Service is the use cases. Its methods are safe for concurrent use.
type Service struct {
	Config
	shown     *offer.Book[snapshot]        // by terminal id
	conflicts *offer.Book[bindingConflict] // by terminal id and session id

	mu       sync.Mutex
	carrying map[ids.TransitionID]struct{} // Transitions that this process types or proves now
}

// New returns a Service.
func New(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c, shown: offer.New[snapshot](c.Clock, SnapshotLife), conflicts: offer.New[bindingConflict](c.Clock, offer.Life),
		carrying: map[ids.TransitionID]struct{}{}}
}

// carry marks a Transition as being carried out until end is called.
func (s *Service) carry(id ids.TransitionID) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carrying[id] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.carrying, id)
	}
}

func (s *Service) carried(id ids.TransitionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.carrying[id]
	return ok
}

// keeper returns the terminal's agent as one whose threads can be changed with proof.
func keeper(t discover.Terminal) (agent.ThreadKeeper, error) {
	k, ok := t.Adapter.(agent.ThreadKeeper)
	if !ok {
		return nil, fault.New(agent.CodeThreads, "threads.keeper", "threads of %s cannot be listed or changed", t.Adapter.Kind()).WithHint("change the thread by hand in the pane")
	}
	if t.Conflict != "" {
		return nil, fault.New(turn.CodeTerminal, "threads.keeper", "%s is ambiguous: %s", t.ID, t.Conflict).WithHint("%s", t.Remedy)
	}
	return k, k.ThreadSupport(t.Native)
}

// typable refuses a terminal whose composer is not provably idle and empty. A command goes
// through the composer whatever channel the agent's tasks take, so a person's draft counts.
func typable(t discover.Terminal) error {
	const op = "threads.ready"
	if err := discover.Ready(t); err != nil {
		return err
	}
	if state, reason := discover.Combine(t.Native, t.Screen); state != discover.Idle {
		return fault.New(turn.CodeTerminal, op, "%s is not provably idle: %s", t.ID, reason).WithHint("look at the pane")
	}
	switch {
	case t.Pane.InMode:
		return fault.New(turn.CodeTerminal, op, "the pane of %s is scrolled back (copy mode)", t.ID).WithHint("leave the mode with q")
	case t.Screen.Composer == agent.ComposerDraft:
		return fault.New(turn.CodeTerminal, op, "the composer of %s holds a draft", t.ID).WithHint("let the human send or clear it")
	case t.Screen.Composer != agent.ComposerEmpty:
		return fault.New(turn.CodeTerminal, op, "the composer of %s is not visible", t.ID).WithHint("look at the pane")
	}
	return nil
}

// find scans for one terminal and returns it with the others that were seen.
func (s *Service) find(ctx context.Context, id ids.TerminalID) (discover.Terminal, discover.Scan, error) {
	scan, err := s.Scanner.Scan(ctx, discover.Options{Only: id, Screens: true})
	if err != nil {
		return discover.Terminal{}, scan, err
	}
	for _, t := range scan.Terminals {
		if t.ID == id {
			return t, scan, nil
		}
	}
	if scan.Unseen != nil {
		return discover.Terminal{}, scan, fault.New(fault.Unavailable, "threads.find", "terminal %q was not seen, and not everything could be looked at: %s: %s", id, scan.Unseen.Where, scan.Unseen.What).
			WithHint("mend that, then call agent_knock_knock_list again")
	}
	return discover.Terminal{}, scan, fault.New(fault.NotFound, "threads.find", "terminal %q is not there now", id).
		WithHint("call agent_knock_knock_list and use an id from it")
}

// change decides on a Transition of this Bridge and commits the events with the row. more,
// when set, writes what belongs to the same fact.
func (s *Service) change(ctx context.Context, id ids.TransitionID, decide func(tx *store.Tx, t native.Transition) (native.Plan, error)) (native.Transition, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	var out native.Transition
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		row, err := nativesql.Get(tx, id)
		if err != nil {
			return err
		}
		if row.Owner != s.Bridge {
			return fault.New(turn.CodeStaleOwner, "threads.change", "transition %s belongs to another Bridge", id)
		}
		p, err := decide(tx, row.Transition)
		if err != nil {
			return err
		}
		row, err = nativesql.Save(tx, row, p)
		out = row.Transition
		return err
	})
	return out, err
}

// plain makes a rule of package native one that change takes.
func plain(rule func(native.Transition, time.Time) (native.Plan, error)) func(*store.Tx, native.Transition) (native.Plan, error) {
	return func(tx *store.Tx, t native.Transition) (native.Plan, error) { return rule(t, tx.Now) }
}

func (s *Service) pause(ctx context.Context, d time.Duration) error {
	timer, stop := s.Clock.NewTimer(d)
	defer stop()
	select {
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

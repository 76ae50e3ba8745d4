package threads

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// CodeNoConflict: the Session does not stand in the way, or not as it was listed.
const CodeNoConflict fault.Code = "no_binding_conflict"

// The conflicts that a detach resolves.
const (
	// ConflictMoved: a Session is bound to the terminal, which provably shows another thread.
	ConflictMoved = "terminal_shows_another_thread"
	// ConflictClaimed: the thread that the terminal shows belongs to a Session bound elsewhere.
	ConflictClaimed = "thread_bound_to_another_terminal"
)

// bindingConflict is one Session that does not fit what a terminal shows.
type bindingConflict struct {
	kind     string
	session  ids.SessionID
	revision int64
}

func conflictKey(terminal ids.TerminalID, session ids.SessionID) string {
	return string(terminal) + " " + string(session)
}

// conflictOf finds the Session that does not fit what the terminal provably shows. Only a
// Session without an open Turn is one: with a Turn, a person decides between the threads.
func conflictOf(tx *store.Tx, t discover.Terminal) (bindingConflict, bool, error) {
	if t.Native.Thread != agent.ThreadResolved || t.Conflict != "" {
		return bindingConflict{}, false, nil
	}
	bound, ok, err := turnsql.BoundSession(tx, t.Key())
	if err != nil {
		return bindingConflict{}, false, err
	}
	c := bindingConflict{ConflictMoved, bound.ID, bound.Revision}
	if !ok || bound.ThreadID == "" || bound.ThreadID == t.Native.ThreadID {
		holder, known, err := turnsql.ThreadSession(tx, t.Adapter.Kind(), t.Native.ThreadID)
		if err != nil || !known || holder.Status != turn.SessionBound || holder.Terminal == t.Key() {
			return bindingConflict{}, false, err
		}
		c = bindingConflict{ConflictClaimed, holder.ID, holder.Revision}
	}
	busy, err := hasTurn(tx, c.session)
	return c, err == nil && !busy, err
}

// ReconcileInput names the Session to untie.
type ReconcileInput struct {
	TerminalID ids.TerminalID
	SessionID  ids.SessionID
}

// Reconciled is a Session that was untied.
type Reconciled struct {
	Kind    string
	Session turn.Session
	Binding ids.BindingID // the one that ended
}

// ReconcileBinding detaches the Session that stands in the way. It is Store only: no key is
// pressed. The conflict is read anew; one that differs from what was listed is refused.
func (s *Service) ReconcileBinding(ctx context.Context, in ReconcileInput) (Reconciled, error) {
	const op = "threads.reconcile"
	if err := s.CheckProfile(); err != nil {
		return Reconciled{}, err
	}
	if err := s.DB.CheckWritable(); err != nil {
		return Reconciled{}, err
	}
	term, _, err := s.find(ctx, in.TerminalID)
	if err != nil {
		return Reconciled{}, err
	}
	if state, reason := discover.Combine(term.Native, term.Screen); state != discover.Idle {
		return Reconciled{}, fault.New(turn.CodeTerminal, op, "%s is not provably idle: %s", term.ID, orElse(reason, string(state))).WithHint("wait until it is idle")
	}
	listed, wasListed := s.conflicts.Take(conflictKey(in.TerminalID, in.SessionID))
	var out Reconciled
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if err := nativesql.CheckFree(tx, term.Key()); err != nil {
			return err
		}
		if err := nativesql.CheckNoTurn(tx, term.Key()); err != nil {
			return err
		}
		now, ok, err := conflictOf(tx, term)
		if err != nil {
			return err
		}
		if !ok || now.session != in.SessionID || wasListed && listed != now {
			return fault.New(CodeNoConflict, op, "session %s does not conflict with %s as it was listed", in.SessionID, term.ID).
				WithHint("call agent_knock_knock_list again and use what it offers")
		}
		session, err := turnsql.GetSession(tx, now.session)
		if err != nil {
			return err
		}
		if err := s.noTransition(tx, session); err != nil {
			return err
		}
		out = Reconciled{Kind: now.kind, Binding: session.Binding.ID, Session: session.Detach(tx.Now)}
		return turnsql.PutSession(tx, out.Session)
	})
	return out, err
}

// noTransition refuses a Session whose own terminal is in the middle of a change.
func (s *Service) noTransition(tx *store.Tx, session turn.Session) error {
	if session.Terminal == "" {
		return nil
	}
	return nativesql.CheckFree(tx, session.Terminal)
}

package threads

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// commit makes the Sessions say what a verified Transition proved: the one that was bound
// to the terminal is detached with its history, and the thread's own is bound.
func (s *Service) commit(ctx context.Context, id ids.TransitionID) (native.Transition, error) {
	return s.change(ctx, id, func(tx *store.Tx, t native.Transition) (native.Plan, error) {
		session, err := bind(tx, t)
		if err != nil {
			return native.Plan{}, err
		}
		return native.Commit(t, session.ID, session.Binding.ID, session.Binding.Generation, tx.Now)
	})
}

// bind returns the Session of the thread, bound to the terminal: the same one with the next
// generation when the thread has one, else a new one.
func bind(tx *store.Tx, t native.Transition) (turn.Session, error) {
	bound, ok, err := turnsql.BoundSession(tx, t.TerminalKey())
	if err != nil {
		return bound, err
	}
	if ok && bound.ThreadID == t.ThreadID {
		return bound, nil
	}
	if ok {
		if err := turnsql.PutSession(tx, bound.Detach(tx.Now)); err != nil {
			return bound, err
		}
	}
	b := turn.Binding{TerminalID: t.Terminal, Endpoint: t.Endpoint, Process: t.Process}
	session, known, err := turnsql.ThreadSession(tx, t.Agent, t.ThreadID)
	if err != nil {
		return session, err
	}
	if known {
		session = session.Rebind(b, tx.Now)
	} else {
		session = turn.NewSession(t.Agent, t.ThreadID, t.Workspace, b, tx.Now)
	}
	return session, turnsql.PutSession(tx, session)
}

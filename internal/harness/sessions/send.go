package sessions

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Sent is an accepted message.
type Sent struct {
	SessionID string               `json:"session_id"`
	MessageID string               `json:"message_id"`
	State     harness.MessageState `json:"state"`
	Replayed  bool                 `json:"replayed,omitempty"` // the key was used before; nothing was sent now
}

// Send accepts a message and writes it to the agent, once. It returns as soon as the message
// is stored. A key that was used before gives the earlier message, in every state of the
// session, also after a restart.
func (s *Service) Send(ctx context.Context, session, text, key string, keyGiven bool) (Sent, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return Sent{}, err
	}
	if err := harness.CheckText(text); err != nil {
		return Sent{}, err
	}
	key, err := harness.CheckIdempotencyKey(key, keyGiven)
	if err != nil {
		return Sent{}, err
	}
	l := s.find(session)
	if l == nil {
		rec, err := s.stored(ctx, session)
		if err != nil {
			return Sent{}, err
		}
		if sent, ok, err := s.replay(ctx, session, text, key); err != nil || ok {
			return sent, err
		}
		return Sent{}, harness.MayStart(rec, harness.SlotIdle)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent, ok, err := s.replay(ctx, session, text, key); err != nil || ok {
		return sent, err
	}
	if l.ending {
		return Sent{}, harness.Refuse(harness.SessionClosed, "the session is being closed")
	}
	if err := harness.MayStart(l.rec, l.slot()); err != nil {
		return Sent{}, err
	}
	return l.accept(text, key)
}

// replay finds the message that a key was used for.
func (s *Service) replay(ctx context.Context, session, text, key string) (Sent, bool, error) {
	if key == "" {
		return Sent{}, false, nil
	}
	var m harness.Message
	var ok bool
	err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		m, ok, err = harnesssql.MessageByKey(tx, session, ids.TextHash(key))
		return err
	})
	if err != nil || !ok {
		return Sent{}, false, err
	}
	if err := m.Replay(ids.TextHash(text)); err != nil {
		return Sent{}, false, err
	}
	return Sent{session, m.ID, m.State, true}, true, nil
}

// accept stores the message, with everything else that is true, and then begins it.
func (l *live) accept(text, key string) (Sent, error) {
	now := l.now()
	m := harness.Message{ID: newID("msg-", 6), SessionID: l.id, State: harness.MessageQueued, TextHash: ids.TextHash(text), TextBytes: len(text), CreatedAt: now}
	if key != "" {
		m.KeyHash = ids.TextHash(key)
	}
	before := l.rec
	l.rec.Messages++
	l.event(harness.EventTurnStarted, m.ID, map[string]any{"text_bytes": m.TextBytes}, true)
	err := l.svc.update(func(tx *store.Tx) error {
		if err := l.write(tx); err != nil {
			return err
		}
		return harnesssql.AddMessage(tx, m)
	})
	if err != nil { // nothing of it happened
		l.rec.Messages, l.rec.Seq = before.Messages, before.Seq
		l.facts.events = l.facts.events[:len(l.facts.events)-1]
		return Sent{}, err
	}
	t := newTurn(m, text)
	l.turn, l.usedAt = t, now
	l.facts.message = &m
	l.stored()
	l.svc.group.Go(func(ctx context.Context) { l.watch(ctx, t) })
	wait := quarantine - now.Sub(l.settledAt)
	if wait <= 0 {
		l.begin(t)
	} else {
		l.svc.group.Go(func(ctx context.Context) { l.beginLater(ctx, t, wait) })
	}
	return Sent{SessionID: l.id, MessageID: m.ID, State: t.msg.State}, nil
}

package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// reasonLength bounds a close's reason, in bytes.
const reasonLength = 500

// CloseResult says what a close changed. It never stops an agent.
type CloseResult struct {
	Turn   turn.Turn
	Before turn.Status
}

// Close gives a Turn up by a person's decision: the Store only, no key is sent. The Turn
// of another Bridge that lives is that Bridge's to close; one that a dead Bridge left,
// whatever its Host, is taken over first.
func (s *Service) Close(ctx context.Context, id ids.TurnID, reason string) (CloseResult, error) {
	const op = "dispatch.close"
	if err := s.DB.CheckWritable(); err != nil {
		return CloseResult{}, err
	}
	if err := s.release(ctx, id); err != nil {
		return CloseResult{}, err
	}
	var before turn.Status
	t, err := s.change(ctx, id, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		before = t.Status
		return turn.Close(t, turn.Closing{Reason: redact.Line(redact.String(reason), reasonLength)}, now)
	})
	if fault.Is(err, turn.CodeStaleOwner) {
		return CloseResult{}, fault.Wrap(err, fault.Conflict, op, "turn %s belongs to another Bridge that runs", id).WithHint("close it there, or end that Bridge first")
	}
	return CloseResult{Turn: t, Before: before}, err
}

// release takes a Turn over from a Bridge that died.
func (s *Service) release(ctx context.Context, id ids.TurnID) error {
	var row turnsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, err = turnsql.Get(tx, id)
		return err
	}); err != nil || row.Owner == s.Bridge {
		return err
	}
	if alive, err := s.DB.Alive(row.Owner); err != nil || alive {
		return nil // the change that follows refuses it as another's
	}
	return s.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := turnsql.TakeOver(tx, row, s.Bridge)
		return err
	})
}

package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// RenewInput says how long a stalled Turn is waited for again.
type RenewInput struct {
	CallID     string
	TurnID     ids.TurnID
	Inactivity time.Duration // 0: the limit that it had
}

// RenewResult is the Turn after it.
type RenewResult struct {
	Turn     turn.Turn
	Replayed bool
	// Monitored: the monitor is known to run. If not, the next sweep starts it.
	Monitored bool
}

// Renew waits for a stalled Turn again. It types nothing. The terminal must still hold the
// same process and the same thread; a submission in doubt, a dead process and a reached
// hard limit are refused.
func (s *Service) Renew(ctx context.Context, in RenewInput) (RenewResult, error) {
	if err := s.DB.CheckWritable(); err != nil {
		return RenewResult{}, err
	}
	if err := s.release(ctx, in.TurnID); err != nil {
		return RenewResult{}, err
	}
	t, err := s.get(ctx, in.TurnID)
	if err != nil {
		return RenewResult{}, err
	}
	if t.RenewCall != "" && t.RenewCall == in.CallID {
		return RenewResult{Turn: t, Replayed: true, Monitored: t.Monitored()}, nil
	}
	if err := turn.CanRenew(t, s.Clock.Now()); err != nil {
		return RenewResult{}, err
	}
	term, err := s.terminalOf(ctx, t)
	if err != nil {
		return RenewResult{}, err
	}
	if movedAway(t, term) {
		return RenewResult{}, fault.New(turn.CodeTerminal, "dispatch.renew", "%s shows another thread than that of turn %s", t.Terminal, t.ID).
			WithHint("call agent_knock_knock_list for the choices")
	}
	t, err = s.change(ctx, in.TurnID, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.Renew(t, in.Inactivity, in.CallID, now)
	})
	if err != nil {
		return RenewResult{}, otherBridge(err, in.TurnID)
	}
	armCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), armLimit)
	defer cancel()
	err = s.Monitors.Watch(armCtx, Watch{Turn: t, Ref: term.Ref})
	if err != nil {
		s.Log.Warn("the monitor of a renewed Turn is not up yet; the next sweep starts it", "turn", t.ID, "err", err)
	}
	return RenewResult{Turn: t, Monitored: err == nil}, nil
}

package turntools

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const renewDescription = `Waits longer for a stalled task whose agent still works: its inactivity deadline becomes now plus minutes. Nothing is typed.

Use it when a callback said that the task stalled and agent_knock_knock_status shows that the agent is still at it. The hard limit stays, and when it is reached nothing can be renewed. A task whose submission is uncertain, or whose agent ended, is refused: look, then let a person close it.`

type renewInput struct {
	TurnID  ids.TurnID `json:"turn_id"`
	Minutes *float64   `json:"minutes"`
}

type renewOutput struct {
	TurnID         ids.TurnID  `json:"turn_id"`
	TurnStatus     turn.Status `json:"turn_status"`
	Renewed        bool        `json:"renewed"`
	Renewals       int         `json:"renewals"`
	Minutes        float64     `json:"agent_timeout_minutes"`
	DeadlineAt     time.Time   `json:"deadline_at,omitzero"`
	HardDeadlineAt time.Time   `json:"hard_deadline_at,omitzero"`
	Monitored      bool        `json:"monitored"`
	Replayed       bool        `json:"replayed"`
}

func registerRenew(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "renew"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Renew", Description: renewDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating,
	}, func(ctx context.Context, call toolkit.Call, in renewInput) (any, error) {
		res, err := s.Renew(ctx, dispatch.RenewInput{CallID: call.ID, TurnID: in.TurnID, Inactivity: minutes(in.Minutes)})
		if err != nil {
			return nil, err
		}
		t := res.Turn
		out := renewOutput{TurnID: t.ID, TurnStatus: t.Status, Renewed: true, Renewals: t.Renewals, Minutes: t.Inactivity.Minutes(),
			DeadlineAt: t.NextDeadline(), Monitored: res.Monitored, Replayed: res.Replayed}
		if t.Hard > 0 {
			out.HardDeadlineAt = t.HardDeadline()
		}
		return out, nil
	})
}

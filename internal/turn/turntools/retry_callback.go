package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const retryDescription = `Sends the callbacks of one task (turn_id) or Terminal Watch (watch_id) again that failed on their way to the Host: one attempt each, the same message with the same ids. The agent is not touched.

Use it when available_actions offers "retry_callback" and what made it fail is mended. Each entry of callbacks says what its record allowed: retryable (tried now: see status), in_flight (an attempt is running until lease_expires_at; do nothing), accepted (the Host had heard it; now recorded). uncertain and permanent are never sent again: read the result with agent_knock_knock_status instead.`

type retryInput struct {
	TurnID  ids.TurnID  `json:"turn_id"`
	WatchID ids.WatchID `json:"watch_id"`
}

type retryOutput struct {
	TurnID    ids.TurnID         `json:"turn_id,omitempty"`
	WatchID   ids.WatchID        `json:"watch_id,omitempty"`
	Delivered bool               `json:"delivered"`
	Attempted int                `json:"attempted"`
	Callbacks []dispatch.Retried `json:"callbacks"`
}

func registerRetry(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "retry_callback"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Retry Callback", Description: retryDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, OpenWorld: true,
	}, func(ctx context.Context, _ toolkit.Call, in retryInput) (any, error) {
		res, err := s.Retry(ctx, dispatch.RetryInput{TurnID: in.TurnID, WatchID: in.WatchID})
		if err != nil {
			return nil, err
		}
		out := retryOutput{TurnID: in.TurnID, WatchID: in.WatchID, Attempted: res.Attempted, Callbacks: res.Callbacks, Delivered: true}
		for _, c := range res.Callbacks {
			out.Delivered = out.Delivered && c.Status == "delivered"
		}
		return out, nil
	})
}

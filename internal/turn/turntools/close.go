package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const closeDescription = `Gives one task up: its terminal can take another one, and nothing that the agent still does for it is reported.

It needs a person's decision and a turn_id that is stalled, waiting or done. It stops no agent and closes no pane: look at the terminal first with agent_knock_knock_status, and interrupt the agent there if it still works. A task whose submission is uncertain may have been taken; closing it does not make sending it again safe. Callbacks that are on their way still arrive.`

type closeInput struct {
	TurnID ids.TurnID `json:"turn_id"`
	Reason string     `json:"reason"`
}

// closeOutput says what a close changed and, as plainly, what it did not.
type closeOutput struct {
	TurnID             ids.TurnID  `json:"turn_id"`
	Closed             bool        `json:"closed"`
	PreviousStatus     turn.Status `json:"previous_status"`
	Submission         turn.Stage  `json:"submission"`
	CodingAgentStopped bool        `json:"coding_agent_stopped"`
	TmuxPaneClosed     bool        `json:"tmux_pane_closed"`
	DoNotRetry         bool        `json:"do_not_retry"`
}

func registerClose(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "close"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Close", Description: closeDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in closeInput) (any, error) {
		res, err := s.Close(ctx, in.TurnID, in.Reason)
		if err != nil {
			return nil, err
		}
		return closeOutput{TurnID: res.Turn.ID, Closed: true, PreviousStatus: res.Before, Submission: res.Turn.Stage,
			DoNotRetry: res.Turn.Stage != turn.Aborted}, nil
	})
}

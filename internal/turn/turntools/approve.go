package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const approveDescription = `Answers one approval that an agent waits for: this one request, this one time (decision approve_once or reject). Lasting choices are never taken.

It needs a turn_id whose callback asked for an approval, or that offers "approve" in available_actions, and the prompt must have been shown to you in the last 10 minutes: by the callback or by agent_knock_knock_status. Judge what the agent wants to do; ask a person when you are not sure. reject ends the agent's current work in most cases. Then:
- approved, rejected: the agent goes on or stops; the callback brings the outcome.
- already_answered: somebody was faster; nothing was pressed.
- uncertain (do_not_retry): look with agent_knock_knock_status; if the prompt is still open, a person must answer it in the pane.
An error means that no key was pressed. prompt_changed or not_reviewed: read the prompt again with agent_knock_knock_status, then decide anew.`

type approveInput struct {
	TurnID     ids.TurnID     `json:"turn_id"`
	TerminalID ids.TerminalID `json:"terminal_id"`
	Decision   string         `json:"decision"`
}

func registerApprove(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "approve"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Approve", Description: approveDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in approveInput) (any, error) {
		res, err := s.Approve(ctx, dispatch.ApproveInput{CallID: call.ID, TurnID: in.TurnID, TerminalID: in.TerminalID, Decision: in.Decision})
		if err != nil { // dispatch.Approve promises that no key was pressed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return res, nil
	})
}

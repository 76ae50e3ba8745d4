package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const respondDescription = `Continues a completed task with an answer in words: the same turn, the same conversation of the agent, a new callback.

Use it when the callback of a turn_id is a question, or a result that needs one more step in the same context; for a new task use agent_knock_knock_send. It needs the newest turn of its session, completed, and its terminal still showing the same thread and ready. The answer is typed at most once; the statuses are those of send. For an open approval use agent_knock_knock_approve, for a questionnaire agent_knock_knock_respond_interaction. budget says how many answers the turn took: come to an end from "converge" on.
An error means that nothing reached the agent and the turn stands as it was completed.`

type respondInput struct {
	TurnID  ids.TurnID `json:"turn_id"`
	Request string     `json:"request"`
}

// respondOutput is the result of a send, with the turn's budget.
type respondOutput struct {
	sendOutput
	Budget turn.Budget `json:"budget"`
}

func registerRespond(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "respond"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Respond", Description: respondDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in respondInput) (any, error) {
		res, err := s.Respond(ctx, dispatch.RespondInput{CallID: call.ID, TurnID: in.TurnID, Request: in.Request, Reserved: func() { toolkit.Committed(ctx) }})
		if err != nil { // dispatch.Respond promises that nothing reached the agent
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return respondOutput{newSendOutput(res), res.Turn.Budget()}, nil
	})
}

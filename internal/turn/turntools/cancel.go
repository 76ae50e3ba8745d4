package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const cancelDescription = `Asks the agent to stop the task of one turn_id, once, and says what is known of it. The pane and the agent's process stay.

Use it when a person wants the task stopped and the turn offers "cancel" in available_actions. Right before the key it is proved again that the agent works on this task or shows an approval that can be denied (denied_approval); any other screen gets no key and an error that says why. Then outcome is:
- stopped: the agent's own record shows that it stopped. Its files are as it left them.
- idle_without_record: it is idle and wrote no end; look at what it did.
- ended_first: the task ended by itself before; the callback brings its result.
- requested_not_proved: it was asked and nothing shows yet that it stopped. The turn keeps the terminal; wait for the callback, or look with agent_knock_knock_status. Do not assume that it stopped.
An error means that nothing was sent to the agent.`

type cancelInput struct {
	TurnID ids.TurnID `json:"turn_id"`
}

type cancelOutput struct {
	TurnID          ids.TurnID             `json:"turn_id"`
	TurnStatus      turn.Status            `json:"turn_status"`
	Outcome         dispatch.CancelOutcome `json:"outcome"`
	CancelRequested bool                   `json:"cancel_requested"`
	StopProved      bool                   `json:"stop_proved"`
	Means           string                 `json:"means,omitempty"`
	DeniedApproval  bool                   `json:"denied_approval"`
	Replayed        bool                   `json:"replayed"`
	Reason          string                 `json:"reason,omitempty"`
	NextAction      nextAction             `json:"next_action"`
}

func registerCancel(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "cancel"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Cancel", Description: cancelDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in cancelInput) (any, error) {
		res, err := s.Cancel(ctx, dispatch.CancelInput{CallID: call.ID, TurnID: in.TurnID})
		if err != nil { // dispatch.Cancel promises that nothing reached the agent
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return newCancelOutput(res), nil
	})
}

func newCancelOutput(res dispatch.CancelResult) cancelOutput {
	t := res.Turn
	out := cancelOutput{TurnID: t.ID, TurnStatus: t.Status, Outcome: res.Outcome, StopProved: t.StopProved, Replayed: res.Replayed, Reason: t.Reason,
		NextAction: nextAction{Action: "yield"}}
	if c := t.Cancel; c != nil {
		out.CancelRequested, out.Means = c.State != turn.CancelNotSent, c.Means
		out.DeniedApproval = c.Denies && out.CancelRequested
	}
	inspect := map[string]any{"turn_id": t.ID}
	switch res.Outcome {
	case dispatch.CancelUnproved, dispatch.CancelNotSent:
		out.NextAction = nextAction{Action: "wait_or_inspect", Tool: prefix + "status", Arguments: inspect}
	case dispatch.CancelIdle:
		out.NextAction = nextAction{Action: "inspect", Tool: prefix + "status", Arguments: inspect}
	}
	return out
}

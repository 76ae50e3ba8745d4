package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const statusDescription = `Shows one task (turn_id), one terminal (terminal_id) or one Terminal Watch (watch_id): how far the submission is proved, whether the agent works, waits for a decision or is done, what the screen shows, and how the callback was delivered.

Call it when a callback asks for a decision, when send said "uncertain", or when a person asks; do not poll it: the callback comes by itself. It changes nothing at the agent. What it shows of an approval (turn.prompt) or a question (interaction) is what you may decide about next, with the tool that available_actions names. turn.status "idle" means done; callback_delivery tells whether the Host heard of it. limitations says what could not be seen.`

type statusInput struct {
	TurnID     ids.TurnID     `json:"turn_id"`
	TerminalID ids.TerminalID `json:"terminal_id"`
	WatchID    ids.WatchID    `json:"watch_id"`
	Screen     *bool          `json:"screen"`
	Trace      bool           `json:"trace"`
}

func registerStatus(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "status"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Status", Description: statusDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.ReadOnly,
	}, func(ctx context.Context, _ toolkit.Call, in statusInput) (any, error) {
		return s.Status(ctx, dispatch.StatusInput{TurnID: in.TurnID, TerminalID: in.TerminalID, WatchID: in.WatchID, NoScreen: in.Screen != nil && !*in.Screen, Trace: in.Trace})
	})
}

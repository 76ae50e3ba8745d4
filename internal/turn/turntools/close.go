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

It needs a person's decision, and a turn_id; copy the arguments from available_actions, with expected_message_id where it is there. It stops no agent and closes no pane: use agent_knock_knock_cancel first if the agent still works. A task whose submission is uncertain may have been taken; closing it does not make sending it again safe. Callbacks that are on their way still arrive.
When a human switched the terminal to another thread, a plain close is refused: take handoff_decision.choices.take_over_current from agent_knock_knock_list, once a person chose it.
terminal_id goes only with expected_transition_id: it gives up a change of a thread that nobody can carry on.`

type closeInput struct {
	TurnID     ids.TurnID       `json:"turn_id"`
	TerminalID ids.TerminalID   `json:"terminal_id"`
	Reason     string           `json:"reason"`
	Message    ids.MessageID    `json:"expected_message_id"`
	Transition ids.TransitionID `json:"expected_transition_id"`
}

// closeOutput says what a close changed and, as plainly, what it did not.
type closeOutput struct {
	TurnID             ids.TurnID       `json:"turn_id,omitempty"`
	TerminalID         ids.TerminalID   `json:"terminal_id,omitempty"`
	TransitionID       ids.TransitionID `json:"transition_id,omitempty"`
	Closed             bool             `json:"closed"`
	PreviousStatus     turn.Status      `json:"previous_status,omitempty"`
	Submission         turn.Stage       `json:"submission,omitempty"`
	Disposition        string           `json:"disposition,omitempty"`
	CodingAgentStopped bool             `json:"coding_agent_stopped"`
	TmuxPaneClosed     bool             `json:"tmux_pane_closed"`
	DoNotRetry         bool             `json:"do_not_retry"`
	NextAction         *nextAction      `json:"next_action,omitempty"`
}

func registerClose(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "close"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Close", Description: closeDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in closeInput) (any, error) {
		res, err := s.Close(ctx, dispatch.CloseInput{TurnID: in.TurnID, TerminalID: in.TerminalID, Reason: in.Reason, Message: in.Message, Transition: in.Transition})
		if err != nil {
			return nil, err
		}
		return newCloseOutput(in, res), nil
	})
}

func newCloseOutput(in closeInput, res dispatch.CloseResult) closeOutput {
	if in.TerminalID != "" {
		return closeOutput{TerminalID: in.TerminalID, TransitionID: in.Transition, Closed: true, DoNotRetry: true}
	}
	t := res.Turn
	out := closeOutput{TurnID: t.ID, Closed: true, PreviousStatus: res.Before, Submission: t.Stage, Disposition: t.Disposition, DoNotRetry: t.Stage != turn.Aborted}
	switch t.Disposition {
	case turn.DispositionHandoff:
		out.NextAction = &nextAction{Action: "send_to_current_thread", Tool: prefix + "send", Arguments: map[string]any{"terminal_id": t.Terminal}}
	case turn.DispositionDead:
		out.NextAction = &nextAction{Action: "list", Tool: prefix + "list", Arguments: map[string]any{}}
	}
	return out
}

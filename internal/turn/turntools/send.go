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

const sendDescription = `Delegates one task to a coding agent in tmux and returns at once; the outcome comes later through the callback.

It needs a terminal that agent_knock_knock_list shows with the action "send". The task is typed at most once. Then:
- status async_pending: the agent has it. Go on with other things; the callback brings the answer.
- submission_pending_acceptance: sent, not proved yet. Wait for the callback; do not send again.
- submission_not_accepted or submission_uncertain (do_not_retry): look with agent_knock_knock_status and let a person decide. Never send the task again blindly.
- an error: nothing reached the agent; its text says what to do.`

type sendInput struct {
	Request    string         `json:"request"`
	TerminalID ids.TerminalID `json:"terminal_id"`
	SessionID  ids.SessionID  `json:"session_id"`
	Type       string         `json:"type"`
	Inactivity *float64       `json:"agentTimeoutMinutes"`
	Hard       *float64       `json:"agentHardTimeoutMinutes"`
}

// sendOutput is the result of send. A model reads it: each field says one thing that it
// may act on.
type sendOutput struct {
	TurnID           ids.TurnID     `json:"turn_id"`
	SessionID        ids.SessionID  `json:"session_id"`
	TerminalID       ids.TerminalID `json:"terminal_id"`
	MessageID        ids.MessageID  `json:"message_id"`
	Agent            string         `json:"agent"`
	Status           string         `json:"status"`
	TurnStatus       turn.Status    `json:"turn_status"`
	Submission       turn.Stage     `json:"submission"`
	Background       bool           `json:"background"`
	CallbackExpected bool           `json:"callback_expected"`
	Replayed         bool           `json:"replayed"`
	SafeToRetry      bool           `json:"safe_to_retry"`
	DoNotRetry       bool           `json:"do_not_retry"`
	Reason           string         `json:"reason,omitempty"`
	NextAction       nextAction     `json:"next_action"`
}

type nextAction struct {
	Action    string         `json:"action"`
	Tool      string         `json:"tool,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

func registerSend(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "send"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Send", Description: sendDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in sendInput) (any, error) {
		res, err := s.Send(ctx, dispatch.SendInput{
			CallID: call.ID, Request: in.Request, SessionID: in.SessionID, TerminalID: in.TerminalID,
			Inactivity: minutes(in.Inactivity), Hard: minutes(in.Hard), Reserved: func() { toolkit.Committed(ctx) },
		})
		if err != nil { // dispatch.Send promises that nothing reached the agent
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return newSendOutput(res), nil
	})
}

func newSendOutput(res dispatch.SendResult) sendOutput {
	t := res.Turn
	out := sendOutput{
		TurnID: t.ID, SessionID: t.SessionID, TerminalID: t.Terminal, MessageID: t.MessageID, Agent: t.Agent,
		Status: t.SubmissionStatus(), TurnStatus: t.Status, Submission: t.Stage, Background: t.Status.Blocking(),
		CallbackExpected: t.Stage != turn.Aborted, Replayed: res.Replayed, SafeToRetry: t.Stage == turn.Aborted,
		DoNotRetry: t.Stage != turn.Aborted, Reason: t.Reason,
	}
	inspect := map[string]any{"turn_id": t.ID}
	switch out.Status {
	case turn.SubmissionPending:
		out.NextAction = nextAction{Action: "yield"}
	case turn.SubmissionAcceptance:
		out.NextAction = nextAction{Action: "wait_for_acceptance", Tool: prefix + "status", Arguments: inspect}
	case turn.SubmissionAborted:
		out.NextAction = nextAction{Action: "retry"}
	default:
		out.NextAction = nextAction{Action: "inspect", Tool: prefix + "status", Arguments: inspect}
	}
	return out
}

// minutes reads an optional number of minutes: absent is 0 ("the default"), zero or less
// is negative ("none"), and what is too long for a duration is the longest one.
func minutes(m *float64) time.Duration {
	const most = 525_600 // a year
	switch {
	case m == nil:
		return 0
	case !(*m > 0): // NaN too
		return -1
	case *m > most:
		return most * time.Minute
	}
	return max(time.Duration(*m*float64(time.Minute)), time.Millisecond)
}

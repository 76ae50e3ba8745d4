package nativetools

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const identifyAndSendDescription = `Asks the agent which native thread its terminal shows and sends the task to exactly that, with nothing typed in between. Use it in place of agent_knock_knock_send when native_identity_state is not resolved; otherwise use agent_knock_knock_send.

An error means that no task was typed. sent false: the thread could not be proved and no task was typed; look at the terminal. sent true: status means what it means for agent_knock_knock_send; never send the task again when it is submission_uncertain.`

type identifyAndSendInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Request    string         `json:"request"`
	Inactivity *float64       `json:"agentTimeoutMinutes"`
	Hard       *float64       `json:"agentHardTimeoutMinutes"`
}

// identifyAndSendOutput is the result: the thread that was proved, and what became of the
// task.
type identifyAndSendOutput struct {
	Sent       bool           `json:"sent"`
	TerminalID ids.TerminalID `json:"terminal_id"`
	ThreadID   string         `json:"native_thread_id,omitempty"`
	TurnID     ids.TurnID     `json:"turn_id,omitempty"`
	SessionID  ids.SessionID  `json:"session_id,omitempty"`
	MessageID  ids.MessageID  `json:"message_id,omitempty"`
	Status     string         `json:"status"`
	TurnStatus turn.Status    `json:"turn_status,omitempty"`
	Submission turn.Stage     `json:"submission,omitempty"`
	Replayed   bool           `json:"replayed,omitempty"`
	*panels.Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

func newIdentifyAndSendOutput(in identifyAndSendInput, got panels.IdentifiedSend) identifyAndSendOutput {
	out := identifyAndSendOutput{TerminalID: in.TerminalID, ThreadID: got.Identity.ThreadID}
	if got.Sent == nil {
		out.Status, out.Trouble, out.DoNotRetry = "identity_uncertain", got.Identity.Trouble, true
		return out
	}
	t := got.Sent.Turn
	out.Sent, out.TurnID, out.SessionID, out.MessageID = t.Stage != turn.Aborted, t.ID, t.SessionID, t.MessageID
	out.Status, out.TurnStatus, out.Submission, out.Replayed = t.SubmissionStatus(), t.Status, t.Stage, got.Sent.Replayed
	out.DoNotRetry = out.Sent
	if t.ThreadID != "" {
		out.ThreadID = t.ThreadID
	}
	return out
}

// minutes reads an optional number of minutes as agent_knock_knock_send does: absent is 0
// ("the default"), zero or less is negative ("none").
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

// RegisterIdentifyAndSend adds the tool.
func RegisterIdentifyAndSend(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "identify_and_send"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Identify And Send", Description: identifyAndSendDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in identifyAndSendInput) (any, error) {
		got, err := s.IdentifyAndSend(ctx, dispatch.SendInput{
			CallID: call.ID, Request: in.Request, TerminalID: in.TerminalID,
			Inactivity: minutes(in.Inactivity), Hard: minutes(in.Hard), Reserved: func() { toolkit.Committed(ctx) },
		})
		if err != nil { // no task was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return newIdentifyAndSendOutput(in, got), nil
	})
}

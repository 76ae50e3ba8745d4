package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const newThreadDescription = `Makes the agent in a terminal begin a new, empty conversation by its own command. The one before stays on its disk and can be resumed. No task is sent: use agent_knock_knock_send afterwards.

Needs the new_thread action of a row of agent_knock_knock_list: idle, an empty composer, no open task. An error means that nothing was typed.
status "committed": the terminal provably shows the new thread; session_id is its session. "submitted": the command was sent and the proof is still awaited; look at agent_knock_knock_list in a few seconds. "uncertain": nobody can tell; look at the pane, and let a person decide. Never call it again for the same wish when do_not_retry is true.`

// changeOutput is the result of new_thread and resume_thread.
type changeOutput struct {
	Status     string           `json:"status"`
	Transition ids.TransitionID `json:"transition_id,omitempty"`
	Operation  native.Operation `json:"operation"`
	TerminalID ids.TerminalID   `json:"terminal_id"`
	NoOp       bool             `json:"no_op,omitempty"`

	PreviousSession *ids.SessionID `json:"previous_session_id"`
	SessionID       *ids.SessionID `json:"session_id"`
	PreviousThread  *string        `json:"previous_native_thread_id"`
	ThreadID        *string        `json:"native_thread_id"`
	BindingID       ids.BindingID  `json:"binding_id,omitempty"`
	Generation      int            `json:"binding_generation,omitempty"`

	TurnCreated bool   `json:"turn_created"`
	DoNotRetry  bool   `json:"do_not_retry"`
	Replayed    bool   `json:"replayed,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

func newChangeOutput(r threads.ChangeResult) changeOutput {
	t := r.Transition
	if r.AlreadyActive {
		return changeOutput{Status: "already_active", Operation: t.Operation, TerminalID: t.Terminal, NoOp: true, SessionID: orNull(r.SessionID), ThreadID: orNull(t.ThreadID)}
	}
	return changeOutput{
		Status: string(t.Status), Transition: t.ID, Operation: t.Operation, TerminalID: t.Terminal,
		PreviousSession: orNull(t.FromSession), SessionID: orNull(t.SessionID), PreviousThread: orNull(t.FromThread), ThreadID: orNull(t.ThreadID),
		BindingID: t.BindingID, Generation: t.Generation, DoNotRetry: true, Replayed: r.Replayed, Reason: t.Reason,
	}
}

// RegisterNewThread adds the tool.
func RegisterNewThread(r *toolkit.Registry, s *threads.Service) {
	name := prefix + "new_thread"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK New Thread", Description: newThreadDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating,
	}, func(ctx context.Context, call toolkit.Call, in terminalInput) (any, error) {
		res, err := s.NewThread(ctx, threads.ChangeInput{CallID: call.ID, TerminalID: in.TerminalID, Reserved: func() { toolkit.Committed(ctx) }})
		if err != nil { // threads.Service promises that nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return newChangeOutput(res), nil
	})
}

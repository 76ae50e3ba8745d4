package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const resumeThreadDescription = `Makes the agent in a terminal show an earlier conversation again, by its own command. No task is sent: use agent_knock_knock_send afterwards.

Needs a row with available_actions.resume_thread of agent_knock_knock_list_resumable_threads, called for this terminal in the last 5 minutes; copy its arguments. An error means that nothing was typed: the thread is open elsewhere, changed since it was listed, or the terminal is not idle.
status "committed": the terminal provably shows the thread. "already_active": it did before. "aborted": the agent itself said no, and shows what it showed. "submitted": the proof is still awaited; look at agent_knock_knock_list in a few seconds. "uncertain": look at the pane, and let a person decide. Never call it again for the same wish when do_not_retry is true.`

type resumeInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	ThreadID   string         `json:"native_thread_id"`
}

// RegisterResumeThread adds the tool.
func RegisterResumeThread(r *toolkit.Registry, s *threads.Service) {
	name := prefix + "resume_thread"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Resume Thread", Description: resumeThreadDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, call toolkit.Call, in resumeInput) (any, error) {
		res, err := s.ResumeThread(ctx, threads.ChangeInput{CallID: call.ID, TerminalID: in.TerminalID, ThreadID: in.ThreadID, Reserved: func() { toolkit.Committed(ctx) }})
		if err != nil { // threads.Service promises that nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return newChangeOutput(res), nil
	})
}

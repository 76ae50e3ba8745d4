// Package watchtools is the model's side of Terminal Watches: one file a tool, each a
// description, an effect and a handler that only translates. No rule lives here, and
// nothing that carries authority passes through in either direction.
package watchtools

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/schemas"
)

// prefix begins every tool's name.
const prefix = "agent_knock_knock_"

const watchDescription = `Tells you, by one callback, how a task ends that a PERSON started in a terminal. It only looks: nothing is ever typed, and nothing can be approved or answered through it.

Use it when a person asks for it, with a terminal that agent_knock_knock_list shows working and with the action "watch". Tasks that you sent report by themselves. Then go on; do not poll. The callback is one of:
- completed (with the agent's last message), failed;
- approval_required: the agent waits for the person at the terminal. Tell the person; the watch goes on.
- timed_out, invalidated: nobody can tell whether the task is done. Look with agent_knock_knock_status.
An error means that no watch was made: terminal_idle (nothing runs), active_watch_conflict (it is watched already), terminal_managed (a task of yours runs there), task_boundary_not_found (list again, or use mode terminal_activity).`

type watchInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Mode       watch.Mode     `json:"mode"`
	Hard       *float64       `json:"hardTimeoutMinutes"`
}

// RegisterWatch adds the tool watch.
func RegisterWatch(r *toolkit.Registry, s *watcher.Service) {
	name := prefix + "watch"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Watch", Description: watchDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating,
	}, func(ctx context.Context, call toolkit.Call, in watchInput) (any, error) {
		req := watcher.WatchInput{CallID: call.ID, TerminalID: in.TerminalID, Mode: in.Mode, Stored: func() { toolkit.Committed(ctx) }}
		if in.Hard != nil {
			req.HardTimeout = max(time.Duration(*in.Hard*float64(time.Minute)), time.Millisecond)
		}
		res, err := s.Watch(ctx, req)
		if err != nil { // watcher.Watch promises that nothing was made
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return res, nil
	})
}

package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const listDescription = `Shows the coding agents (Codex, Claude Code) that run in tmux on this machine now, and the tasks that still hold one.

Call it before you delegate: it gives the terminal_id for agent_knock_knock_send. Use only what a row's available_actions offers; its arguments are complete but for missing_required. activity_state joins what the screen shows and what the agent's own records say: only "idle" can take a task, and "unknown" means that nobody can tell. A row without "send" says why in activity_reason or current_turn.`

type listInput struct {
	Agent  string `json:"agent"`
	State  string `json:"state"`
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

func registerList(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "list"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK List", Description: listDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.ReadOnly,
	}, func(ctx context.Context, _ toolkit.Call, in listInput) (any, error) {
		return s.List(ctx, dispatch.ListInput{Agent: in.Agent, State: in.State, Cursor: in.Cursor, Limit: in.Limit})
	})
}

package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const listDescription = `Shows the coding agents (Codex, Claude Code) that run in tmux on this machine now, the tasks that hold one or wait for attention, and the Terminal Watches.

Call it before you delegate: it gives the terminal_id for agent_knock_knock_send. Use only what available_actions offers; its arguments are complete but for missing_required. requires_user_intent: only when a person wants exactly this; requires_explicit_user_confirmation: ask a person first.
- activity_state joins what the screen (screen_state) and the agent's own records (durable_activity_state) say: only "idle" takes a task, "unknown" means that nobody can tell. A row without "send" says why in activity_reason or current_turn.
- management_state: managed (a session of ours), unmanaged, conflict (see management_conflict.recovery). handoff_state: a human switched the pane to another thread; with handoff_decision a person must choose one of its choices, you never do.
- unavailable_managed_turns: tasks whose terminal is not visible. history (with all): settled tasks, newest first.
- channel: how a task reaches the agent; channel_hint says what a better one would bring.
Filters: agent, state, workspace (a directory, and below), status (of the managed task). More rows: pass next_cursor as cursor.`

type listInput struct {
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Workspace string `json:"workspace"`
	Status    string `json:"status"`
	All       bool   `json:"all"`
	Limit     int    `json:"limit"`
	Cursor    string `json:"cursor"`
}

func registerList(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "list"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK List", Description: listDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.ReadOnly,
	}, func(ctx context.Context, _ toolkit.Call, in listInput) (any, error) {
		return s.List(ctx, dispatch.ListInput{Agent: in.Agent, State: in.State, Workspace: in.Workspace, Status: in.Status, All: in.All, Cursor: in.Cursor, Limit: in.Limit})
	})
}

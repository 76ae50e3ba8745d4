package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const setPermissionsDescription = `Chooses a permission mode for the conversation in a terminal. Only after the user confirmed exactly this mode.

Needs agent_knock_knock_permission_options for the same terminal within the last ten minutes; each allows one set_permissions. A mode with requires_confirmation is refused: a person chooses it in the pane. An error means that nothing was typed.
outcome "changed": the agent said so when it was asked again. "already_effective": it was in effect before. "uncertain" (do_not_retry): look at the terminal, and let a person decide.`

type setPermissionsInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Mode       string         `json:"mode"`
}

// RegisterSetPermissions adds the tool.
func RegisterSetPermissions(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "set_permissions"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Set Permissions", Description: setPermissionsDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive,
	}, func(ctx context.Context, _ toolkit.Call, in setPermissionsInput) (any, error) {
		out, err := s.SetPermissions(ctx, in.TerminalID, in.Mode)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const permissionOptionsDescription = `Shows which permission modes the agent in a terminal offers, and which is in effect, without choosing one.

Needs the permission_options action of a row of agent_knock_knock_list. An error means that nothing was typed.
status "observed": one call of agent_knock_knock_set_permissions may choose an id of choices within ten minutes, but none with requires_confirmation. "uncertain": nothing may be chosen; look at the terminal.`

// RegisterPermissionOptions adds the tool.
func RegisterPermissionOptions(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "permission_options"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Permission Options", Description: permissionOptionsDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in panelInput) (any, error) {
		out, err := s.PermissionOptions(ctx, in.TerminalID)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

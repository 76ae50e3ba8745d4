package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const nativeInspectDescription = `Looks at the agent's own status panel: types its status command once, reads the panel that opens, and leaves it. It makes no task and changes no setting.

Needs the native_inspect action of a row of agent_knock_knock_list: idle, an empty composer, no open task. An error means that nothing was typed; its code says why.
status "observed": native_status is what the panel says now, without account names. "uncertain": stage says how far it came and panel_open whether a panel is left; look at the terminal with agent_knock_knock_list, do not call again blindly.`

type inspectInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Inspection string         `json:"inspection"`
}

// RegisterNativeInspect adds the tool.
func RegisterNativeInspect(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "native_inspect"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Native Inspect", Description: nativeInspectDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in inspectInput) (any, error) {
		out, err := s.Inspect(ctx, in.TerminalID, in.Inspection)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

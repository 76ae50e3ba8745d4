package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const identifyDescription = `Asks the agent itself which native thread its terminal shows, by one look at its status panel. It is a diagnosis, true for 30 seconds, and gives no right to send: use it when native_identity_state of a row of agent_knock_knock_list is not resolved.

Needs an idle terminal with an empty composer. An error means that nothing was typed. status "uncertain": look at the terminal.`

// RegisterIdentifyForeground adds the tool.
func RegisterIdentifyForeground(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "identify_foreground"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Identify Foreground", Description: identifyDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in panelInput) (any, error) {
		out, err := s.IdentifyForeground(ctx, in.TerminalID)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const modelOptionsDescription = `Shows which models and efforts the agent in a terminal offers, and which is in effect: opens its model picker, reads it, and leaves it without choosing. It takes some seconds.

Needs the model_options action of a row of agent_knock_knock_list. An error means that nothing was typed.
status "observed": one call of agent_knock_knock_set_model may choose a pair of models[].model and one of its reasoning_efforts until valid_until. "uncertain": nothing may be chosen; look at the terminal, and see panel_open.`

// panelInput names the terminal, for every tool that needs no more.
type panelInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
}

// RegisterModelOptions adds the tool.
func RegisterModelOptions(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "model_options"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Model Options", Description: modelOptionsDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in panelInput) (any, error) {
		out, err := s.ModelOptions(ctx, in.TerminalID)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const setModelDescription = `Chooses a model and an effort for the conversation in a terminal. Only when the user asked for it.

Needs agent_knock_knock_model_options for the same terminal within the last ten minutes; each options call allows one set_model, with a pair that it returned. An error means that nothing was typed; offer_required means: call agent_knock_knock_model_options first.
outcome "changed": the agent said so when it was asked again. "already_effective": nothing was chosen. "uncertain" (do_not_retry): see effective and reason, look at the terminal, and let a person decide. defaults_changed says whether the agent wrote the choice into its configuration for new conversations.`

type setModelInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Model      string         `json:"model"`
	Effort     string         `json:"reasoning_effort"`
}

// RegisterSetModel adds the tool.
func RegisterSetModel(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "set_model"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Set Model", Description: setModelDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating,
	}, func(ctx context.Context, _ toolkit.Call, in setModelInput) (any, error) {
		out, err := s.SetModel(ctx, in.TerminalID, agent.Setting{Model: in.Model, Effort: in.Effort})
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

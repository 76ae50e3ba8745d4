package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const repairDescription = `Leaves a panel of the agent that an interrupted call of agent_knock_knock_model_options, agent_knock_knock_set_model or a similar tool left open. It chooses nothing.

Use it when a row of agent_knock_knock_list has the repair_model_control action, or a result says panel_open. A panel that a person may have opened is refused with zero keys: ask the person to close it.
outcome "restored" or "nothing_to_repair": the terminal is usable again. "uncertain": look at the terminal.`

// RegisterRepairModelControl adds the tool.
func RegisterRepairModelControl(r *toolkit.Registry, s *panels.Service) {
	name := prefix + "repair_model_control"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Repair Model Control", Description: repairDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in panelInput) (any, error) {
		out, err := s.RepairModelControl(ctx, in.TerminalID)
		if err != nil { // nothing was typed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return out, nil
	})
}

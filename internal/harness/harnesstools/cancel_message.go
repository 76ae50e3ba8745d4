package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func cancelMessage(r *toolkit.Registry, s *service) {
	forward(r, s, "cancel_message", toolkit.Spec{
		Name:  "cancel_message",
		Title: "Stop what the agent is doing",
		Description: "Cancel a message, by default the active one, and wait until the agent has settled. Returns its final status; a message that has ended is returned unchanged. " +
			"What the agent did before stays done.",
		Effect: toolkit.Destructive, Idempotent: true,
	}, "session_id")
}

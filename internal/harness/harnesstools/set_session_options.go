package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func setSessionOptions(r *toolkit.Registry, s *service) {
	forward(r, s, "set_session_options", toolkit.Spec{
		Name:        "set_session_options",
		Title:       "Change a session's options",
		Description: "Change model_id, thinking_level or permission_mode (at least one) while no message runs; otherwise busy. A value that the agent does not have is refused and the old one stays.",
		Effect:      toolkit.Mutating, Idempotent: true, OpenWorld: true,
	}, "session_id")
}

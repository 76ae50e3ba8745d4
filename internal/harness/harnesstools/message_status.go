package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func messageStatus(r *toolkit.Registry, s *service) {
	forward(r, s, "message_status", toolkit.Spec{
		Name:  "message_status",
		Title: "Look at a message or session",
		Description: "Show where a message is, without waiting: state, terminal, open questions, errors, and the result once it is terminal. Without message_id: the session itself. " +
			"harness_stopped says that the agent is suspended and answers nothing until it is continued or its session closed. To wait for the end, call wait.",
		Effect: toolkit.ReadOnly,
	}, "session_id")
}

package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func closeSession(r *toolkit.Registry, s *service) {
	forward(r, s, "close_session", toolkit.Spec{
		Name:        "close_session",
		Title:       "End a session and its agent",
		Description: "Stop the agent and close the session; a running message is cancelled. Closing again changes nothing. Results of its messages stay readable.",
		Effect:      toolkit.Destructive, Idempotent: true,
	}, "session_id")
}

package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func authStatus(r *toolkit.Registry, s *service) {
	forward(r, s, "auth_status", toolkit.Spec{
		Name:  "auth_status",
		Title: "Is the agent logged in",
		Description: "Show the login workflow of a session, or ask the agent when there is none. authenticated null means that the agent cannot tell. " +
			"To log in, call authenticate.",
		Effect: toolkit.ReadOnly, OpenWorld: true,
	}, "session_id")
}

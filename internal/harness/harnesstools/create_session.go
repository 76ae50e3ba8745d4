package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func createSession(r *toolkit.Registry, s *service) {
	forward(r, s, "create_session", toolkit.Spec{
		Name:  "create_session",
		Title: "Start a headless agent",
		Description: "Start an agent for one conversation and return its session_id. Needs model_id and cwd; a template is never referred to, its fields are passed one by one " +
			"(see search_template). On authentication_required the session lives: call authenticate with the session_id of the detail, then go on. " +
			"After interrupted or session_failed pass the resume_session_id of the detail to go on with the same conversation. " +
			"Close the session with close_session when you are done.",
		Effect: toolkit.Mutating, OpenWorld: true,
	}, "model_id", "cwd")
}

package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func answerQuestion(r *toolkit.Registry, s *service) {
	forward(r, s, "answer_question", toolkit.Spec{
		Name:  "answer_question",
		Title: "Answer the agent's question",
		Description: "Answer an open question of message_status, auth_status or a waiting_input result. Ask the user; never approve by yourself. " +
			"Give exactly one of: option_id (one of the offered ones), content (values for its schema), answer (reject, cancel or timeout). " +
			"Leave message_id out for questions of a login. Then call wait, or authenticate for a login.",
		Effect: toolkit.Destructive, OpenWorld: true,
	}, "session_id", "request_id")
}

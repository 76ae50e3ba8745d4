package harnesstools

import "github.com/agent-knock-knock/akk/internal/toolkit"

func searchTemplate(r *toolkit.Registry, s *service) {
	forward(r, s, "search_template", toolkit.Spec{
		Name:  "search_template",
		Title: "Find launch templates",
		Description: "Find stored advice on how to start an agent: by exact name when you know it, else by query and harness. Starts nothing. " +
			"If several match, ask the user which one; never guess. Then read the whole template and call create_session with explicit fields: " +
			"model becomes model_id, thinking becomes thinking_level, env is passed on, network_mode host means host_network true (none and proxy: false); what the user says wins. " +
			"Leave out nulls, name, description, network_mode, proxy_port and the instruction fields; ask only for a missing model or cwd. " +
			"before_start (before), after_start (after the start and any login) and special_instructions (throughout) are requests to you, " +
			"subject to the user's approval; say so if you could not follow one.",
		Effect: toolkit.ReadOnly,
	})
}

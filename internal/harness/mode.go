package harness

import "slices"

// agentModes are, for each permission mode, the names that agents use for it, the best
// first. An agent that offers none of them does not have the mode.
var agentModes = map[string][]string{
	ModeRead: {"read-only", "plan"},
	ModeEdit: {"acceptEdits", "autoEdit", "workspace-write", "build"},
	ModeAuto: {"agent", "default", "auto", "build"},
	ModeYolo: {"agent-full-access", "bypassPermissions", "yolo"},
}

// AgentMode finds the agent's own mode for a permission mode among those that it offers.
// A caller may also name one of the agent's modes itself.
func AgentMode(mode string, offered []string) (string, error) {
	for _, name := range agentModes[mode] {
		if slices.Contains(offered, name) {
			return name, nil
		}
	}
	return "", Refuse(InvalidMode, "the agent has no mode for permission_mode %s", mode).
		Advise("choose another permission_mode").With(Detail{"offered": offered})
}

package sessions

import "github.com/agent-knock-knock/akk/internal/harness"

// programs are the commands of the harnesses that are built in.
var programs = map[string][]string{
	"codex":    {"codex-acp"},
	"claude":   {"claude-agent-acp"},
	"gemini":   {"gemini", "--acp"},
	"opencode": {"opencode", "acp"},
}

// argvOf is the command line of an agent: the caller's own command, or the one of a known
// harness with the caller's arguments behind it.
func argvOf(want harness.Launch) ([]string, error) {
	if want.Command != "" {
		return append([]string{want.Command}, want.Args...), nil
	}
	argv, known := programs[want.Harness]
	if !known {
		return nil, harness.Refuse(harness.InvalidParam, "the harness %q is not built in", want.Harness).Advise("give command and args of an agent that speaks ACP on stdio")
	}
	return append(append([]string{}, argv...), want.Args...), nil
}

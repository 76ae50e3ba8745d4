package sessions

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
)

// specOf is how an agent is started: the caller's own command, or the one of a known
// harness with the caller's arguments behind it.
func specOf(want harness.Launch) (launch.Spec, error) {
	agent, _ := quirks.Find(want.Harness)
	argv, err := agent.Argv(want.Command, want.Args, want.ModelID, want.PermissionMode)
	if err != nil {
		_, msg, hint := fault.Public(err)
		return launch.Spec{}, harness.Fail(err, harness.InvalidParam, "%s", msg).Advise("%s", hint)
	}
	return launch.Spec{Target: want.Target, Runtime: want.Runtime, Argv: argv, Dir: want.Cwd, Env: agent.Environment(want.Env)}, nil
}

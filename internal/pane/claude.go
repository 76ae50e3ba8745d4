package pane

import (
	"encoding/json"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// Claude Code's options, in the help of 2.1.100–2.1.332.
const (
	claudeSession  = "--session-id"
	claudeSettings = known.SettingsFlag
)

// claudeThreads are options that say which session is shown, so that none is fixed.
var claudeThreads = map[string]bool{"-r": true, "--resume": true, "-c": true, "--continue": true, "--fork-session": true, claudeSession: true,
	"--from-pr": true, "--teleport": true}

// planClaude fixes the session's id in advance and, if wanted, the hooks.
func planClaude(r Request, help string, newID func() string, j *job, report *Report) error {
	const op = "pane.claude"
	j.Mode = ModeInteractive
	if len(r.Args) > 0 && known.BatchCommands[r.Args[0]] {
		return notInteractive(r.Args[0])
	}
	fixed := true
	for i := 0; i < len(r.Args) && r.Args[i] != "--"; i++ {
		name, _, inline := strings.Cut(r.Args[i], "=")
		switch {
		case known.BatchFlags[name]:
			return notInteractive(name)
		case name == claudeSettings && r.Hooks:
			return fault.New(fault.Invalid, op, "--hooks brings a settings file of its own").WithHint("leave --hooks or %s out", claudeSettings)
		case claudeThreads[name]:
			fixed = false
		}
		if known.ValueFlags[name] && !inline {
			i++
		}
	}
	switch {
	case !fixed:
		report.Notes = append(report.Notes, "your arguments choose the session, so its id is not fixed in advance")
	case !strings.Contains(help, claudeSession):
		report.Notes = append(report.Notes, "this Claude Code takes no session id in advance; its status file names the session")
	default:
		j.ThreadID = newID()
	}
	j.Hooks = r.Hooks && strings.Contains(help, claudeSettings)
	if r.Hooks && !j.Hooks {
		report.Notes = append(report.Notes, "this Claude Code takes no settings file, so it runs without hooks")
	}
	j.Args = r.Args
	return nil
}

func notInteractive(what string) error {
	return fault.New(fault.Invalid, "pane.claude", "claude %s shows no terminal program", what).WithHint("run it yourself; pane starts the interactive program")
}

// claudeTUI is the argv of the terminal program. settings is "" without hooks.
func claudeTUI(path, session, settings string, args []string) []string {
	argv := []string{path}
	if session != "" {
		argv = append(argv, claudeSession, session)
	}
	if settings != "" {
		argv = append(argv, claudeSettings, settings)
	}
	return append(argv, args...)
}

// settings is a settings file whose hooks write one short line each to events. They only
// wake a monitor, which then reads the agent's own records: a hook proves nothing and
// decides nothing, above all no permission (it prints nothing). The first event of a turn
// begins the file anew, so that it stays short. A hook must not fail or wait either.
func settings(events string) ([]byte, error) {
	type command struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"` // seconds
	}
	type matcher struct {
		Hooks []command `json:"hooks"`
	}
	hooks := map[string][]matcher{}
	for _, event := range known.HookEvents {
		to := ">>"
		if event == known.HookTurnStart {
			to = ">"
		}
		line := "cat >/dev/null; { printf '%s\\n' '{\"event\":\"" + event + "\"}' " + to + quote(events) + "; } 2>/dev/null; :"
		hooks[event] = []matcher{{[]command{{"command", line, 5}}}}
	}
	b, err := json.MarshalIndent(map[string]any{"hooks": hooks}, "", "  ")
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "pane.settings", "the settings cannot be written")
	}
	return b, nil
}

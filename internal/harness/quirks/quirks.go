// Package quirks is what is known about single agents of the Agent Client Protocol, as
// data: how to start one, which login it can do alone, what it does beside the protocol.
//
// Nothing here is needed to drive an agent that is not in the table: everything that an
// agent says about itself wins. The package must never know a session, a process or a
// connection.
package quirks

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// ReservedArgument is the code of an argument that we or the agent's own table set.
const ReservedArgument fault.Code = "invalid_param"

// Agent is one row. The zero value is an unknown agent: no quirk at all.
type Agent struct {
	Harness string
	Program []string // command and arguments that make it speak ACP on stdio
	Env     map[string]string
	// ProgramEnv names the variable that replaces the engine bundled with the adapter.
	ProgramEnv string
	// StatusMethod asks who is logged in; the answer is read by [Agent.LoggedIn].
	StatusMethod string
	// KeyEnv are variables that hold a key; with one of them set, the login KeyMethod asks
	// nobody anything.
	KeyEnv    []string
	KeyMethod string
	// LoginBeforeSession: the agent opens no session before an authenticate call, even when
	// its key is in the environment.
	LoginBeforeSession bool
	// SilentRetries: the agent hides failing requests of its model for minutes. Silence is
	// then no sign of its end.
	SilentRetries bool
	// OneProcessEach: sharing one process between sessions saves nothing.
	OneProcessEach bool
	// RejectionEnds says how a turn goes on after a permission is rejected.
	RejectionEnds Ending
	// MayStayOpen: it does not always end with its input.
	MayStayOpen bool
	// ForgetsWithinMinute: a session cannot be loaded in the minute of the clock in which it
	// began. The agent then begins a record of the same name and does not find the old one: a new
	// session is all there is.
	ForgetsWithinMinute bool
}

// Ending is what a rejected permission does to a turn.
type Ending string

// The endings that are known.
const (
	GoesOn        Ending = "goes_on"        // the model answers
	EndsEmpty     Ending = "ends_empty"     // end_turn without a text
	EndsCancelled Ending = "ends_cancelled" // the stop reason is cancelled
)

var table = []Agent{
	{
		Harness: "codex", Program: []string{"codex-acp"}, ProgramEnv: "CODEX_PATH",
		Env:          map[string]string{"NO_BROWSER": "1"}, // a login that opens a browser on this machine helps nobody
		StatusMethod: "authentication/status", KeyEnv: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, KeyMethod: "api-key",
		RejectionEnds: EndsCancelled,
	},
	{
		Harness: "claude", Program: []string{"claude-agent-acp"}, ProgramEnv: "CLAUDE_CODE_EXECUTABLE",
		SilentRetries: true, OneProcessEach: true, RejectionEnds: GoesOn,
	},
	{
		Harness: "gemini", Program: []string{"gemini", "--acp"},
		Env:    map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_BROWSER": "true"},
		KeyEnv: []string{"GEMINI_API_KEY"}, KeyMethod: "gemini-api-key", LoginBeforeSession: true,
		MayStayOpen: true, ForgetsWithinMinute: true, RejectionEnds: GoesOn,
	},
	{Harness: "opencode", Program: []string{"opencode", "acp"}, RejectionEnds: EndsEmpty},
	{Harness: "codebuddy", Program: []string{"codebuddy"}, StatusMethod: "_codebuddy.ai/getUserInfo"},
	{Harness: "agy", Program: []string{"agy_acp_server"}},
}

// Find returns the row of a harness. An unknown one has no row; its caller gives the
// command.
func Find(harness string) (Agent, bool) {
	for _, a := range table {
		if a.Harness == harness {
			a.Program, a.KeyEnv, a.Env = slices.Clone(a.Program), slices.Clone(a.KeyEnv), maps.Clone(a.Env)
			return a, true
		}
	}
	return Agent{}, false
}

// Harnesses are the names of the table in its order.
func Harnesses() []string {
	names := make([]string, 0, len(table))
	for _, a := range table {
		names = append(names, a.Harness)
	}
	return names
}

// detaching are arguments that take a program out of its owner's hands.
var detaching = []string{"--bg", "--background", "--tmux", "--tmux-classic", "--serve", "setsid"}

// codebuddyOwn are the flags that its row sets.
var codebuddyOwn = []string{"--acp", "--acp-transport", "--model", "--permission-mode", "--input-format", "--output-format", "--print", "-p"}

// codebuddyModes are its names for the permission modes.
var codebuddyModes = map[string]string{"read": "plan", "edit": "acceptEdits", "auto": "auto", "yolo": "bypassPermissions"}

// Argv is the command line: command replaces the program of the row, args follow it. It
// refuses arguments that would detach the agent or that the row sets.
func (a Agent) Argv(command string, args []string, model, permissionMode string) ([]string, error) {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if slices.Contains(detaching, name) || a.Harness == "codebuddy" && slices.Contains(codebuddyOwn, name) {
			return nil, fault.New(ReservedArgument, "quirks.Argv", "the argument %s may not be given", name).
				WithHint("leave it out")
		}
	}
	argv := slices.Clone(a.Program)
	if command != "" {
		argv = []string{command}
	}
	if len(argv) == 0 {
		return nil, fault.New(ReservedArgument, "quirks.Argv", "this harness is not known").
			WithHint("give command and args of an agent that speaks ACP on stdio")
	}
	argv = append(argv, args...)
	if a.Harness == "codebuddy" && command == "" {
		argv = append(argv, "--model", model, "--permission-mode", codebuddyModes[permissionMode], "--acp", "--acp-transport", "stdio")
	}
	return argv, nil
}

// Environment is the given environment with what the row adds; a given value wins.
func (a Agent) Environment(given map[string]string) map[string]string {
	env := maps.Clone(a.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, given)
	return env
}

// KeyLogin is the login that the given environment makes possible without asking anybody.
func (a Agent) KeyLogin(env map[string]string) (method string, ok bool) {
	if a.KeyMethod == "" {
		return "", false
	}
	for _, name := range a.KeyEnv {
		if env[name] != "" {
			return a.KeyMethod, true
		}
	}
	return "", false
}

// LoggedIn reads the result of StatusMethod. Nil means that it does not say.
func (a Agent) LoggedIn(result json.RawMessage) *bool {
	var status struct {
		Type     *string `json:"type"`
		UserID   string  `json:"userId"`
		UserName string  `json:"userName"`
	}
	if json.Unmarshal(result, &status) != nil {
		return nil
	}
	var yes bool
	switch {
	case status.Type != nil:
		yes = *status.Type != "unauthenticated" && *status.Type != "none" && *status.Type != ""
	case a.Harness == "codebuddy":
		yes = status.UserID != "" || status.UserName != ""
	default:
		return nil
	}
	return &yes
}

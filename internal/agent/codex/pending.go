package codex

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/logend"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// pendingWindow is how much of the end of a rollout is read for the open tool call: the
// call is among the last records while its approval is open.
const pendingWindow = 512 << 10

// toolRecord is what is read of a rollout line to find the open tool call.
type toolRecord struct {
	Type    string `json:"type"`
	Payload struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		CallID    string `json:"call_id"`
		Cwd       string `json:"cwd"` // turn_context
		Passed    struct {
			TurnID string `json:"turn_id"`
		} `json:"internal_chat_message_metadata_passthrough"`
	} `json:"payload"`
}

// commandArgs are the arguments of Codex's command tool that do not change what a command
// line means.
type commandArgs struct {
	Cmd         string          `json:"cmd"`
	Workdir     *string         `json:"workdir"`
	Yield       json.RawMessage `json:"yield_time_ms"`
	MaxOutput   json.RawMessage `json:"max_output_tokens"`
	Permissions json.RawMessage `json:"sandbox_permissions"`
	Reason      json.RawMessage `json:"justification"`
	Prefix      json.RawMessage `json:"prefix_rule"`
	TTY         json.RawMessage `json:"tty"`
}

// readCommand reads the arguments of the command tool. One that is not known may change
// what runs, as the choice of another shell does, so such a call is not understood.
func readCommand(text string) (args commandArgs, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return args, d.Decode(&args) == nil && args.Cmd != ""
}

// PendingCommand reads the command that waits for an approval from the thread's rollout.
func (a *Adapter) PendingCommand(_ context.Context, ref agent.Ref, n agent.Native, nativeTurnID string) (agent.Command, error) {
	const op = "codex.pending"
	none := func(why string) (agent.Command, error) {
		return agent.Command{}, fault.New(fault.NotFound, op, "%s", why)
	}
	lines, err := logend.Lines(n.LogPath, pendingWindow)
	if err != nil {
		return agent.Command{}, fault.Wrap(err, fault.NotFound, op, "the rollout cannot be read")
	}
	cwd := ref.Cwd
	open := map[string]toolRecord{}
	for _, line := range lines {
		var r toolRecord
		if json.Unmarshal(line, &r) != nil {
			return none("a record of the rollout cannot be read")
		}
		switch {
		case r.Type == "turn_context" && r.Payload.Cwd != "":
			cwd = r.Payload.Cwd
		case r.Type != "response_item":
		case strings.HasSuffix(r.Payload.Type, "_call"):
			open[r.Payload.CallID] = r
		case strings.HasSuffix(r.Payload.Type, "_call_output"):
			delete(open, r.Payload.CallID)
		}
	}
	if len(open) != 1 {
		return none("not exactly one tool call is open")
	}
	for _, r := range open {
		p := r.Payload
		args, ok := readCommand(p.Arguments)
		if p.Type != "function_call" || p.Name != "exec_command" || !ok {
			return none("the open tool call runs no command that is wholly understood")
		}
		if p.Passed.TurnID != nativeTurnID || nativeTurnID == "" {
			return none("the open tool call is not proved to be of this turn")
		}
		if args.Workdir != nil && *args.Workdir != "" {
			if cwd = *args.Workdir; !filepath.IsAbs(cwd) {
				return none("the directory of the command is relative")
			}
		}
		return agent.Command{Line: args.Cmd, Cwd: cwd, Source: "rollout"}, nil
	}
	return none("no tool call is open")
}

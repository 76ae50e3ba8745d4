package claude

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/logend"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// pendingWindow is how much of the end of a transcript is read for the open tool use.
const pendingWindow = 512 << 10

// toolRecord is what is read of a transcript line to find the open tool use.
type toolRecord struct {
	Type        string `json:"type"`
	IsSidechain bool   `json:"isSidechain"`
	SessionID   string `json:"sessionId"`
	Cwd         string `json:"cwd"`
	Message     struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

type toolBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	cwd       string
}

// commandInput is the input of Claude Code's command tool that does not change what a
// command means. Whether it leaves the sandbox is for a person.
type commandInput struct {
	Command     string          `json:"command"`
	Background  bool            `json:"run_in_background"`
	Timeout     json.RawMessage `json:"timeout"`
	Description json.RawMessage `json:"description"`
}

// readCommand reads the input of the command tool. A call with a field that is not known
// is not understood.
func readCommand(input json.RawMessage) (in commandInput, ok bool) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	return in, d.Decode(&in) == nil && in.Command != ""
}

// PendingCommand reads the command that waits for an approval from the transcript. Claude
// Code runs commands where its shell is, which each record names.
func (a *Adapter) PendingCommand(_ context.Context, _ agent.Ref, n agent.Native, _ string) (agent.Command, error) {
	const op = "claude.pending"
	none := func(why string) (agent.Command, error) {
		return agent.Command{}, fault.New(fault.NotFound, op, "%s", why)
	}
	lines, err := logend.Lines(n.LogPath, pendingWindow)
	if err != nil {
		return agent.Command{}, fault.Wrap(err, fault.NotFound, op, "the transcript cannot be read")
	}
	open := map[string]toolBlock{}
	for _, line := range lines {
		var r toolRecord
		if json.Unmarshal(line, &r) != nil {
			return none("a record of the transcript cannot be read")
		}
		var blocks []toolBlock
		if json.Unmarshal(r.Message.Content, &blocks) != nil {
			continue // a plain text
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				if r.IsSidechain || r.SessionID != n.ThreadID {
					return none("a tool of a sub-agent may be the one that waits")
				}
				b.cwd = r.Cwd
				open[b.ID] = b
			case "tool_result":
				delete(open, b.ToolUseID)
			}
		}
	}
	if len(open) != 1 {
		return none("not exactly one tool use is open")
	}
	for _, b := range open {
		in, ok := readCommand(b.Input)
		if b.Name != "Bash" || !ok || in.Background || b.cwd == "" {
			return none("the open tool use runs no command whose directory is known")
		}
		return agent.Command{Line: in.Command, Cwd: b.cwd, Source: "transcript"}, nil
	}
	return none("no tool use is open")
}

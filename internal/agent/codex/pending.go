package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
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

// PendingCommand reads the command that waits for an approval from the thread's rollout.
func (a *Adapter) PendingCommand(_ context.Context, ref agent.Ref, n agent.Native, nativeTurnID string) (agent.Command, error) {
	const op = "codex.pending"
	none := func(why string) (agent.Command, error) {
		return agent.Command{}, fault.New(fault.NotFound, op, "%s", why)
	}
	lines, err := lastLines(n.LogPath, pendingWindow)
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
		var args struct {
			Cmd     string  `json:"cmd"`
			Workdir *string `json:"workdir"`
		}
		p := r.Payload
		if p.Type != "function_call" || p.Name != "exec_command" || json.Unmarshal([]byte(p.Arguments), &args) != nil || args.Cmd == "" {
			return none("the open tool call runs no command")
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

// lastLines returns the complete lines in the last window bytes of a file.
func lastLines(path string, window int64) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, st.Size()-window)
	buf, err := io.ReadAll(io.NewSectionReader(f, from, st.Size()-from))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(buf, []byte("\n"))
	lines = lines[:len(lines)-1] // the last one has no end yet, or is empty
	if from > 0 && len(lines) > 0 {
		lines = lines[1:]
	}
	out := lines[:0]
	for _, l := range lines {
		if len(bytes.TrimSpace(l)) > 0 {
			out = append(out, l)
		}
	}
	return out, nil
}

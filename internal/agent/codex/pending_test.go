package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func toolCall(id, turn, args string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","status":"completed","name":"exec_command","arguments":%q,"call_id":%q,"internal_chat_message_metadata_passthrough":{"turn_id":%q}}}`, args, id, turn)
}

func toolOutput(id string) string {
	return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call_output","call_id":%q,"output":"x"}}`, id)
}

const turnContext = `{"type":"turn_context","payload":{"cwd":"/w"}}`

func TestTheRolloutTellsTheOneCommandThatWaits(t *testing.T) { // spec part 11
	for name, c := range map[string]struct {
		lines []string
		want  agent.Command
	}{
		"one":                   {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test","justification":"?"}`)}, agent.Command{Line: "npm test", Cwd: "/w", Source: "rollout"}},
		"one after another":     {[]string{turnContext, toolCall("a", "t", `{"cmd":"ls"}`), toolOutput("a"), toolCall("b", "t", `{"cmd":"npm test","workdir":"/w/sub"}`)}, agent.Command{Line: "npm test", Cwd: "/w/sub", Source: "rollout"}},
		"another shell":         {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test","shell":"/w/bash"}`)}, agent.Command{}},
		"an unknown argument":   {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test","env":{"PATH":"/w"}}`)}, agent.Command{}},
		"none":                  {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test"}`), toolOutput("a")}, agent.Command{}},
		"two":                   {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test"}`), toolCall("b", "t", `{"cmd":"ls"}`)}, agent.Command{}},
		"of another turn":       {[]string{turnContext, toolCall("a", "u", `{"cmd":"npm test"}`)}, agent.Command{}},
		"a relative directory":  {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test","workdir":"sub"}`)}, agent.Command{}},
		"another tool":          {[]string{turnContext, strings.Replace(toolCall("a", "t", `{"cmd":"npm test"}`), "exec_command", "write_stdin", 1)}, agent.Command{}},
		"a broken record":       {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test"}`), `{"type":`}, agent.Command{}},
		"beside another kind":   {[]string{turnContext, toolCall("a", "t", `{"cmd":"npm test"}`), `{"type":"response_item","payload":{"type":"custom_tool_call","call_id":"b","name":"apply_patch"}}`}, agent.Command{}},
		"arguments of no shape": {[]string{turnContext, toolCall("a", "t", `{"cmd":["npm","test"]}`)}, agent.Command{}},
	} {
		path := filepath.Join(t.TempDir(), "rollout.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := New(Options{}).PendingCommand(t.Context(), agent.Ref{Cwd: "/elsewhere"}, agent.Native{LogPath: path}, "t")
		if got != c.want || (c.want.Line == "") != fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	if _, err := New(Options{}).PendingCommand(t.Context(), agent.Ref{}, agent.Native{LogPath: filepath.Join(t.TempDir(), "none")}, "t"); !fault.Is(err, fault.NotFound) {
		t.Errorf("without a rollout: %v", err)
	}
}

package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func toolUse(id, session, input string) string {
	return fmt.Sprintf(`{"type":"assistant","isSidechain":false,"sessionId":%q,"cwd":"/w","message":{"content":[{"type":"tool_use","id":%q,"name":"Bash","input":%s}]}}`, session, id, input)
}

func toolResult(id string) string {
	return fmt.Sprintf(`{"type":"user","sessionId":"s","cwd":"/w","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":"x"}]}}`, id)
}

func TestTheTranscriptTellsTheOneCommandThatWaits(t *testing.T) { // spec part 11
	text := `{"type":"user","sessionId":"s","cwd":"/w","message":{"content":"do it"}}`
	for name, c := range map[string]struct {
		lines []string
		want  agent.Command
	}{
		"one":               {[]string{text, toolUse("a", "s", `{"command":"npm test","description":"d"}`)}, agent.Command{Line: "npm test", Cwd: "/w", Source: "transcript"}},
		"one after another": {[]string{toolUse("a", "s", `{"command":"ls"}`), toolResult("a"), toolUse("b", "s", `{"command":"npm test"}`)}, agent.Command{Line: "npm test", Cwd: "/w", Source: "transcript"}},
		"none":              {[]string{toolUse("a", "s", `{"command":"npm test"}`), toolResult("a")}, agent.Command{}},
		"two":               {[]string{toolUse("a", "s", `{"command":"npm test"}`), toolUse("b", "s", `{"command":"ls"}`)}, agent.Command{}},
		"another session":   {[]string{toolUse("a", "u", `{"command":"npm test"}`)}, agent.Command{}},
		"a sub-agent":       {[]string{strings.Replace(toolUse("a", "s", `{"command":"npm test"}`), `"isSidechain":false`, `"isSidechain":true`, 1)}, agent.Command{}},
		"in the background": {[]string{toolUse("a", "s", `{"command":"npm test","run_in_background":true}`)}, agent.Command{}},
		"another tool":      {[]string{strings.Replace(toolUse("a", "s", `{"file_path":"x"}`), "Bash", "Edit", 1)}, agent.Command{}},
		"a broken record":   {[]string{toolUse("a", "s", `{"command":"npm test"}`), `{"type":`}, agent.Command{}},
	} {
		path := filepath.Join(t.TempDir(), "transcript.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := New(Options{}).PendingCommand(t.Context(), agent.Ref{}, agent.Native{LogPath: path, ThreadID: "s"}, "")
		if got != c.want || (c.want.Line == "") != fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

package realagent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
)

const limit = 60 * time.Second

// turn pastes a prompt, presses Enter and waits until the model server has answered it
// and the log of the conversation holds the end of the turn.
func turn(t *testing.T, a *Agent, s *fakemodel.Server, prompt, endMark string) {
	t.Helper()
	load := exec.Command("tmux", "-S", a.Socket, "load-buffer", "-b", "b", "-")
	load.Stdin = strings.NewReader(prompt)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tmux := func(args ...string) string {
		out, err := a.tmux(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	tmux("paste-buffer", "-p", "-d", "-b", "b", "-t", a.PaneID)
	for start := time.Now(); len(s.Requests()) == 0; { // a busy agent may lose an Enter; this is no product
		if time.Since(start) > limit {
			t.Fatalf("no request came; screen:\n%s", tmux("capture-pane", "-p", "-t", a.PaneID))
		}
		if strings.Contains(tmux("capture-pane", "-p", "-t", a.PaneID), prompt) {
			tmux("send-keys", "-t", a.PaneID, "Enter")
		}
		<-time.After(2 * time.Second)
	}
	pattern := filepath.Join(a.AgentHome, "sessions", "*", "*", "*", "rollout-*.jsonl")
	if a.Mode == ClaudePlain {
		pattern = filepath.Join(a.AgentHome, "projects", "*", "*.jsonl")
	}
	deadline := time.Now().Add(limit)
	for {
		logs, _ := filepath.Glob(pattern)
		for _, l := range logs {
			if b, err := os.ReadFile(l); err == nil && bytes.Contains(b, []byte(endMark)) && bytes.Contains(b, []byte("it works")) {
				return
			}
		}
		if time.Now().After(deadline) {
			screen, _ := a.tmux(t.Context(), "capture-pane", "-p", "-t", a.PaneID)
			t.Fatalf("no end of the turn; requests %+v; screen:\n%s", s.Requests(), screen)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func TestEveryAgentComesUpDoesATurnAndGoesDownWithoutATrace(t *testing.T) {
	Need(t)
	for mode, end := range map[Mode]string{CodexEmbedded: `"task_complete"`, CodexDaemon: `"task_complete"`,
		CodexRemote: `"task_complete"`, ClaudePlain: `"turn_duration"`} {
		t.Run(string(mode), func(t *testing.T) {
			model, server := fakemodel.Start(t), faketmux.New(t)
			a := Start(t, server.Socket(), mode, model.URL(), nil)
			turn(t, a, model, "SAY:it works", end)
			if mode != ClaudePlain && (a.ServerURL == "") != (mode == CodexEmbedded) {
				t.Errorf("server %q", a.ServerURL)
			}
			socket := a.controlSocket()
			if err := a.Down(); err != nil {
				t.Error(err)
			}
			fakehost.WaitNoSurvivors(t, a.CaseID, limit)
			if mode != CodexDaemon {
				return
			}
			if _, err := os.Lstat(socket); socket == "" || err == nil {
				t.Errorf("the shared server's socket %q stays: %v", socket, err)
			}
		})
	}
}

// A Codex that has an MCP server calls its tools on the scripted model's request. Tools
// that are not read-only need the server's approval mode.
func TestCodexCallsToolsOfAnMCPServer(t *testing.T) {
	model := fakemodel.Start(t)
	out, err := Exec(t.Context(), Options{Bin: Need(t), ModelURL: model.URL(), Dir: t.TempDir(),
		Config: MCPServer("akk", []string{"REALAGENT_TEST_MCP=1"}, os.Args[0], "-test.run=^TestHelperMCPServer$")},
		`TOOL:first {} ;; TOOL:second {"id":"${1:id}"} ;; SAY:heard ${2:heard}`)
	if err != nil || !strings.Contains(string(out), `"text":"heard seven"`) {
		t.Fatalf("%v: %s; requests %+v", err, out, model.Requests())
	}
}

// TestHelperMCPServer is no test: it is the MCP server that Codex starts.
func TestHelperMCPServer(t *testing.T) {
	if os.Getenv("REALAGENT_TEST_MCP") == "" {
		t.Skip("only as a child of TestCodexCallsToolsOfAnMCPServer")
	}
	type dict = map[string]any
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion string
				Arguments       struct{ ID string }
			}
		}
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		result := dict{}
		switch m.Method {
		case "initialize":
			result = dict{"protocolVersion": m.Params.ProtocolVersion, "capabilities": dict{"tools": dict{}}, "serverInfo": dict{"name": "x", "version": "0"}}
		case "tools/list":
			schema := dict{"type": "object", "properties": dict{"id": dict{"type": "string"}}}
			result = dict{"tools": []any{dict{"name": "first", "inputSchema": schema}, dict{"name": "second", "inputSchema": schema}}}
		case "tools/call":
			value := dict{"id": "seven"}
			if m.Params.Arguments.ID != "" {
				value = dict{"heard": m.Params.Arguments.ID}
			}
			text, _ := json.Marshal(value)
			result = dict{"content": []any{dict{"type": "text", "text": string(text)}}, "structuredContent": value}
		}
		b, _ := json.Marshal(dict{"jsonrpc": "2.0", "id": m.ID, "result": result})
		os.Stdout.Write(append(b, '\n'))
	}
	os.Exit(0)
}

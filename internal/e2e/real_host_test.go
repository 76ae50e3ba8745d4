//go:build e2e

package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// commandLine is the command line of this world's Bridge, for a Host that is not ours.
func (w *world) commandLine() []string {
	return []string{w.bin, "host-bridge", "--profile", w.host.Profile, "--host", fakehost.HostName, "--host-version", fakehost.HostVersion,
		"--store-dir", w.host.Store, "--tmux-socket", w.tmux.Socket()}
}

// TestRealCodexDelegatesToARealClaudeCode: the Host is a real Codex with the Bridge in its MCP
// configuration, the agent is a real Claude Code. Codex lists, sends, and goes on with a
// command of its own until the callback program was called.
func TestRealCodexDelegatesToARealClaudeCode(t *testing.T) {
	t.Parallel()
	realagent.Need(t)
	r := newReal(t, realagent.ClaudePlain, nil)
	r.idle()
	r.close() // the Bridge of this test is Codex's own
	bridge := r.commandLine()
	wait := fmt.Sprintf("for i in $(seq 600); do test -s '%s' && echo heard && exit; sleep 0.1; done; exit 1", r.host.Log)
	call, err := json.Marshal(map[string]any{"cmd": wait, "yield_time_ms": 30000})
	if err != nil {
		t.Fatal(err)
	}
	out, err := realagent.Exec(t.Context(), realagent.Options{
		Bin: realagent.Need(t), Dir: faketmux.ShortDir(t), ModelURL: r.model.URL(), CaseID: r.host.CaseID,
		Config: realagent.MCPServer("akk", r.host.Env, bridge[0], bridge[1:]...),
	}, `TOOL:agent_knock_knock_list {} ;; `+
		`TOOL:agent_knock_knock_send {"terminal_id":"${1:terminals.0.terminal_id}","request":"SAY:greetings from the other side"} ;; `+
		`TOOL:exec_command `+string(call)+` ;; SAY:delegated as ${2:turn_id}, ${2:status}`)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, dump(r.model.Requests()))
	}
	if !strings.Contains(string(out), "delegated as turn-") || !strings.Contains(string(out), ", async_pending") {
		t.Errorf("Codex printed %s", out)
	}
	if d := r.host.WaitDeliveries(1, patience); len(d) != 1 || d[0].Body != "greetings from the other side" || d[0].Session != r.host.Session {
		t.Errorf("callbacks: %+v", d)
	}
	if got := r.prompts(); !slices.Equal(got, []string{"SAY:greetings from the other side"}) {
		t.Errorf("Claude Code's records hold %q", got)
	}
	fakehost.WaitNoSurvivors(t, r.host.CaseID, patience) // Codex took the Bridge down with it
	r.alive()
}

//go:embed inspector/package.json
var inspectorJSON []byte

//go:embed inspector/package-lock.json
var inspectorLock []byte

// TestRealMCPInspectorListsAndCallsTheTools: a client that is not ours and not the SDK's.
func TestRealMCPInspectorListsAndCallsTheTools(t *testing.T) {
	t.Parallel()
	bin := realagent.Packages{JSON: inspectorJSON, Lock: inspectorLock}.Need(t)
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	inspect := func(out any, args ...string) {
		t.Helper()
		argv := []string{"--cli"}
		for _, e := range w.host.Env {
			argv = append(argv, "-e", e)
		}
		argv = append(append(argv, w.commandLine()...), args...)
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "mcp-inspector"), argv...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(b, out)
		}
		if err != nil {
			t.Fatalf("%v: %v: %s%s", args, err, b, stderr.String())
		}
	}
	var tools struct {
		Tools []struct{ Name string }
	}
	inspect(&tools, "--method", "tools/list")
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	for _, want := range []string{"agent_knock_knock_list", "agent_knock_knock_status", "agent_knock_knock_send"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %q", want, names)
		}
	}
	var terminals struct {
		StructuredContent listing
	}
	inspect(&terminals, "--method", "tools/call", "--tool-name", "agent_knock_knock_list")
	if len(terminals.StructuredContent.Terminals) != 1 {
		t.Fatalf("%+v", terminals)
	}
	var result struct {
		StructuredContent sent
	}
	inspect(&result, "--method", "tools/call", "--tool-name", "agent_knock_knock_send",
		"--tool-arg", "terminal_id="+terminals.StructuredContent.Terminals[0].TerminalID, "--tool-arg", "request=SAY:inspected")
	if result.StructuredContent.Status != "async_pending" {
		t.Errorf("%+v", result)
	}
	p.typedOnce("SAY:inspected")
	c := w.start() // the inspector's Bridge ended with it; this one finishes what it began
	waitCallback(t, c, result.StructuredContent.TurnID, "delivered")
	if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "inspected" {
		t.Errorf("%+v", d)
	}
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// The Hosts here are programs of others, with `harness mcp` in their MCP configuration. What
// they start outlives them, and another Host finds it again.

// orders are what the model of a Host does: it makes a session, sends one message in it, and
// repeats the answer.
func orders(t *testing.T, b *behind, prefix string) string {
	t.Helper()
	args, err := json.Marshal(b.launch())
	if err != nil {
		t.Fatal(err)
	}
	return "TOOL:" + prefix + "create_session " + string(args) + " ;; " +
		"TOOL:" + prefix + `send_message {"session_id":"${1:session_id}","text":"SAY:a word from inside"} ;; ` +
		"SAY:${2:state} in ${1:session_id}, it said ${2:result.text}"
}

// heard checks what a Host printed, and that a second Host sees the same session.
func (b *behind) heard(out string) {
	t := b.t
	t.Helper()
	_, rest, ok := strings.Cut(out, "completed in ")
	id, said, ok2 := strings.Cut(rest, ", it said a word from inside")
	if !ok || !ok2 || id == "" || said == "" {
		t.Fatalf("the Host printed %s\nthe model was asked %s", out, dump(b.model.Requests()))
	}
	asked := 0
	for _, r := range b.model.Requests() {
		if r.Kind == "main" && r.User == "SAY:a word from inside" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the agent's model was asked %d times: %s", asked, dump(b.model.Requests()))
	}
	p := b.start("", nil)
	if st := p.says(id, "SAY:and another"); text(st) != "and another" {
		t.Errorf("a second Host: %v", st)
	}
	if out, code := p.patient("close_session", obj{"session_id": id}); code != "" || out["status"] != "closed" {
		t.Errorf("close: %s %v", code, out)
	}
	if left := b.agents(); len(left) != 0 {
		t.Errorf("after close_session: %v", left)
	}
}

func TestRealClaudeCodeIsTheHostOfAHeadlessCodex(t *testing.T) {
	bin := realagent.Need(t)
	b := newBehind(t, "codex")
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	out, err := realagent.Print(ctx, realagent.Options{Bin: bin, Dir: faketmux.ShortDir(t), ModelURL: b.model.URL(), CaseID: b.caseID + "-host"},
		orders(t, b, "mcp__headless__"), "headless", b.settings(), b.bin, "harness", "mcp")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, dump(b.model.Requests()))
	}
	fakehost.WaitNoSurvivors(t, b.caseID+"-host", patience) // the proxy has another mark
	b.heard(string(out))
}

func TestRealCodexIsTheHostOfAHeadlessClaude(t *testing.T) {
	bin := realagent.Need(t)
	b := newBehind(t, "claude")
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	out, err := realagent.Exec(ctx, realagent.Options{Bin: bin, Dir: faketmux.ShortDir(t), ModelURL: b.model.URL(), CaseID: b.caseID + "-host",
		Config: realagent.MCPServer("headless", b.settings(), b.bin, "harness", "mcp")}, orders(t, b, ""))
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, dump(b.model.Requests()))
	}
	b.heard(string(out))
}

// TestRealMCPInspectorGetsAnAnswerFromAHeadlessAgent: each call is a process of the inspector
// and a proxy of its own; the server and the session stay between them.
func TestRealMCPInspectorGetsAnAnswerFromAHeadlessAgent(t *testing.T) {
	bin := realagent.Packages{JSON: inspectorJSON, Lock: inspectorLock}.Need(t)
	h := newHeadless(t)
	inspect := func(out any, args ...string) {
		t.Helper()
		argv := []string{"--cli"}
		for _, e := range h.settings() {
			argv = append(argv, "-e", e)
		}
		argv = append(append(argv, h.bin, "harness", "mcp"), args...)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "mcp-inspector"), argv...)
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
	call := func(tool string, args obj) obj {
		t.Helper()
		argv := []string{"--method", "tools/call", "--tool-name", tool}
		for k, v := range args {
			text, ok := v.(string)
			if !ok {
				j, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				text = string(j)
			}
			argv = append(argv, "--tool-arg", k+"="+text)
		}
		var res struct {
			IsError           bool
			StructuredContent obj
			Content           []struct{ Text string }
		}
		inspect(&res, argv...)
		if res.IsError || len(res.Content) != 1 {
			t.Fatalf("%s: %+v", tool, res)
		}
		return res.StructuredContent
	}

	var tools struct{ Tools []struct{ Name string } }
	inspect(&tools, "--method", "tools/list")
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := strings.Fields("answer_question auth_status authenticate cancel_message close_session create_session create_template message_status ping search_template send_message set_session_options wait"); !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}

	call("create_template", obj{"template": obj{"name": "reviewer", "harness": "scripted", "model": "default", "command": h.agent, "env": obj{fakehost.EnvCase: h.caseID}}})
	found := call("search_template", obj{"query": "VIEW"})["templates"].([]any)
	if len(found) != 1 {
		t.Fatalf("templates: %v", found)
	}
	template := found[0].(obj)
	made := call("create_session", obj{"model_id": template["model"], "harness": template["harness"], "command": template["command"], "env": template["env"], "cwd": h.work})
	st := call("send_message", obj{"session_id": made["session_id"], "text": "hello"})
	if text(st) != "echo:hello" || st["state"] != "completed" {
		t.Errorf("send_message: %v", st)
	}
	again := call("wait", obj{"session_id": st["session_id"], "message_id": st["message_id"]})
	if text(again) != "echo:hello" {
		t.Errorf("wait: %v", again)
	}
	if out := call("close_session", obj{"session_id": made["session_id"]}); out["status"] != "closed" {
		t.Errorf("close_session: %v", out)
	}
}

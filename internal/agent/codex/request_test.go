package codex

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Requests of codex-cli 0.171.0, as its server sent them.
var recordedRequests = map[string]appserver.Message{
	"tool":        {Method: "mcpServer/elicitation/request", ID: json.RawMessage("0"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","serverName":"notes","environmentId":null,"mode":"form","_meta":{"codex_approval_kind":"mcp_tool_call","tool_name":"add_note","tool_description":"Adds a note","tool_params":{"text":"hello"},"tool_params_display":[{"name":"text","value":"hello","display_name":"text"}]},"message":"Allow the notes MCP server to run tool \"add_note\"?","requestedSchema":{"type":"object","properties":{}}}`)},
	"form":        {Method: "mcpServer/elicitation/request", ID: json.RawMessage("1"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","serverName":"notes","mode":"form","_meta":null,"message":"Which project?","requestedSchema":{"type":"object","properties":{"project":{"type":"string"}}}}`)},
	"permissions": {Method: "item/permissions/requestApproval", ID: json.RawMessage("2"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","itemId":"i","environmentId":"local","startedAtMs":1,"cwd":"/home/user/proj","reason":"need the net","permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":["/tmp/out"],"entries":[{"path":{"type":"path","path":"/tmp/out"},"access":"write"}]}}}`)},
	"question":    {Method: "item/tool/requestUserInput", ID: json.RawMessage("3"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","itemId":"i","questions":[{"id":"color","header":"Color","question":"Which color?","isOther":true,"isSecret":false,"options":[{"label":"Red","description":"Warm"}]}],"isBlocking":false,"autoResolutionMs":null}`)},
	"secret":      {Method: "item/tool/requestUserInput", ID: json.RawMessage("4"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","itemId":"i","questions":[{"id":"c","question":"Which color?","isSecret":false},{"id":"p","question":"Which word?","isSecret":true}]}`)},
	"edit":        {Method: "item/fileChange/requestApproval", ID: json.RawMessage("5"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","itemId":"i","startedAtMs":1,"reason":null,"grantRoot":null}`)},
	"root":        {Method: "item/fileChange/requestApproval", ID: json.RawMessage("6"), Params: json.RawMessage(`{"threadId":"t","turnId":"u","itemId":"i","startedAtMs":1,"grantRoot":"/home/user"}`)},
}

func TestEachRequestOfTheServerIsApprovableOnlyWhereOneAnswerGrantsItAlone(t *testing.T) {
	for name, want := range map[string]struct {
		kind       turn.PromptKind
		approvable bool
		manual     string
		once       string
		result     string // of that answer
		rejected   string // of the refusal
	}{
		"tool": {turn.PromptApproval, true, "", "accept", `{"_meta":null,"action":"accept","content":{}}`, `{"_meta":null,"action":"cancel","content":null}`},
		"form": {turn.PromptQuestion, false, "form", "", "", ""},
		"permissions": {turn.PromptApproval, true, "", "grant for this turn",
			`{"permissions":{"network":{"enabled":true},"fileSystem":{"read":null,"write":["/tmp/out"],"entries":[{"path":{"type":"path","path":"/tmp/out"},"access":"write"}]}},"scope":"turn"}`,
			`{"permissions":{},"scope":"turn"}`},
		"question": {turn.PromptQuestion, false, "", "", "", ""},
		"secret":   {turn.PromptQuestion, false, "secret", "", "", ""},
		"edit":     {turn.PromptApproval, true, "", "accept", `{"decision":"accept"}`, `{"decision":"cancel"}`},
		"root":     {turn.PromptApproval, false, "", "accept", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := recordedRequests[name]
			req := known.ServerRequests[m.Method]
			p := requestPrompt(turn.Endpoint{PaneID: "%1"}, m, req)
			if p.Kind != want.kind || p.Approvable != want.approvable || (p.Manual == "") != (want.manual == "") || !strings.Contains(p.Manual, want.manual) {
				t.Fatalf("%+v", p)
			}
			once, reject := "", ""
			for _, o := range p.Options {
				if o.OneTime {
					once += o.Key
				}
				if o.Reject {
					reject += o.Key
				}
			}
			if once != want.once {
				t.Errorf("the one-time answer is %q, want %q", once, want.once)
			}
			for decision, result := range map[string]string{once: want.result, reject: want.rejected} {
				if result == "" {
					continue
				}
				if got, err := answerTo(m, req, decision); err != nil || string(got) != result {
					t.Errorf("%s is sent as %s (%v), want %s", decision, got, err, result)
				}
			}
		})
	}
}

func TestAnMCPToolIsNamedWithWhatItIsGiven(t *testing.T) {
	m := recordedRequests["tool"]
	p := requestPrompt(turn.Endpoint{}, m, known.ServerRequests[m.Method])
	if p.Title != `Allow the notes MCP server to run tool "add_note"?` || !strings.Contains(p.Detail, `notes · add_note · {"text":"hello"}`) {
		t.Errorf("title %q, detail %q", p.Title, p.Detail)
	}
}

package ledgerserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/store"
)

func (c *client) restrict(p ledgertools.Policy) {
	c.t.Helper()
	if err := c.server.Restrict(p); err != nil {
		c.t.Fatal(err)
	}
}

// listed are the tools that the server shows.
func (c *client) listed() (names []string) {
	for _, raw := range c.message("tools/list", nil)["result"].(map[string]any)["tools"].([]any) {
		names = append(names, raw.(map[string]any)["name"].(string))
	}
	return names
}

// What is switched off is neither shown nor carried out, not even as a notification; its
// refusal has the shape of an unknown tool's and says who to ask.
func TestAToolThatTheHostHasSwitchedOffIsNeitherShownNorCalled(t *testing.T) {
	d := newDesk(t)
	all := d.listed()
	d.restrict(ledgertools.Policy{ReadOnly: true})
	left := strings.Join(d.listed(), " ") + " "
	if n := strings.Count(left, " "); n != 33 {
		t.Errorf("%d tools are shown: %s", n, left)
	}
	unknown := d.message("tools/call", args{"name": "no.tool"})
	for _, tool := range all {
		got := d.message("tools/call", args{"name": tool, "arguments": args{}})
		refused, _ := got["error"].(map[string]any)
		if shown := strings.Contains(left, tool+" "); shown != (refused == nil) {
			t.Errorf("%s is shown: %v; %v", tool, shown, got)
		}
		if refused != nil && (code(got) != code(unknown) || len(got) != len(unknown) || len(refused) != 2 || refused["message"] != "the host has switched off "+tool) {
			t.Errorf("%s: %v, an unknown tool: %v", tool, got, unknown)
		}
	}
	if _, ok := d.server.HandleMessage(t.Context(), []byte(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"projects.create","arguments":{"name":"Q"}}}`)); ok {
		t.Error("a notification has a reply")
	}
	d.ok("projects.list", nil).is("items", 1)
	if got := d.message("tools/call", args{"name": "no.tool"}); fmt.Sprint(got["error"]) != fmt.Sprint(unknown["error"]) {
		t.Errorf("an unknown tool: %v", got)
	}
}

func TestAMistakeInAPolicyLeavesTheServerAsItWas(t *testing.T) {
	c := newClient(t)
	if err := c.server.Restrict(ledgertools.Policy{Only: []string{"odd.*"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
	if n := len(c.listed()); n != 78 {
		t.Errorf("%d tools", n)
	}
}

// Resources are for reading: they are the same under every list of tools.
func TestResourcesStayReadableWhateverToolsAreLeft(t *testing.T) {
	d := newDesk(t)
	before := fmt.Sprint(d.message("resources/list", nil)["result"])
	uri := "cairnline://projects/" + d.project
	project := fmt.Sprint(d.message("resources/read", args{"uri": uri})["result"])
	d.restrict(ledgertools.Policy{ReadOnly: true, Only: []string{"assignments.next"}, NoDiscovery: true})
	if after := fmt.Sprint(d.message("resources/list", nil)["result"]); after != before {
		t.Errorf("%s, without the switches %s", after, before)
	}
	if after := fmt.Sprint(d.message("resources/read", args{"uri": uri})["result"]); after != project || project == "<nil>" {
		t.Errorf("%s, without the switches %s", after, project)
	}
}

func TestAServerWithoutTheViewDoesNotMentionIt(t *testing.T) {
	d := newDesk(t)
	d.restrict(ledgertools.Policy{NoView: true})
	d.server.DeclareExtension(ledgerserver.UIExtension, args{"mimeTypes": []string{"text/html;profile=mcp-app"}}) // the switch is the last word
	d.server.DeclareExtension("example.com/x", nil)
	for method, params := range map[string]any{"initialize": nil, "tools/list": nil, "resources/list": nil, "resources/templates/list": nil} {
		got := d.message(method, params)
		if text := fmt.Sprint(got); got["result"] == nil || strings.Contains(text, "ui://") || strings.Contains(text, "_meta") || strings.Contains(text, ledgerserver.UIExtension) {
			t.Errorf("%s: %s", method, text)
		}
	}
	if got := fmt.Sprint(d.message("initialize", nil)); !strings.Contains(got, "example.com/x") {
		t.Errorf("the host's own extension is gone: %s", got)
	}
	none := d.message("resources/read", args{"uri": "ui://cairnline/none"})
	if got := d.message("resources/read", args{"uri": ledgertools.ViewURI}); code(got) != -32002 || code(got) != code(none) {
		t.Errorf("the view: %v, what is not there: %v", got, none)
	}
	if n := len(d.listed()); n != 78 {
		t.Errorf("%d tools", n)
	}
	d.ok("projects.health", d.with())
}

func TestAnEmptyLedgerWithoutTheViewListsNoResources(t *testing.T) {
	c := newClient(t)
	c.restrict(ledgertools.Policy{NoView: true})
	if list, ok := c.message("resources/list", nil)["result"].(map[string]any)["resources"].([]any); !ok || len(list) != 0 {
		t.Errorf("%v, a list: %v", list, ok)
	}
}

// Nothing is recommended that would be refused.
func TestAServerRecommendsOnlyToolsThatAreLeft(t *testing.T) {
	instructions := func(c *client) string {
		return c.message("initialize", nil)["result"].(map[string]any)["instructions"].(string)
	}
	c := newClient(t)
	whole := instructions(c)
	c.ok("coordination.capabilities", nil).is("recommended_mcp_pull_flow", 7)
	c.restrict(ledgertools.Policy{NoDiscovery: true, NoView: true})
	if got := instructions(c); got != whole {
		t.Errorf("work can be taken, and the instructions are %q", got)
	}
	c.restrict(ledgertools.Policy{ReadOnly: true})
	c.ok("coordination.capabilities", nil).is("recommended_mcp_pull_flow", 3, "recommended_mcp_pull_flow.0", "assignments.next", "recommended_mcp_pull_flow.1", "assignments.context")
	if got := instructions(c); strings.Contains(got, "assignments.claim") || !strings.Contains(got, "tools/list") {
		t.Errorf("the instructions are %q", got)
	}
	c.restrict(ledgertools.Policy{Only: []string{"coordination.*"}})
	if got := c.ok("coordination.capabilities", nil).at("recommended_mcp_pull_flow"); fmt.Sprint(got) != "[]" {
		t.Errorf("the flow is %v", got)
	}
}

// Read-only mode believes the annotations: no tool that it leaves needs a ledger that can be
// written.
func TestTheToolsOfReadOnlyModeWriteNothing(t *testing.T) {
	c, db, file, project := onFile(t)
	d := &desk{client: c, project: project}
	d.role = c.ok("roles.create", d.with("name", "R")).id()
	d.work = c.ok("work_items.create", d.with("title", "W")).id()
	d.asgn = d.queue()
	evidence := c.ok("evidence.record", d.item("title", "E", "body", "b")).id()
	review := c.ok("reviews.record", d.item("title", "R", "body", "b", "verdict", "approved")).id()
	handoff := c.ok("handoffs.create", d.item("title", "H", "body", "b")).id()
	artifact := c.ok("artifacts.create", d.on("work_item_id", d.work, "kind", "note", "title", "A", "body", "b")).id()
	memory := c.ok("memory_entries.create", d.with("title", "M", "body", "b")).id()
	candidate := c.ok("memory_candidates.create", d.with("title", "M", "body", "b")).id()
	proposal := c.ok("assistant.propose", args{"title": "T", "actions": []args{{"kind": "create_role", "role": args{"project_id": project, "name": "S"}}}}).id()
	db.Close()
	read, err := store.OpenFile(t.Context(), file, store.Options{ReadOnly: true, Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c.server = ledgerserver.New(coord.New(read), "1.0.0")
	c.fails("internal", "projects.create", args{"name": "Q"})
	c.restrict(ledgertools.Policy{ReadOnly: true})
	ids := map[string]string{"projects.get": project, "work_items.get": d.work, "assistant.proposals.get": proposal}
	for _, tool := range c.listed() {
		c.ok(tool, d.on("id", ids[tool], "work_item_id", d.work, "evidence_id", evidence, "review_id", review, "handoff_id", handoff, "artifact_id", artifact,
			"memory_id", memory, "candidate_id", candidate))
	}
}

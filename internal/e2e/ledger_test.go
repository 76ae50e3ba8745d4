package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

type ledgerRecord struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Claim  struct {
		ID string `json:"id"`
	} `json:"claim"`
	Items []struct {
		ID string `json:"id"`
	} `json:"items"`
}

// With both toolsets one session has the terminal tools first and the ledger's behind
// them; work is pulled through that session, the records are in the Store, and resources
// can be read. Without the flag there is neither a tool nor a table of the ledger.
func TestOneSessionOffersTheTerminalsAndTheLedger(t *testing.T) {
	w := newWorld(t, nil)
	c := w.start("--toolsets", "terminal,coordination")
	tools, err := c.Session().ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	views := 0
	for _, tool := range tools.Tools {
		names = append(names, strings.TrimPrefix(tool.Name, catalogue.Prefix))
		if ui, ok := tool.Meta["ui"].(map[string]any); ok && ui["resourceUri"] == "ui://cairnline/project-status" {
			views++
		}
	}
	n := len(catalogue.Names)
	if len(names) != n+78 || !slices.Equal(names[:n], catalogue.Names) || names[n] != "coordination.capabilities" || views != 3 {
		t.Fatalf("%d tools, %d linked to the view: %v", len(names), views, names)
	}
	do := func(tool string, args map[string]any) (r ledgerRecord) {
		t.Helper()
		c.MustCall(tool, args).Decode(t, &r)
		return r
	}
	p := do("projects.create", map[string]any{"name": "P"}).ID
	role := do("roles.create", map[string]any{"project_id": p, "name": "R"}).ID
	item := do("work_items.create", map[string]any{"project_id": p, "title": "W"}).ID
	a := do("assignments.create", map[string]any{"project_id": p, "work_item_id": item, "role_id": role}).ID
	next := do("assignments.next", map[string]any{"project_id": p})
	if len(next.Items) != 1 || next.Items[0].ID != a {
		t.Fatalf("offered: %+v", next)
	}
	claim := do("assignments.claim", map[string]any{"project_id": p, "assignment_id": a, "claimed_by": "w"}).Claim.ID
	do("evidence.record", map[string]any{"project_id": p, "work_item_id": item, "assignment_id": a, "title": "E", "body": "b"})
	if got := do("assignments.complete", map[string]any{"project_id": p, "assignment_id": a, "claim_id": claim}); got.Status != "completed" {
		t.Errorf("%+v", got)
	}
	stale, err := c.Call(t.Context(), "assignments.complete", map[string]any{"project_id": p, "assignment_id": a, "claim_id": claim})
	if err != nil || stale.Code() != "conflict" {
		t.Errorf("a second end: %+v, %v", stale, err)
	}
	if l := list(t, c); !l.Store.Writable {
		t.Errorf("%+v", l)
	}
	readLedgerResources(t, c, p)
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d: %s", code, c.Stderr())
	}

	plain := w.start()
	if tools, err := plain.Session().ListTools(t.Context(), nil); err != nil || len(tools.Tools) != n {
		t.Errorf("%d tools without the flag, %v", len(tools.Tools), err)
	}
	if _, err := plain.Session().ListResources(t.Context(), nil); err == nil {
		t.Error("a session without the ledger lists resources")
	}
	if code := plain.Close(settle); code != 0 {
		t.Errorf("exit %d: %s", code, plain.Stderr())
	}

	alone := w.start("--toolsets", "coordination")
	var got ledgerRecord
	alone.MustCall("assignments.get", map[string]any{"project_id": p, "assignment_id": a}).Decode(t, &got)
	if tools, err := alone.Session().ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 78 || got.Status != "completed" {
		t.Errorf("%d tools, %+v, %v", len(tools.Tools), got, err)
	}
	if code := alone.Close(settle); code != 0 {
		t.Errorf("exit %d: %s", code, alone.Stderr())
	}
}

func readLedgerResources(t *testing.T, c *fakehost.Client, project string) {
	t.Helper()
	s := c.Session()
	if caps := s.InitializeResult().Capabilities; caps.Resources == nil || caps.Extensions["io.modelcontextprotocol/ui"] == nil {
		t.Errorf("capabilities %+v", caps)
	}
	l, err := s.ListResources(t.Context(), nil)
	if err != nil || len(l.Resources) != 6 { // the view, the project, the item and the assignment twice each
		t.Fatalf("%+v, %v", l, err)
	}
	if tmpl, err := s.ListResourceTemplates(t.Context(), nil); err != nil || len(tmpl.ResourceTemplates) != 6 {
		t.Errorf("templates %+v, %v", tmpl, err)
	}
	for _, r := range l.Resources {
		got, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		if err != nil || len(got.Contents) != 1 || got.Contents[0].MIMEType != r.MIMEType {
			t.Errorf("%s: %+v, %v", r.URI, got, err)
			continue
		}
		if r.MIMEType == "application/json" && !json.Valid([]byte(got.Contents[0].Text)) {
			t.Errorf("%s is not JSON", r.URI)
		}
	}
	if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "cairnline://projects/" + project + "/nothing"}); err == nil {
		t.Error("an address that names nothing was read")
	}
}

// A Bridge that serves only its terminals makes no table of the ledger.
func TestABridgeWithoutTheLedgerMakesNoTablesForIt(t *testing.T) {
	w := newWorld(t, nil)
	c := w.start()
	if code := c.Close(settle); code != 0 {
		t.Fatalf("exit %d: %s", code, c.Stderr())
	}
	db, err := store.Open(t.Context(), w.host.Store, store.Options{ReadOnly: true, Sets: []store.Set{ledgersql.Tables()}})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("opened the ledger of a Store without one: %v", err)
	}
	if db != nil {
		db.Close()
	}
}

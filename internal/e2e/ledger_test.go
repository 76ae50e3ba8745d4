package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// The ledger's own server, when its file cannot be opened: one line that says why, nothing
// on stdout, and the file as it was.
func TestTheServerOfALedgerThatCannotBeOpenedEndsWithOneLine(t *testing.T) {
	bin := install(t)
	dir, err := os.MkdirTemp("/tmp", "akk-ledger") // another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(filepath.Join(dir, "closed"), 0o700), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "closed"), 0o555), os.WriteFile(filepath.Join(dir, "text.db"), []byte(strings.Repeat("no database\n", 400)), 0o600)); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "agent-knock-knock") // where that user may run it
	whole, err := os.ReadFile(bin)
	if err == nil {
		err = os.WriteFile(program, whole, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for file, c := range map[string]struct {
		says     string
		nobody   bool
		contents string
	}{
		"text.db":          {says: "cannot be read", contents: strings.Repeat("no database\n", 400)},
		"closed/ledger.db": {says: "cannot", nobody: true},
		"nowhere/l.db":     {says: "is not a directory"},
	} {
		cmd := exec.CommandContext(t.Context(), program, "coordination", "mcp", "--db", filepath.Join(dir, file))
		if c.nobody && os.Getuid() == 0 { // the super-user may write anywhere
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		cmd.Stdin = strings.NewReader(initialize)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout.Len() != 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: %v, stdout %q, stderr %q", file, err, stdout.String(), stderr.String())
		}
		if after, err := os.ReadFile(filepath.Join(dir, file)); string(after) != c.contents {
			t.Errorf("%s was changed: %v", file, err)
		}
	}
}

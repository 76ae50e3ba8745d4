package coordination_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/bridge/coordination"
)

func TestTheCodesOfErrorsAreStable(t *testing.T) {
	s := coordination.NewMemoryService()
	defer s.Close()
	ctx := t.Context()
	a := queued(ctx, s)
	_, missing := s.GetProject(ctx, "proj_none")
	_, blank := s.CreateProject(ctx, coordination.Project{})
	_, taken := s.CreateProject(ctx, coordination.Project{ID: a.ProjectID, Name: "again"})
	_, state := s.ReleaseAssignmentWithClaim(ctx, a.ProjectID, a.ID, "claim_x")
	for _, c := range []struct {
		err      error
		sentinel error
		code     string
	}{{missing, coordination.ErrNotFound, "not_found"}, {blank, coordination.ErrInvalid, "invalid"}, {taken, coordination.ErrDuplicate, "already_exists"},
		{state, coordination.ErrConflict, "conflict"}} {
		if !errors.Is(c.err, c.sentinel) || coordination.ClassifyErrorCode(c.err) != c.code {
			t.Errorf("%v: want %s, got %s", c.err, c.code, coordination.ClassifyErrorCode(c.err))
		}
	}
	if errors.Is(missing, coordination.ErrConflict) {
		t.Error("a missing record is a conflict")
	}
	if coordination.ClassifyErrorCode(nil) != "" || coordination.ClassifyErrorCode(errors.New("odd")) != coordination.ErrorCodeInternal {
		t.Error("nil and unknown errors have the wrong class")
	}
}

func TestDeclaredExtensionsAreAdvertised(t *testing.T) {
	s := coordination.NewMemoryService()
	defer s.Close()
	m := coordination.NewMCPServer(s, "1.2.3")
	m.DeclareExtension("example.com/x", nil)
	m.DeclareExtension("io.modelcontextprotocol/ui", nil)
	reply, _ := m.HandleMessage(t.Context(), []byte(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
	var got struct {
		Result struct {
			ProtocolVersion string
			Capabilities    struct{ Extensions map[string]any }
		}
	}
	if err := json.Unmarshal(reply, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"example.com/x": map[string]any{}, "io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []any{"text/html;profile=mcp-app"}}}
	if diff := cmp.Diff(want, got.Result.Capabilities.Extensions); diff != "" {
		t.Error(diff)
	}
	if got.Result.ProtocolVersion != "2025-06-18" {
		t.Error("an older protocol version that is known was not kept:", got.Result.ProtocolVersion)
	}
}

// Case 52: a snapshot goes round without a change, and into another store too.
func TestASnapshotOfEveryRecordGoesRoundUnchanged(t *testing.T) {
	ctx := t.Context()
	from := coordination.NewMemoryService()
	defer from.Close()
	fillLedger(t, from)
	first, err := from.ExportSnapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	to, err := coordination.NewSQLiteService(ctx, filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second import finds everything there
		decoded, err := coordination.DecodeSnapshot(raw)
		if err != nil {
			t.Fatal(err)
		}
		second, err := to.ImportSnapshot(ctx, decoded)
		if err != nil {
			t.Fatal(err)
		}
		second.ExportedAt = first.ExportedAt
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	}
	for _, p := range first.Projects {
		a, _ := from.OperationsBrief(ctx, p.ID)
		b, _ := to.OperationsBrief(ctx, p.ID)
		if diff := cmp.Diff(a.Counts, b.Counts); diff != "" {
			t.Error("the counters differ after a move:", diff)
		}
	}
}

// fillLedger makes records of every kind, also ones whose role and assignment are gone.
func fillLedger(t *testing.T, s *coordination.Service) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.CreateProject(ctx, coordination.Project{Name: "P", Roots: []coordination.Root{{ID: "main", Path: "/srv"}}, ContextSources: []coordination.ContextSource{{ID: "g", Locator: "AGENTS.md", Metadata: map[string]string{"k": "v"}}}})
	must(err)
	gone, err := s.CreateRole(ctx, coordination.Role{ProjectID: p.ID, Name: "Gone"})
	must(err)
	r, err := s.CreateRole(ctx, coordination.Role{ProjectID: p.ID, Name: "R", DefaultSkillIDs: []string{"review"}})
	must(err)
	_, err = s.CreateSkill(ctx, coordination.Skill{ProjectID: p.ID, ID: "review", Enabled: true})
	must(err)
	w, err := s.CreateWorkItem(ctx, coordination.WorkItem{ProjectID: p.ID, Title: "W", OwnerRoleID: gone.ID})
	must(err)
	var made []coordination.Assignment
	for range 3 {
		a, err := s.CreateAssignment(ctx, coordination.Assignment{ProjectID: p.ID, WorkItemID: w.ID, RoleID: gone.ID})
		must(err)
		a, err = s.ClaimAssignmentWithLease(ctx, p.ID, a.ID, "w")
		must(err)
		made = append(made, a)
	}
	_, err = s.CompleteAssignmentWithClaim(ctx, p.ID, made[1].ID, made[1].Claim.ID, "", &coordination.ExecutionRef{RunID: "r"})
	must(err)
	_, err = s.RecordEvidence(ctx, coordination.Evidence{ProjectID: p.ID, WorkItemID: w.ID, AssignmentID: made[2].ID, Title: "E", Body: "b"})
	must(err)
	_, err = s.CreateArtifact(ctx, coordination.Artifact{ProjectID: p.ID, WorkItemID: w.ID, Kind: "note", Body: "b"})
	must(err)
	v, err := s.RecordReview(ctx, coordination.Review{ProjectID: p.ID, WorkItemID: w.ID, Body: "redo", Verdict: "changes_requested"})
	must(err)
	h, err := s.CreateHandoff(ctx, coordination.Handoff{ProjectID: p.ID, WorkItemID: w.ID, Title: "H", Body: "b", ToRoleID: r.ID, LinkedArtifactIDs: []string{v.ID}})
	must(err)
	_, err = s.AcceptHandoffWithFollowUp(ctx, coordination.Acceptance{ProjectID: p.ID, WorkItemID: w.ID, HandoffID: h.ID, ExpectedUpdatedAt: h.UpdatedAt, IdempotencyKey: "k", Intent: coordination.AcceptIntent})
	must(err)
	_, err = s.CreateMemoryEntry(ctx, coordination.MemoryEntry{ProjectID: p.ID, Title: "M", Body: "b"})
	must(err)
	_, err = s.CreateMemoryCandidate(ctx, coordination.MemoryCandidate{ProjectID: p.ID, Title: "C", Body: "b", SourceRefs: []coordination.SourceRef{{Kind: "k", ID: "i"}}})
	must(err)
	prop, err := s.Propose(ctx, coordination.Proposal{Title: "T", Actions: []coordination.ProposalAction{{Kind: "create_role", Role: &coordination.Role{ProjectID: p.ID, Name: "New"}}}})
	must(err)
	_, err = s.ApplyProposal(ctx, prop.ID, true)
	must(err)
	must(s.DeleteAssignment(ctx, p.ID, made[2].ID))
	must(s.DeleteRole(ctx, p.ID, gone.ID))
}

// Cases 34 and 52: what is no ledger is refused whole.
func TestASnapshotThatIsNoLedgerIsRefusedWhole(t *testing.T) {
	project := `"projects":[{"id":"p","name":"P"}],"work_items":[{"id":"w","project_id":"p","title":"W","status":"ready","priority":"normal"}]`
	assignment := func(status, more string) string {
		return fmt.Sprintf(`"assignments":[{"id":"a","project_id":"p","work_item_id":"w","role_id":"r","execution_mode":"mcp_pull","status":%q%s}]`, status, more)
	}
	claim := `,"claimed_by":"w","claim":{"id":"claim_1","acquired_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-01T00:05:00Z"}`
	for name, c := range map[string]struct{ json, code string }{
		"no version":             {`{` + project + `}`, "invalid"},
		"newer version":          {`{"version":3,` + project + `}`, "invalid"},
		"version 1 with a claim": {`{"version":1,` + project + `,` + assignment("claimed", claim) + `}`, "invalid"},
		"queued with a claim":    {`{"version":2,` + project + `,` + assignment("queued", claim) + `}`, "invalid"},
		"running with an expiry": {`{"version":2,` + project + `,` + assignment("running", claim) + `}`, "invalid"},
		"unknown status":         {`{"version":2,` + project + `,` + assignment("odd", "") + `}`, "invalid"},
		"bare execution_ref":     {`{"version":2,` + project + `,` + assignment("queued", `,"execution_ref":"run-1"`) + `}`, "invalid"},
		"no such work item":      {`{"version":2,"projects":[{"id":"p","name":"P"}],` + assignment("queued", "") + `}`, "not_found"},
		"a late bad record":      {`{"version":2,` + project + `,"memory_candidates":[{"id":"c","project_id":"p","title":"t","body":"b","status":"odd"}]}`, "invalid"},
		"claimed of version 1":   {`{"version":1,` + project + `,` + assignment("claimed", `,"claimed_by":"w"`) + `}`, ""},
		"role is gone":           {`{"version":2,` + project + `,` + assignment("claimed", claim) + `}`, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := coordination.NewMemoryService()
			defer s.Close()
			in, err := coordination.DecodeSnapshot([]byte(c.json))
			if err == nil {
				_, err = s.ImportSnapshot(t.Context(), in)
			}
			if got := coordination.ClassifyErrorCode(err); got != c.code {
				t.Fatalf("got %q (%v), want %q", got, err, c.code)
			}
			p, err := s.ListProjects(t.Context(), coordination.Span{})
			if err != nil || (len(p.Items) == 0) != (c.code != "") {
				t.Errorf("%d projects stayed, %v", len(p.Items), err)
			}
		})
	}
}

package coordination_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/bridge/coordination"
)

const (
	aProject = `"projects":[{"id":"p","name":"P"}]`
	anItem   = `"work_items":[{"id":"w","project_id":"p","title":"W","status":"ready","priority":"normal"}]`
)

// of builds a snapshot of one project and one work item with something more.
func of(parts ...string) string {
	return `{"version":2,` + strings.Join(append([]string{aProject, anItem}, parts...), ",") + `}`
}

// Case 52: a record in a state that no ledger knows, or of a time that none can hold, is
// refused with the whole snapshot.
func TestASnapshotWithAnUnknownStateIsRefusedWhole(t *testing.T) {
	handoff := func(more string) string {
		return `"handoffs":[{"id":"h","project_id":"p","work_item_id":"w","title":"t","body":"b"` + more + `}]`
	}
	review := func(more string) string {
		return `"reviews":[{"id":"r","project_id":"p","work_item_id":"w","title":"t","body":"b"` + more + `}]`
	}
	candidate := func(more string) string {
		return `"memory_candidates":[{"id":"c","project_id":"p","title":"t","body":"b"` + more + `}]`
	}
	assignment := func(more string) string {
		return `"assignments":[{"id":"a","project_id":"p","work_item_id":"w","role_id":"r","execution_mode":"mcp_pull","status":"claimed","claimed_by":"w"` + more + `}]`
	}
	proposal := func(more string) string {
		return `"assistant_proposals":[{"id":"q","source":"api","proposal":{"id":"q","title":"t","source":"api","requires_confirmation":true,"actions":[]}` + more + `}]`
	}
	for name, c := range map[string]struct{ json, code string }{
		"handoff status":      {of(handoff(`,"status":"odd"`)), "invalid"},
		"no handoff status":   {of(handoff("")), ""},
		"review verdict":      {of(review(`,"verdict":"odd"`)), "invalid"},
		"no review verdict":   {of(review("")), "invalid"},
		"review risk":         {of(review(`,"verdict":"risk","risk":"odd"`)), "invalid"},
		"review":              {of(review(`,"verdict":"risk","risk":"low","status":"recorded"`)), ""},
		"candidate status":    {of(candidate(`,"status":"odd"`)), "invalid"},
		"proposed candidate":  {of(candidate(`,"status":"proposed"`)), ""},
		"no candidate status": {of(candidate("")), ""},
		"role mode":           {of(`"roles":[{"id":"r","project_id":"p","name":"R","default_execution_mode":"odd"}]`), "invalid"},
		"no role mode":        {of(`"roles":[{"id":"r","project_id":"p","name":"R"}]`), ""},
		"skill status":        {of(`"project_skills":[{"id":"s","project_id":"p","title":"S","path":"","format":"skill_md","enabled":true,"status":"odd","trust_label":"x"}]`), "invalid"},
		"proposal status":     {of(proposal(`,"status":"odd"`)), "invalid"},
		"partial proposal":    {of(proposal(`,"status":"partial"`)), ""},

		"a late claim":          {of(assignment(`,"claim":{"id":"claim_1","acquired_at":"2026-01-01T00:00:00Z","expires_at":"2400-01-01T00:00:00Z"}`)), "invalid"},
		"an early acquisition":  {of(assignment(`,"claim":{"id":"claim_1","acquired_at":"1600-01-01T00:00:00Z","expires_at":"2026-01-01T00:00:00Z"}`)), "invalid"},
		"a late project":        {`{"version":2,"projects":[{"id":"p","name":"P","created_at":"2300-01-01T00:00:00Z"}]}`, "invalid"},
		"an early source":       {`{"version":2,"projects":[{"id":"p","name":"P","context_sources":[{"id":"s","enabled":true,"updated_at":"0900-01-01T00:00:00Z"}]}]}`, "invalid"},
		"a late handoff status": {of(handoff(`,"status":"open","status_changed_at":"9999-01-01T00:00:00Z"`)), "invalid"},
		"a late proposal":       {of(proposal(`,"status":"applied","applied_at":"9999-01-01T00:00:00Z"`)), "invalid"},
		"a late attempt":        {of(proposal(`,"status":"partial","apply_attempts":[{"id":"x","status":"partial","created_at":"9999-01-01T00:00:00Z"}]`)), "invalid"},
		"a time that is unset":  {of(handoff(`,"status":"open","status_changed_at":"0001-01-01T00:00:00Z"`)), ""},
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

// D15: peers store what names a thing twice. Nothing of it is lost and nothing refused: the
// first keeps the name, as it does where a peer looks one up.
func TestASnapshotThatNamesThingsTwiceIsImported(t *testing.T) {
	raw := `{"version":2,"projects":[{"id":"p","name":"P","default_root_id":"a","roots":[{"id":"a","path":"/1","active":true},{"id":"a","path":"/2","active":false},
		{"id":"a-2","path":"/3","active":true},{"id":"a","path":"/4","active":true}],
		"context_sources":[{"id":"s","title":"one","enabled":true},{"id":"s","title":"two","enabled":true}]}],` + anItem + `,
		"reviews":[{"id":"r","project_id":"p","work_item_id":"w","title":"t","body":"b","verdict":"blocked"}],
		"handoffs":[{"id":"h","project_id":"p","work_item_id":"w","title":"t","body":"b","status":"dismissed","linked_artifact_ids":["r","r"," r ","q"],"linked_memory_ids":["m","m"],"context_refs":["c","c"]}]}`
	s := coordination.NewMemoryService()
	defer s.Close()
	var first coordination.Snapshot
	for i := range 3 { // again, and then what was exported
		in, err := coordination.DecodeSnapshot([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.ImportSnapshot(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if out.ExportedAt = first.ExportedAt; i == 0 {
			first = out
		} else if diff := cmp.Diff(first, out); diff != "" {
			t.Error("the import is not the same again:", diff)
		}
		if i == 1 {
			b, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			raw = string(b)
		}
	}
	var roots, sources []string
	for _, r := range first.Projects[0].Roots {
		roots = append(roots, r.ID+r.Path)
	}
	for _, r := range first.Projects[0].ContextSources {
		sources = append(sources, r.ID+" "+r.Title)
	}
	if want := []string{"a/1", "a-3/2", "a-2/3", "a-4/4"}; !slices.Equal(roots, want) {
		t.Errorf("the roots are %v, want %v", roots, want)
	}
	if want := []string{"s one", "s-2 two"}; !slices.Equal(sources, want) {
		t.Errorf("the sources are %v, want %v", sources, want)
	}
	if h := first.Handoffs[0]; !slices.Equal(h.LinkedArtifactIDs, []string{"r", "q"}) || len(h.LinkedMemoryIDs) != 1 || len(h.ContextRefs) != 1 {
		t.Errorf("the handoff is %+v", h)
	}
	if r, err := s.CloseoutReadiness(t.Context(), "p", "w"); err != nil || r.ReviewFollowUpCount != 0 {
		t.Errorf("the link does not count: %+v, %v", r, err)
	}
}

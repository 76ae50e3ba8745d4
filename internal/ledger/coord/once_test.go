package coord_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
)

// together calls f n times at once, through two connections to one file, and returns how
// many calls succeeded. Every other one must have lost by a conflict.
func together(t *testing.T, file string, n int, f func(s *coord.Service) error) (ok int) {
	t.Helper()
	services := []*coord.Service{open(t, file), open(t, file)}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(services[i%2]) })
	}
	wg.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			ok++
		case !fault.Is(err, fault.Conflict):
			t.Errorf("%v", err)
		}
	}
	return ok
}

// Cases 10 and 17, H6 1: of sixteen claims one holds, of eight ends one stands.
func TestOfManyClaimsAndManyEndsOneWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, file)
	project := queue(t, s, 1)
	next, err := s.NextAssignments(t.Context(), project, coord.NextFilter{})
	if err != nil || len(next) != 1 {
		t.Fatal(next, err)
	}
	id := next[0].ID
	if n := together(t, file, 16, func(s *coord.Service) error {
		_, err := s.ClaimAssignmentWithLease(t.Context(), project, id, "w")
		return err
	}); n != 1 {
		t.Errorf("%d claims hold", n)
	}
	held, err := s.GetAssignment(t.Context(), project, id)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan string, 8)
	for range 4 {
		ends <- "completed"
		ends <- "failed"
	}
	stood := make(chan string, 8)
	if n := together(t, file, 8, func(s *coord.Service) error {
		status := <-ends
		_, err := s.CompleteAssignmentWithClaim(t.Context(), project, id, held.Claim.ID, status, nil)
		if err == nil {
			stood <- status
		}
		return err
	}); n != 1 {
		t.Fatalf("%d ends stand", n)
	}
	if got, err := s.GetAssignment(t.Context(), project, id); err != nil || got.Status != <-stood {
		t.Errorf("%+v, %v", got, err)
	}
}

// Cases 26 and 33: of six edits with one revision one holds; six acceptances with one key
// all succeed and make one assignment.
func TestOfSixEditsOneHoldsAndSixAcceptancesAreOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, file)
	project := queue(t, s, 1)
	items, err := s.ListWorkItems(t.Context(), project, coord.Span{})
	if err != nil {
		t.Fatal(err)
	}
	item := items.Items[0].ID
	r, err := s.CreateRole(t.Context(), ledger.Role{ProjectID: project, Name: "Next"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.CreateHandoff(t.Context(), ledger.Handoff{ProjectID: project, WorkItemID: item, Title: "H", Body: "b", ToRoleID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	title := make(chan string, 6)
	for _, v := range []string{"1", "2", "3", "4", "5", "6"} {
		title <- v
	}
	if n := together(t, file, 6, func(s *coord.Service) error {
		v := <-title
		_, err := s.PatchHandoff(t.Context(), project, item, h.ID, h.UpdatedAt, ledger.HandoffPatch{Title: &v})
		return err
	}); n != 1 {
		t.Errorf("%d edits hold", n)
	}
	if h, err = s.GetHandoff(t.Context(), project, item, h.ID); err != nil {
		t.Fatal(err)
	}
	made := make(chan string, 6)
	if n := together(t, file, 6, func(s *coord.Service) error {
		got, err := s.AcceptHandoffWithFollowUp(t.Context(), ledger.Acceptance{ProjectID: project, WorkItemID: item, HandoffID: h.ID, ExpectedUpdatedAt: h.UpdatedAt, IdempotencyKey: "k", Intent: ledger.AcceptIntent})
		made <- got.Assignment.ID
		return err
	}); n != 6 {
		t.Errorf("%d of six acceptances succeeded", n)
	}
	first := <-made
	for range 5 {
		if id := <-made; id != first {
			t.Errorf("%s and %s were made", first, id)
		}
	}
	all, err := s.ListAssignments(t.Context(), project, ledgersql.AssignmentFilter{}, coord.Span{})
	if err != nil || len(all.Items) != 2 {
		t.Errorf("%d assignments, %v", len(all.Items), err)
	}
}

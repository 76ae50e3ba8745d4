package coord_test

import (
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

// asked is an item whose review asks for follow-up, and another item to do it in.
type asked struct {
	t                              *testing.T
	s                              *coord.Service
	project, role, item, b, review string
}

func newAsked(t *testing.T) asked {
	t.Helper()
	a := asked{t: t, s: open(t, filepath.Join(t.TempDir(), "ledger.db"))}
	ctx := t.Context()
	p, err := a.s.CreateProject(ctx, ledger.Project{Name: "P"})
	a.must(err)
	r, err := a.s.CreateRole(ctx, ledger.Role{ProjectID: p.ID, Name: "R"})
	a.must(err)
	w, err := a.s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: p.ID, Title: "W"})
	a.must(err)
	b, err := a.s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: p.ID, Title: "B"})
	a.must(err)
	v, err := a.s.RecordReview(ctx, ledger.Review{ProjectID: p.ID, WorkItemID: w.ID, Body: "b", Verdict: ledger.VerdictChanges})
	a.must(err)
	a.project, a.role, a.item, a.b, a.review = p.ID, r.ID, w.ID, b.ID, v.ID
	return a
}

func (a asked) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a asked) hand(h ledger.Handoff) {
	a.t.Helper()
	h.ProjectID, h.Title, h.Body, h.LinkedArtifactIDs = a.project, "H", "b", []string{a.review}
	_, err := a.s.CreateHandoff(a.t.Context(), h)
	a.must(err)
}

func (a asked) finished(item string) string {
	a.t.Helper()
	ctx := a.t.Context()
	w, err := a.s.CreateAssignment(ctx, ledger.Assignment{ProjectID: a.project, WorkItemID: item, RoleID: a.role})
	a.must(err)
	w, err = a.s.ClaimAssignmentWithLease(ctx, a.project, w.ID, "w")
	a.must(err)
	_, err = a.s.CompleteAssignmentWithClaim(ctx, a.project, w.ID, w.Claim.ID, "", nil)
	a.must(err)
	return w.ID
}

func (a asked) waits(want int) {
	a.t.Helper()
	r, err := a.s.CloseoutReadiness(a.t.Context(), a.project, a.item)
	a.must(err)
	if r.ReviewFollowUpCount != want || want > 0 && (r.Ready || r.Status != "blocked") {
		a.t.Errorf("%d reviews wait, want %d: %+v", r.ReviewFollowUpCount, want, r)
	}
	b, err := a.s.OperationsBrief(a.t.Context(), a.project)
	a.must(err)
	if b.Counts.ReviewFollowUps != want {
		a.t.Errorf("the brief counts %d reviews that wait, want %d", b.Counts.ReviewFollowUps, want)
	}
}

// Case 54: with a work item goes the follow-up that was done in it or decided there, and
// the review that asked for it waits again. A handoff that leads to an assignment of the
// item goes with it, whether or not it names the item.
func TestAReviewWaitsAgainWhenTheItemOfItsFollowUpIsDeleted(t *testing.T) {
	for name, hand := range map[string]func(asked){
		"done in the item": func(a asked) {
			a.hand(ledger.Handoff{WorkItemID: a.item, TargetWorkItemID: a.b, TargetAssignmentID: a.finished(a.b)})
		},
		"done in an assignment of the item": func(a asked) { a.hand(ledger.Handoff{WorkItemID: a.item, TargetAssignmentID: a.finished(a.b)}) },
		"dismissed in the item":             func(a asked) { a.hand(ledger.Handoff{WorkItemID: a.b, Status: ledger.HandoffDismissed}) },
		"dismissed towards the item": func(a asked) {
			a.hand(ledger.Handoff{WorkItemID: a.item, TargetWorkItemID: a.b, Status: ledger.HandoffDismissed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsked(t)
			a.waits(1)
			hand(a)
			a.waits(0)
			a.must(a.s.DeleteWorkItem(t.Context(), a.project, a.b))
			a.waits(1)
			left, err := a.s.ListHandoffs(t.Context(), a.project, a.item, coord.Span{})
			a.must(err)
			if len(left.Items) != 0 {
				t.Errorf("handoffs stayed: %+v", left.Items)
			}
		})
	}
}

// The deletion of an item whose own review waits, and of one that others hand off to, leaves
// no counter behind.
func TestTheItemThatAskedIsDeletedWithItsReview(t *testing.T) {
	a := newAsked(t)
	a.hand(ledger.Handoff{WorkItemID: a.b, TargetWorkItemID: a.item})
	a.must(a.s.DeleteWorkItem(t.Context(), a.project, a.item))
	b, err := a.s.OperationsBrief(t.Context(), a.project)
	a.must(err)
	if b.Counts.ReviewFollowUps != 0 || b.Counts.OpenHandoffs != 0 || b.Counts.WorkItems != 1 {
		t.Errorf("%+v", b.Counts)
	}
}

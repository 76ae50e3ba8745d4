package overview

import (
	"fmt"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

// Readiness says whether a work item can be closed. It is advice.
type Readiness struct {
	ProjectID                    string     `json:"project_id"`
	WorkItemID                   string     `json:"work_item_id"`
	Ready                        bool       `json:"ready"`
	Status                       string     `json:"status"`
	Title                        string     `json:"title"`
	Detail                       string     `json:"detail"`
	Blockers                     []string   `json:"blockers,omitempty"`
	Warnings                     []string   `json:"warnings,omitempty"`
	AssignmentCount              int        `json:"assignment_count"`
	CompletedAssignments         int        `json:"completed_assignments"`
	ReviewFollowUpCount          int        `json:"review_follow_up_count"`
	ReviewFollowUpArtifactIDs    []string   `json:"review_follow_up_artifact_ids,omitempty"`
	ReviewFollowUps              []FollowUp `json:"review_follow_ups,omitempty"`
	MissingEvidenceAssignmentIDs []string   `json:"missing_evidence_assignment_ids,omitempty"`
	OpenHandoffIDs               []string   `json:"open_handoff_ids,omitempty"`
}

// FollowUp is a review that asks for work which nothing finished.
type FollowUp struct {
	ArtifactID           string `json:"artifact_id"`
	Title                string `json:"title"`
	Status               string `json:"status"`
	Blocker              string `json:"blocker"`
	ReviewedAssignmentID string `json:"reviewed_assignment_id,omitempty"`
	ReviewVerdict        string `json:"review_verdict"`
	ReviewRisk           string `json:"review_risk,omitempty"`
}

// NeedsPath is the status of a follow-up.
const NeedsPath = "needs_path"

// Tally is what is known of a work item in numbers, kept beside it as its records change.
type Tally struct {
	Status    map[string]int // assignments by status
	Unproved  int            // completed ones without evidence of their own
	Loose     int            // evidence for the item as a whole
	Handoffs  int            // open ones
	FollowUps int            // unresolved
}

// Assignments is how many there are.
func (t Tally) Assignments() (n int) {
	for _, k := range t.Status {
		n += k
	}
	return n
}

// Unfinished is the part of a readiness that needs names; lists may be cut short.
type Unfinished struct {
	Assignments []string        // completed ones without evidence
	Handoffs    []string        // open ones
	Reviews     []ledger.Review // unresolved
}

// Closeout judges a work item.
func Closeout(w ledger.WorkItem, t Tally, names Unfinished) Readiness {
	r := Readiness{ProjectID: w.ProjectID, WorkItemID: w.ID, AssignmentCount: t.Assignments(), CompletedAssignments: t.Status[ledger.Completed],
		ReviewFollowUpCount: t.FollowUps, OpenHandoffIDs: names.Handoffs}
	missing := t.Unproved
	if t.Loose > 0 {
		missing = 0
	} else {
		r.MissingEvidenceAssignmentIDs = names.Assignments
	}
	for _, v := range names.Reviews {
		r.ReviewFollowUpArtifactIDs = append(r.ReviewFollowUpArtifactIDs, v.ID)
		r.ReviewFollowUps = append(r.ReviewFollowUps, FollowUp{ArtifactID: v.ID, Title: v.Title, Status: NeedsPath,
			Blocker:              fmt.Sprintf("The review %q (%s) has no finished follow-up.", ledger.Clip(v.Title), v.Verdict),
			ReviewedAssignmentID: v.AssignmentID, ReviewVerdict: v.Verdict, ReviewRisk: v.Risk})
	}
	if !w.Open() {
		r.Status, r.Title, r.Detail = "done", "Closed", "The work item is "+w.Status+"."
		return r
	}
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			r.Blockers = append(r.Blockers, "1 "+one)
		case n > 1:
			r.Blockers = append(r.Blockers, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(t.Status[ledger.Queued]+t.Status[ledger.Claimed]+t.Status[ledger.Running]+t.Status[ledger.AwaitingApproval]+t.Status[ledger.AwaitingReview], "assignment is not finished", "assignments are not finished")
	add(t.Status[ledger.Failed], "assignment failed", "assignments failed")
	add(t.Status[ledger.Cancelled], "assignment was cancelled", "assignments were cancelled")
	add(t.Handoffs, "handoff is open", "handoffs are open")
	add(missing, "completed assignment has no evidence", "completed assignments have no evidence")
	add(t.FollowUps, "review waits for follow-up", "reviews wait for follow-up")
	if r.AssignmentCount == 0 {
		r.Warnings = append(r.Warnings, "The work item has no assignments.")
	}
	if len(r.Blockers) > 0 {
		r.Status, r.Title, r.Detail = "blocked", "Not ready to close", "Resolve the blockers, then close the work item."
		return r
	}
	r.Ready, r.Status, r.Title, r.Detail = true, "ready", "Ready to close", "Nothing blocks the closing of the work item."
	return r
}

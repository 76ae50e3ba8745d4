package coord

import (
	"context"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ListAssignments lists assignments, the most recently changed first.
func (s *Service) ListAssignments(ctx context.Context, projectID string, f ledgersql.AssignmentFilter, span Span) (Page[ledger.Assignment], error) {
	return list(ctx, s, projectID, span, func(tx *store.Tx, id string, p ledgersql.Page) ([]ledger.Assignment, error) {
		return ledgersql.Assignments(tx, id, f, p)
	})
}

// GetAssignment reads an assignment.
func (s *Service) GetAssignment(ctx context.Context, projectID, id string) (a ledger.Assignment, err error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id); err != nil {
		return a, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { a, err = assignment(tx, projectID, id); return err })
	return a, err
}

// NextFilter is what a worker can do.
type NextFilter struct {
	AgentKind string
	// SkillIDs are compared only when given; an empty list admits only work that asks for
	// no skill.
	SkillIDs       *[]string
	ExecutionModes []string // none means mcp_pull
	Status         string   // "" means queued
	Limit          int      // 0 means all
}

// NextAssignments lists compatible work: queued work of open items by priority, then age.
func (s *Service) NextAssignments(ctx context.Context, projectID string, f NextFilter) (out []ledger.Assignment, err error) {
	if err := requireIDs("project_id", &projectID); err != nil {
		return nil, err
	}
	modes := ledger.List(f.ExecutionModes)
	for _, m := range modes {
		if !slices.Contains(ledger.ExecutionModes, m) {
			return nil, fault.New(fault.Invalid, "ledger", "execution_modes holds an unknown mode").WithHint("use manual, mcp_pull, external_adapter or orchestrated")
		}
	}
	if len(modes) == 0 {
		modes = []string{ledger.ModePull}
	}
	status := ledger.Trim(f.Status)
	if status == "" {
		status = ledger.Queued
	}
	if !slices.Contains(ledger.Statuses, status) {
		return nil, fault.New(fault.Invalid, "ledger", "status is not the status of an assignment")
	}
	if f.Limit < 0 {
		return nil, fault.New(fault.Invalid, "ledger", "limit must be at least 1")
	}
	kind := ledger.Trim(f.AgentKind)
	err = s.view(ctx, func(tx *store.Tx) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		out, err = ledgersql.Next(tx, projectID, ledgersql.Offer{Status: status, Limit: f.Limit, Match: func(mode, wanted string, skills []string) bool {
			return ledger.Compatible(kind, f.SkillIDs, modes, mode, wanted, skills)
		}})
		return err
	})
	return out, err
}

// CreateAssignment queues work. The defaults of the role are not copied.
func (s *Service) CreateAssignment(ctx context.Context, a ledger.Assignment) (ledger.Assignment, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { a, err = createAssignment(tx, now, a); return err })
	return a, err
}

func createAssignment(tx *store.Tx, now time.Time, a ledger.Assignment) (ledger.Assignment, error) {
	if err := requireIDs("project_id", &a.ProjectID); err != nil {
		return a, err
	}
	a, err := ledger.CleanAssignment(a)
	if err != nil {
		return a, err
	}
	w, err := assignmentRefs(tx, a)
	if err != nil {
		return a, err
	}
	if err := free(ledger.KindAssign, "assignment", &a.ID, func(id string) (bool, error) { return ledgersql.AssignmentExists(tx, a.ProjectID, id) }); err != nil {
		return a, err
	}
	a.CreatedAt, a.UpdatedAt, a.StartedAt, a.CompletedAt = now, now, time.Time{}, time.Time{}
	return a, ledgersql.InsertAssignment(tx, a, w)
}

func assignmentRefs(tx *store.Tx, a ledger.Assignment) (ledger.WorkItem, error) {
	if err := needProject(tx, a.ProjectID); err != nil {
		return ledger.WorkItem{}, err
	}
	if err := rootOf(tx, a.ProjectID, a.RootID); err != nil {
		return ledger.WorkItem{}, err
	}
	w, err := item(tx, a.ProjectID, a.WorkItemID)
	if err != nil {
		return w, err
	}
	return w, roleOf(tx, a.ProjectID, a.RoleID)
}

// UpdateQueuedAssignment replaces the coordination of queued work, compare-and-set: it
// conflicts when anything changed since it was read.
func (s *Service) UpdateQueuedAssignment(ctx context.Context, projectID, id string, u ledger.QueuedUpdate) (a ledger.Assignment, err error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id); err != nil {
		return a, err
	}
	if u.ExpectedUpdatedAt.IsZero() {
		return a, fault.New(fault.Invalid, "ledger", "expected_updated_at is required: repeat the updated_at that was read")
	}
	if u.Expected, err = u.Expected.Clean("expected"); err != nil {
		return a, err
	}
	if u.Replacement, err = u.Replacement.Clean("replacement"); err != nil {
		return a, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		before, there, err := ledgersql.Assignment(tx, projectID, id)
		if err != nil {
			return err
		}
		r := u.Replacement
		to := ledger.Assignment{ProjectID: projectID, WorkItemID: r.WorkItemID, RoleID: r.RoleID, RootID: r.RootID}
		if there && r.RootID == before.RootID { // what it has may be gone: that must not block an edit
			to.RootID = ""
		}
		if there && r.RoleID == before.RoleID {
			to.RoleID = ""
		}
		w, err := assignmentRefs(tx, to)
		if err != nil {
			return err
		}
		if !there { // the references come first
			return ledger.Missing("assignment", id)
		}
		if a, err = before.Edit(u, now); err != nil {
			return err
		}
		return ledgersql.ReplaceAssignment(tx, a, w)
	})
	return a, err
}

// transition reads an assignment, applies a rule and writes the outcome.
func (s *Service) transition(ctx context.Context, projectID, id string, rule func(a ledger.Assignment, now time.Time) (ledger.Assignment, error)) (a ledger.Assignment, err error) {
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		before, err := assignment(tx, projectID, id)
		if err != nil {
			return err
		}
		if a, err = rule(before, now); err != nil {
			return err
		}
		if err := ledgersql.UpdateAssignment(tx, a); err != nil {
			return err
		}
		if (a.Status == ledger.Completed) == (before.Status == ledger.Completed) {
			return nil
		}
		return refreshFollowUps(tx, projectID, id)
	})
	return a, err
}

// refreshFollowUps is needed when an assignment becomes completed or goes away.
func refreshFollowUps(tx *store.Tx, projectID, id string) error {
	reviews, err := ledgersql.FollowedUpBy(tx, projectID, id)
	if err != nil {
		return err
	}
	return ledgersql.RefreshFollowUps(tx, projectID, reviews)
}

func (s *Service) fenced(ctx context.Context, projectID, id, claimID, claimName string, rule func(a ledger.Assignment, claimID string, now time.Time) (ledger.Assignment, error)) (ledger.Assignment, error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id, claimName, &claimID); err != nil {
		return ledger.Assignment{}, err
	}
	return s.transition(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) { return rule(a, claimID, now) })
}

// ClaimAssignmentWithLease reserves queued work. The returned claim id is the fence of
// every later write of the worker.
func (s *Service) ClaimAssignmentWithLease(ctx context.Context, projectID, id, claimedBy string) (ledger.Assignment, error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id, "claimed_by", &claimedBy); err != nil {
		return ledger.Assignment{}, err
	}
	return s.transition(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.Acquire(claimedBy, ledger.NewClaimID(), now, s.lease)
	})
}

// RenewAssignmentClaim moves the expiry of a live reservation.
func (s *Service) RenewAssignmentClaim(ctx context.Context, projectID, id, claimID string) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, claimID, "claim_id", func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Renew(c, now, s.lease)
	})
}

// RecoverAssignmentClaim requeues work whose reservation has expired.
func (s *Service) RecoverAssignmentClaim(ctx context.Context, projectID, id, expectedClaimID string) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, expectedClaimID, "expected_claim_id", ledger.Assignment.Recover)
}

// PrepareAssignmentWithClaim records what the worker made ready.
func (s *Service) PrepareAssignmentWithClaim(ctx context.Context, projectID, id, claimID string, ref *ledger.ExecutionRef, contextSnapshotID string) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, claimID, "claim_id", func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Prepare(c, ref, contextSnapshotID, now)
	})
}

// ReleaseAssignmentWithClaim gives a reservation back.
func (s *Service) ReleaseAssignmentWithClaim(ctx context.Context, projectID, id, claimID string) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, claimID, "claim_id", ledger.Assignment.Release)
}

// UpdateAssignmentStatusWithClaim reports progress.
func (s *Service) UpdateAssignmentStatusWithClaim(ctx context.Context, projectID, id, claimID, status string, ref *ledger.ExecutionRef) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, claimID, "claim_id", func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Progress(c, status, ref, now)
	})
}

// CompleteAssignmentWithClaim ends work; the first end stands.
func (s *Service) CompleteAssignmentWithClaim(ctx context.Context, projectID, id, claimID, status string, ref *ledger.ExecutionRef) (ledger.Assignment, error) {
	return s.fenced(ctx, projectID, id, claimID, "claim_id", func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Finish(c, status, ref, now)
	})
}

// DeleteAssignment removes an assignment in any state, with its artifacts and reviews.
// Evidence stays, and handoffs that name it stay editable.
func (s *Service) DeleteAssignment(ctx context.Context, projectID, id string) error {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		if err := gone(ledgersql.DeleteAssignment(tx, projectID, id))("assignment", id); err != nil {
			return err
		}
		return refreshFollowUps(tx, projectID, id)
	})
}

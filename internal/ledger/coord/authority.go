package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

// The methods of this file are the authority of a trusted embedding host over its own
// work: they know no fence. Never expose one as a tool of an agent.

func (s *Service) byHost(ctx context.Context, projectID, id string, rule func(a ledger.Assignment, now time.Time) (ledger.Assignment, error)) (ledger.Assignment, error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &id); err != nil {
		return ledger.Assignment{}, err
	}
	return s.transition(ctx, projectID, id, rule)
}

// ClaimAssignment claims queued work without a lease.
func (s *Service) ClaimAssignment(ctx context.Context, projectID, id, claimedBy string) (ledger.Assignment, error) {
	return s.byHost(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.AcquireByHost(claimedBy, now)
	})
}

// PrepareAssignment records what the host made ready for work that claimedBy claimed.
func (s *Service) PrepareAssignment(ctx context.Context, projectID, id, claimedBy string, ref *ledger.ExecutionRef, contextSnapshotID string) (ledger.Assignment, error) {
	return s.byHost(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.PrepareByHost(claimedBy, ref, contextSnapshotID, now)
	})
}

// ReleaseAssignment gives work that claimedBy claimed back to the queue.
func (s *Service) ReleaseAssignment(ctx context.Context, projectID, id, claimedBy string) (ledger.Assignment, error) {
	return s.byHost(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.ReleaseByHost(claimedBy, now)
	})
}

// UpdateAssignmentStatus moves work that is neither queued nor ended.
func (s *Service) UpdateAssignmentStatus(ctx context.Context, projectID, id, status string, ref *ledger.ExecutionRef) (ledger.Assignment, error) {
	return s.byHost(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.ProgressByHost(status, ref, now)
	})
}

// CompleteAssignment ends work from any state that is no end. The first end stands.
func (s *Service) CompleteAssignment(ctx context.Context, projectID, id, status string, ref *ledger.ExecutionRef) (ledger.Assignment, error) {
	return s.byHost(ctx, projectID, id, func(a ledger.Assignment, now time.Time) (ledger.Assignment, error) {
		return a.FinishByHost(status, ref, now)
	})
}

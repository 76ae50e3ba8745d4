package ledgertools

import (
	"context"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

func handoffLine(h ledger.Handoff) string {
	out := fmt.Sprintf("%s %s %s", h.ID, h.Status, oneLine(h.Title))
	for _, f := range [][2]string{{"to_role", h.ToRoleID}, {"target_assignment", h.TargetAssignmentID}} {
		if f[1] != "" {
			out += " " + f[0] + "=" + oneLine(f[1])
		}
	}
	return out + " updated_at=" + stamp(h.UpdatedAt)
}

type inHandoff struct {
	inItem
	HandoffID string `json:"handoff_id"`
}

type inRevision struct {
	inHandoff
	ExpectedUpdatedAt string `json:"expected_updated_at"`
}

func addHandoffs() {
	listOf("handoffs.list", "No handoffs.", (*coord.Service).ListHandoffs, handoffLine)
	tool("handoffs.get", func(ctx context.Context, s *coord.Service, in inHandoff) (Outcome, error) {
		h, err := s.GetHandoff(ctx, in.ProjectID, in.WorkItemID, in.HandoffID)
		return record(h, err, func(h ledger.Handoff) string { return handoffLine(h) + "\n" + h.Body })
	})
	tool("handoffs.create", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		ledger.HandoffPatch
	}) (Outcome, error) {
		h, err := s.CreateHandoff(ctx, in.Apply(ledger.Handoff{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID}))
		return record(h, err, func(h ledger.Handoff) string { return "Created handoff " + handoffLine(h) })
	})
	tool("handoffs.update", func(ctx context.Context, s *coord.Service, in struct {
		inRevision
		ledger.HandoffPatch
	}) (Outcome, error) {
		revision, err := ledger.ParseRevision("expected_updated_at", in.ExpectedUpdatedAt)
		if err != nil {
			return Outcome{}, err
		}
		h, err := s.PatchHandoff(ctx, in.ProjectID, in.WorkItemID, in.HandoffID, revision, in.HandoffPatch)
		return record(h, err, func(h ledger.Handoff) string { return "Updated handoff " + handoffLine(h) })
	})
	tool("handoffs.update_status", func(ctx context.Context, s *coord.Service, in struct {
		inRevision
		Status string `json:"status"`
	}) (Outcome, error) {
		revision, err := ledger.ParseRevision("expected_updated_at", in.ExpectedUpdatedAt)
		if err != nil {
			return Outcome{}, err
		}
		h, err := s.UpdateHandoffStatus(ctx, in.ProjectID, in.WorkItemID, in.HandoffID, revision, in.Status)
		return record(h, err, func(h ledger.Handoff) string { return "Updated handoff " + handoffLine(h) })
	})
	tool("handoffs.delete", func(ctx context.Context, s *coord.Service, in inRevision) (Outcome, error) {
		revision, err := ledger.ParseRevision("expected_updated_at", in.ExpectedUpdatedAt)
		if err != nil {
			return Outcome{}, err
		}
		return removed("handoff", in.HandoffID, s.DeleteHandoff(ctx, in.ProjectID, in.WorkItemID, in.HandoffID, revision))
	})
	tool("handoffs.accept_with_follow_up", func(ctx context.Context, s *coord.Service, in struct {
		inRevision
		IdempotencyKey string `json:"idempotency_key"`
		Intent         string `json:"intent"`
	}) (Outcome, error) {
		revision, err := ledger.ParseRevision("expected_updated_at", in.ExpectedUpdatedAt)
		if err != nil {
			return Outcome{}, err
		}
		a, err := s.AcceptHandoffWithFollowUp(ctx, ledger.Acceptance{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID, HandoffID: in.HandoffID,
			ExpectedUpdatedAt: revision, IdempotencyKey: in.IdempotencyKey, Intent: in.Intent})
		return record(a, err, func(a coord.Accepted) string {
			again := ""
			if a.Replayed {
				again = ", answered before"
			}
			return fmt.Sprintf("Accepted handoff %s (%s%s): assignment %s", a.Handoff.ID, a.Outcome, again, assignmentLine(a.Assignment))
		})
	})
}

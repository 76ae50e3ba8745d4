package ledgertools

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
)

// assignmentLine holds the facts that clients without structured content rely on. The claim
// comes first, and no value can look like a second fact: see word.
func assignmentLine(a ledger.Assignment) string {
	var b strings.Builder
	b.WriteString(word(a.ID) + " " + a.Status)
	add := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + "=" + word(value))
		}
	}
	if c := a.Claim; c != nil {
		if c.ExpiresAt.IsZero() {
			add("claim_fence", c.ID)
		} else {
			add("claim_id", c.ID)
			add("claim_expires_at", c.ExpiresAt.Format(time.RFC3339Nano))
		}
	}
	add("work", a.WorkItemID)
	add("role", a.RoleID)
	add("mode", a.ExecutionMode)
	add("root", a.RootID)
	add("desired", a.DesiredAgent.Kind)
	add("skills", strings.Join(a.DesiredAgent.SkillIDs, ","))
	add("claimed_by", a.ClaimedBy)
	return b.String()
}

// word is a value of a line of facts. What is more than a word, or holds the sign between a
// name and its value, stands as a JSON string with that sign escaped.
func word(s string) string {
	s = oneLine(s)
	if !strings.ContainsFunc(s, func(c rune) bool { return c == '=' || c == '"' || unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		return s
	}
	b, err := Marshal(s)
	if err != nil {
		return "" // a string can always be encoded
	}
	return strings.ReplaceAll(string(b), "=", `\u003d`)
}

func assigned(verb string) func(ledger.Assignment) string {
	return func(a ledger.Assignment) string { return verb + " assignment " + assignmentLine(a) }
}

type inClaim struct {
	inAssignment
	ClaimID string `json:"claim_id"`
}

type inMove struct {
	inClaim
	Status       string               `json:"status"`
	ExecutionRef *ledger.ExecutionRef `json:"execution_ref"`
}

func addAssignments() {
	tool("assignments.list", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		paging
		Status string `json:"status"`
		RoleID string `json:"role_id"`
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListAssignments(ctx, in.ProjectID, ledgersql.AssignmentFilter{WorkItemID: ledger.Trim(in.WorkItemID), Status: ledger.Trim(in.Status), RoleID: ledger.Trim(in.RoleID)}, span)
		return lines(p, err, "No assignments.", assignmentLine)
	})
	tool("assignments.get", func(ctx context.Context, s *coord.Service, in inAssignment) (Outcome, error) {
		a, err := s.GetAssignment(ctx, in.ProjectID, in.AssignmentID)
		return record(a, err, assignmentLine)
	})
	tool("assignments.next", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		AgentKind      string    `json:"agent_kind"`
		SkillIDs       *[]string `json:"skill_ids"`
		ExecutionModes []string  `json:"execution_modes"`
		Status         string    `json:"status"`
		Limit          *int      `json:"limit"`
	}) (Outcome, error) {
		limit := defaultPage
		if in.Limit != nil {
			if *in.Limit < 1 {
				return Outcome{}, fault.New(fault.Invalid, "ledger", "limit must be at least 1")
			}
			limit = min(*in.Limit, maxPage)
		}
		found, err := s.NextAssignments(ctx, in.ProjectID, coord.NextFilter{AgentKind: in.AgentKind, SkillIDs: in.SkillIDs, ExecutionModes: in.ExecutionModes, Status: in.Status, Limit: limit})
		return lines(coord.Page[ledger.Assignment]{Items: found}, err, "No compatible assignment.", assignmentLine)
	})
	tool("assignments.create", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		RoleID           string   `json:"role_id"`
		RootID           string   `json:"root_id"`
		ExecutionMode    string   `json:"execution_mode"`
		DesiredAgentKind string   `json:"desired_agent_kind"`
		SkillIDs         []string `json:"skill_ids"`
	}) (Outcome, error) {
		a, err := s.CreateAssignment(ctx, ledger.Assignment{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID, RoleID: in.RoleID, RootID: in.RootID, ExecutionMode: in.ExecutionMode,
			DesiredAgent: ledger.DesiredAgent{Kind: in.DesiredAgentKind, SkillIDs: in.SkillIDs}})
		return record(a, err, assigned("Queued"))
	})
	tool("assignments.update", func(ctx context.Context, s *coord.Service, in struct {
		inAssignment
		Expected          ledger.Coordination `json:"expected"`
		ExpectedUpdatedAt string              `json:"expected_updated_at"`
		Replacement       ledger.Coordination `json:"replacement"`
	}) (Outcome, error) {
		if err := requireBoth(in.inAssignment); err != nil {
			return Outcome{}, err
		}
		revision, err := ledger.ParseRevision("expected_updated_at", in.ExpectedUpdatedAt)
		if err != nil {
			return Outcome{}, err
		}
		a, err := s.UpdateQueuedAssignment(ctx, in.ProjectID, in.AssignmentID, ledger.QueuedUpdate{Expected: in.Expected, ExpectedUpdatedAt: revision, Replacement: in.Replacement})
		return record(a, err, assigned("Updated"))
	})
	tool("assignments.claim", func(ctx context.Context, s *coord.Service, in struct {
		inAssignment
		ClaimedBy string `json:"claimed_by"`
	}) (Outcome, error) {
		a, err := s.ClaimAssignmentWithLease(ctx, in.ProjectID, in.AssignmentID, in.ClaimedBy)
		return record(a, err, assigned("Claimed"))
	})
	tool("assignments.renew_claim", func(ctx context.Context, s *coord.Service, in inClaim) (Outcome, error) {
		a, err := s.RenewAssignmentClaim(ctx, in.ProjectID, in.AssignmentID, in.ClaimID)
		return record(a, err, assigned("Renewed the claim of"))
	})
	tool("assignments.recover_claim", func(ctx context.Context, s *coord.Service, in struct {
		inAssignment
		ExpectedClaimID string `json:"expected_claim_id"`
	}) (Outcome, error) {
		a, err := s.RecoverAssignmentClaim(ctx, in.ProjectID, in.AssignmentID, in.ExpectedClaimID)
		return record(a, err, assigned("Recovered"))
	})
	tool("assignments.prepare", func(ctx context.Context, s *coord.Service, in struct {
		inClaim
		ExecutionRef      *ledger.ExecutionRef `json:"execution_ref"`
		ContextSnapshotID string               `json:"context_snapshot_id"`
	}) (Outcome, error) {
		a, err := s.PrepareAssignmentWithClaim(ctx, in.ProjectID, in.AssignmentID, in.ClaimID, in.ExecutionRef, in.ContextSnapshotID)
		return record(a, err, assigned("Prepared"))
	})
	tool("assignments.release", func(ctx context.Context, s *coord.Service, in inClaim) (Outcome, error) {
		a, err := s.ReleaseAssignmentWithClaim(ctx, in.ProjectID, in.AssignmentID, in.ClaimID)
		return record(a, err, assigned("Released"))
	})
	tool("assignments.update_status", func(ctx context.Context, s *coord.Service, in inMove) (Outcome, error) {
		a, err := s.UpdateAssignmentStatusWithClaim(ctx, in.ProjectID, in.AssignmentID, in.ClaimID, in.Status, in.ExecutionRef)
		return record(a, err, assigned("Updated"))
	})
	tool("assignments.complete", func(ctx context.Context, s *coord.Service, in inMove) (Outcome, error) {
		a, err := s.CompleteAssignmentWithClaim(ctx, in.ProjectID, in.AssignmentID, in.ClaimID, in.Status, in.ExecutionRef)
		return record(a, err, assigned("Ended"))
	})
	tool("assignments.delete", func(ctx context.Context, s *coord.Service, in inAssignment) (Outcome, error) {
		return removed("assignment", in.AssignmentID, s.DeleteAssignment(ctx, in.ProjectID, in.AssignmentID))
	})
}

func requireBoth(in inAssignment) error {
	if err := ledger.Required("project_id", in.ProjectID); err != nil {
		return err
	}
	return ledger.Required("assignment_id", in.AssignmentID)
}

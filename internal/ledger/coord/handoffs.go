package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ListHandoffs lists the handoffs of a work item, the most recently changed first.
func (s *Service) ListHandoffs(ctx context.Context, projectID, workItemID string, span Span) (Page[ledger.Handoff], error) {
	return ofItem(ctx, s, projectID, workItemID, span, ledgersql.Handoffs)
}

// GetHandoff reads a handoff.
func (s *Service) GetHandoff(ctx context.Context, projectID, workItemID, id string) (ledger.Handoff, error) {
	return oneOfItem(ctx, s, projectID, workItemID, "handoff_id", "handoff", id, ledgersql.Handoff)
}

// CreateHandoff adds a handoff.
func (s *Service) CreateHandoff(ctx context.Context, h ledger.Handoff) (ledger.Handoff, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { h, err = createHandoff(tx, now, h); return err })
	return h, err
}

func createHandoff(tx *store.Tx, now time.Time, h ledger.Handoff) (ledger.Handoff, error) {
	if err := requireIDs("project_id", &h.ProjectID, "work_item_id", &h.WorkItemID); err != nil {
		return h, err
	}
	h, err := ledger.CleanHandoff(h)
	if err != nil {
		return h, err
	}
	if _, err := itemOf(tx, h.ProjectID, h.WorkItemID); err != nil {
		return h, err
	}
	if err := handoffRefs(tx, ledger.Handoff{}, h); err != nil {
		return h, err
	}
	if err := free(ledger.KindHandoff, "handoff", &h.ID, found(func(id string) (ledger.Handoff, bool, error) { return ledgersql.HandoffByID(tx, h.ProjectID, id) })); err != nil {
		return h, err
	}
	h.CreatedAt, h.UpdatedAt, h.StatusChangedAt = now, now, now
	return h, ledgersql.PutHandoff(tx, h)
}

// handoffRefs checks the references that an edit adds. One that was there before may be
// dangling, so that a handoff can always be closed.
func handoffRefs(tx *store.Tx, before, h ledger.Handoff) error {
	if id := h.SourceAssignmentID; id != "" && id != before.SourceAssignmentID {
		a, ok, err := ledgersql.Assignment(tx, h.ProjectID, id)
		if err != nil {
			return err
		}
		if !ok || a.WorkItemID != h.WorkItemID {
			return ledger.Missing("source assignment of this work item", id)
		}
	}
	for _, r := range [][2]string{{h.FromRoleID, before.FromRoleID}, {h.ToRoleID, before.ToRoleID}} {
		if r[0] != r[1] {
			if err := roleOf(tx, h.ProjectID, r[0]); err != nil {
				return err
			}
		}
	}
	if id := h.TargetWorkItemID; id != "" && id != before.TargetWorkItemID {
		if _, err := item(tx, h.ProjectID, id); err != nil {
			return err
		}
	}
	if id := h.TargetAssignmentID; id != "" && (id != before.TargetAssignmentID || h.TargetWorkItemID != before.TargetWorkItemID) {
		a, ok, err := ledgersql.Assignment(tx, h.ProjectID, id)
		if err != nil {
			return err
		}
		if !ok || h.TargetWorkItemID != "" && h.TargetWorkItemID != a.WorkItemID {
			return ledger.Missing("target assignment", id)
		}
	}
	return nil
}

// PatchHandoff edits a handoff at the revision that was read. A patch that changes
// nothing keeps the revision.
func (s *Service) PatchHandoff(ctx context.Context, projectID, workItemID, id string, expectedUpdatedAt time.Time, p ledger.HandoffPatch) (h ledger.Handoff, err error) {
	return s.editHandoff(ctx, projectID, workItemID, id, expectedUpdatedAt, p.Apply)
}

// UpdateHandoffStatus sets the status of a handoff at the revision that was read.
func (s *Service) UpdateHandoffStatus(ctx context.Context, projectID, workItemID, id string, expectedUpdatedAt time.Time, status string) (ledger.Handoff, error) {
	if err := ledger.Required("status", status); err != nil {
		return ledger.Handoff{}, err
	}
	return s.PatchHandoff(ctx, projectID, workItemID, id, expectedUpdatedAt, ledger.HandoffPatch{Status: &status})
}

func (s *Service) editHandoff(ctx context.Context, projectID, workItemID, id string, expected time.Time, edit func(ledger.Handoff) ledger.Handoff) (h ledger.Handoff, err error) {
	if err := revisedIDs(&projectID, &workItemID, &id, expected); err != nil {
		return h, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		h, err = changeHandoff(tx, now, projectID, workItemID, id, expected, edit)
		return err
	})
	return h, err
}

func revisedIDs(projectID, workItemID, id *string, expected time.Time) error {
	if err := requireIDs("project_id", projectID, "work_item_id", workItemID, "handoff_id", id); err != nil {
		return err
	}
	if expected.IsZero() {
		return fault.New(fault.Invalid, "ledger", "expected_updated_at is required: repeat the updated_at that was read")
	}
	return nil
}

func handoffOf(tx *store.Tx, projectID, workItemID, id string) (ledger.Handoff, error) {
	if _, err := itemOf(tx, projectID, workItemID); err != nil {
		return ledger.Handoff{}, err
	}
	h, ok, err := ledgersql.Handoff(tx, projectID, workItemID, id)
	return must[ledger.Handoff]("handoff", id)(h, ok, err)
}

func changeHandoff(tx *store.Tx, now time.Time, projectID, workItemID, id string, expected time.Time, edit func(ledger.Handoff) ledger.Handoff) (ledger.Handoff, error) {
	before, err := handoffOf(tx, projectID, workItemID, id)
	if err != nil {
		return before, err
	}
	if err := ledger.CheckRevision("handoff", before.UpdatedAt, expected); err != nil {
		return before, err
	}
	to := edit(before)
	if to.Status == "" {
		return before, fault.New(fault.Invalid, "ledger", "status is empty")
	}
	if to, err = ledger.CleanHandoff(to); err != nil {
		return before, err
	}
	if err := handoffRefs(tx, before, to); err != nil {
		return before, err
	}
	h, err := before.Edit(to, expected, now)
	if err != nil || h.UpdatedAt.Equal(before.UpdatedAt) {
		return h, err
	}
	return h, ledgersql.PutHandoff(tx, h)
}

// DeleteHandoff removes a handoff at the revision that was read. Linked work stays.
func (s *Service) DeleteHandoff(ctx context.Context, projectID, workItemID, id string, expectedUpdatedAt time.Time) error {
	if err := revisedIDs(&projectID, &workItemID, &id, expectedUpdatedAt); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		h, err := handoffOf(tx, projectID, workItemID, id)
		if err != nil {
			return err
		}
		if err := ledger.CheckRevision("handoff", h.UpdatedAt, expectedUpdatedAt); err != nil {
			return err
		}
		return ledgersql.DeleteHandoff(tx, h)
	})
}

// Accepted is what an acceptance answers. Handoff and Assignment are always current.
type Accepted struct {
	Handoff    ledger.Handoff    `json:"handoff"`
	Assignment ledger.Assignment `json:"assignment"`
	Outcome    string            `json:"outcome"`
	Replayed   bool              `json:"replayed"`
}

const acceptOperation = "handoffs.accept_with_follow_up"

// AcceptHandoffWithFollowUp accepts a handoff and ensures one linked assignment, once per
// idempotency key. It launches nothing.
func (s *Service) AcceptHandoffWithFollowUp(ctx context.Context, a ledger.Acceptance) (out Accepted, err error) {
	if a, err = a.Clean(); err != nil {
		return out, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error { out, err = accept(tx, now, a); return err })
	return out, err
}

func accept(tx *store.Tx, now time.Time, a ledger.Acceptance) (out Accepted, err error) {
	if err := needProject(tx, a.ProjectID); err != nil {
		return out, err
	}
	fingerprint := ids.Derive("accept", a.ProjectID, a.WorkItemID, a.HandoffID, a.ExpectedUpdatedAt.UTC().Format(time.RFC3339Nano), a.Intent)
	r, seen, err := ledgersql.FindReceipt(tx, a.ProjectID, acceptOperation, a.IdempotencyKey)
	if err != nil {
		return out, err
	}
	if seen {
		return replay(tx, a, r, fingerprint)
	}
	h, err := handoffOf(tx, a.ProjectID, a.WorkItemID, a.HandoffID)
	if err != nil {
		return out, err
	}
	if err := h.Acceptable(a.ExpectedUpdatedAt); err != nil {
		return out, err
	}
	to, err := role(tx, a.ProjectID, h.ToRoleID)
	if err != nil {
		return out, err
	}
	if h.TargetAssignmentID != "" {
		out, err = acceptLinked(tx, now, h)
	} else {
		out, err = acceptCreating(tx, now, h, to)
	}
	if err != nil {
		return out, err
	}
	return out, ledgersql.InsertReceipt(tx, ledger.Receipt{ProjectID: a.ProjectID, Operation: acceptOperation, IdempotencyKey: a.IdempotencyKey, CreatedAt: now,
		Fingerprint: fingerprint, Outcome: out.Outcome, HandoffID: out.Handoff.ID, AssignmentID: out.Assignment.ID})
}

func replay(tx *store.Tx, a ledger.Acceptance, r ledger.Receipt, fingerprint string) (out Accepted, err error) {
	stale := fault.New(fault.Conflict, "ledger", "this idempotency key was used for another request").WithHint("use a new key for a new decision")
	if r.Fingerprint != fingerprint {
		return out, stale
	}
	h, ok, err := ledgersql.HandoffByID(tx, a.ProjectID, r.HandoffID)
	if err != nil {
		return out, err
	}
	w, there, err := ledgersql.Assignment(tx, a.ProjectID, r.AssignmentID)
	if err != nil {
		return out, err
	}
	if !ok || !there {
		return out, fault.New(fault.Conflict, "ledger", "the handoff or its follow-up was deleted since")
	}
	if err := h.StillStands(w); err != nil {
		return out, err
	}
	return Accepted{h, w, r.Outcome, true}, nil
}

func acceptLinked(tx *store.Tx, now time.Time, h ledger.Handoff) (out Accepted, err error) {
	a, ok, err := ledgersql.Assignment(tx, h.ProjectID, h.TargetAssignmentID)
	if err != nil {
		return out, err
	}
	if !ok {
		return out, fault.New(fault.Conflict, "ledger", "the linked assignment is gone").WithHint("clear target_assignment_id with handoffs.update, then accept")
	}
	if err := h.Fits(a); err != nil {
		return out, err
	}
	if h.Satisfied(a) {
		return Accepted{h, a, ledger.OutcomeSatisfied, false}, nil
	}
	h = h.Accept(a, now)
	return Accepted{h, a, ledger.OutcomeLinked, false}, ledgersql.PutHandoff(tx, h)
}

func acceptCreating(tx *store.Tx, now time.Time, h ledger.Handoff, to ledger.Role) (out Accepted, err error) {
	target := h.TargetWorkItemID
	if target == "" {
		target = h.WorkItemID
	}
	w, err := item(tx, h.ProjectID, target)
	if err != nil {
		return out, err
	}
	if err := rootOf(tx, h.ProjectID, w.RootID); err != nil {
		return out, err
	}
	a, err := h.FollowUp(w, to, ledger.NewID(ledger.KindAssign), now)
	if err != nil {
		return out, err
	}
	if err := ledgersql.InsertAssignment(tx, a, w); err != nil {
		return out, err
	}
	h = h.Accept(a, now)
	return Accepted{h, a, ledger.OutcomeCreated, false}, ledgersql.PutHandoff(tx, h)
}

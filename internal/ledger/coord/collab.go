package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ofItem reads a piece of a work item's list; the item must exist.
func ofItem[T any](ctx context.Context, s *Service, projectID, workItemID string, span Span, read func(tx *store.Tx, projectID, itemID string, p ledgersql.Page) ([]T, error)) (out Page[T], err error) {
	if err := requireIDs("project_id", &projectID, "work_item_id", &workItemID); err != nil {
		return out, err
	}
	err = s.view(ctx, func(tx *store.Tx) error {
		if _, err := itemOf(tx, projectID, workItemID); err != nil {
			return err
		}
		out, err = page(span, func(p ledgersql.Page) ([]T, error) { return read(tx, projectID, workItemID, p) })
		return err
	})
	return out, err
}

// oneOfItem reads one record of a work item.
func oneOfItem[T any](ctx context.Context, s *Service, projectID, workItemID, name, kind, id string, read func(tx *store.Tx, projectID, itemID, id string) (T, bool, error)) (v T, err error) {
	if err := requireIDs("project_id", &projectID, "work_item_id", &workItemID, name, &id); err != nil {
		return v, err
	}
	err = s.view(ctx, func(tx *store.Tx) error {
		if _, err := itemOf(tx, projectID, workItemID); err != nil {
			return err
		}
		got, ok, err := read(tx, projectID, workItemID, id)
		v, err = must[T](kind, id)(got, ok, err)
		return err
	})
	return v, err
}

// collabRefs checks what artifacts, evidence and reviews refer to.
func collabRefs(tx *store.Tx, projectID, workItemID, assignmentID, roleID string) error {
	if _, err := itemOf(tx, projectID, workItemID); err != nil {
		return err
	}
	if assignmentID != "" {
		a, ok, err := ledgersql.Assignment(tx, projectID, assignmentID)
		if err != nil {
			return err
		}
		if !ok || a.WorkItemID != workItemID {
			return ledger.Missing("assignment of this work item", assignmentID)
		}
	}
	return roleOf(tx, projectID, roleID)
}

// ListArtifacts lists the artifacts of a work item, the oldest first.
func (s *Service) ListArtifacts(ctx context.Context, projectID, workItemID string, span Span) (Page[ledger.Artifact], error) {
	return ofItem(ctx, s, projectID, workItemID, span, ledgersql.Artifacts)
}

// GetArtifact reads an artifact.
func (s *Service) GetArtifact(ctx context.Context, projectID, workItemID, id string) (ledger.Artifact, error) {
	return oneOfItem(ctx, s, projectID, workItemID, "artifact_id", "artifact", id, ledgersql.Artifact)
}

// CreateArtifact adds an artifact.
func (s *Service) CreateArtifact(ctx context.Context, a ledger.Artifact) (ledger.Artifact, error) {
	if err := requireIDs("project_id", &a.ProjectID, "work_item_id", &a.WorkItemID); err != nil {
		return a, err
	}
	a, err := ledger.CleanArtifact(a)
	if err != nil {
		return a, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if err := collabRefs(tx, a.ProjectID, a.WorkItemID, a.AssignmentID, a.AuthorRoleID); err != nil {
			return err
		}
		a.ID, a.CreatedAt, a.UpdatedAt = ledger.NewID(ledger.KindArtifact), now, now
		return ledgersql.InsertArtifact(tx, a)
	})
	return a, err
}

// ListEvidence lists the evidence of a work item, the newest first.
func (s *Service) ListEvidence(ctx context.Context, projectID, workItemID string, span Span) (Page[ledger.Evidence], error) {
	return ofItem(ctx, s, projectID, workItemID, span, ledgersql.EvidenceOf)
}

// GetEvidence reads a piece of evidence.
func (s *Service) GetEvidence(ctx context.Context, projectID, workItemID, id string) (ledger.Evidence, error) {
	return oneOfItem(ctx, s, projectID, workItemID, "evidence_id", "evidence", id, ledgersql.Evidence)
}

// RecordEvidence adds evidence.
func (s *Service) RecordEvidence(ctx context.Context, e ledger.Evidence) (ledger.Evidence, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { e, err = recordEvidence(tx, now, e); return err })
	return e, err
}

func recordEvidence(tx *store.Tx, now time.Time, e ledger.Evidence) (ledger.Evidence, error) {
	if err := requireIDs("project_id", &e.ProjectID, "work_item_id", &e.WorkItemID); err != nil {
		return e, err
	}
	e, err := ledger.CleanEvidence(e)
	if err != nil {
		return e, err
	}
	if err := collabRefs(tx, e.ProjectID, e.WorkItemID, e.AssignmentID, ""); err != nil {
		return e, err
	}
	if err := free(ledger.KindEvidence, "evidence", &e.ID, found(func(id string) (ledger.Evidence, bool, error) {
		return ledgersql.Evidence(tx, e.ProjectID, e.WorkItemID, id)
	})); err != nil {
		return e, err
	}
	e.CreatedAt, e.UpdatedAt = now, now
	return e, ledgersql.InsertEvidence(tx, e)
}

// ListReviews lists the reviews of a work item, the newest first.
func (s *Service) ListReviews(ctx context.Context, projectID, workItemID string, span Span) (Page[ledger.Review], error) {
	return ofItem(ctx, s, projectID, workItemID, span, ledgersql.Reviews)
}

// GetReview reads a review.
func (s *Service) GetReview(ctx context.Context, projectID, workItemID, id string) (ledger.Review, error) {
	return oneOfItem(ctx, s, projectID, workItemID, "review_id", "review", id, ledgersql.Review)
}

// RecordReview adds a review.
func (s *Service) RecordReview(ctx context.Context, r ledger.Review) (ledger.Review, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { r, err = recordReview(tx, now, r); return err })
	return r, err
}

func recordReview(tx *store.Tx, now time.Time, r ledger.Review) (ledger.Review, error) {
	if err := requireIDs("project_id", &r.ProjectID, "work_item_id", &r.WorkItemID); err != nil {
		return r, err
	}
	r, err := ledger.CleanReview(r)
	if err != nil {
		return r, err
	}
	if err := collabRefs(tx, r.ProjectID, r.WorkItemID, r.AssignmentID, r.ReviewerRoleID); err != nil {
		return r, err
	}
	if err := free(ledger.KindReview, "review", &r.ID, found(func(id string) (ledger.Review, bool, error) {
		return ledgersql.Review(tx, r.ProjectID, r.WorkItemID, id)
	})); err != nil {
		return r, err
	}
	r.CreatedAt, r.UpdatedAt = now, now
	return r, ledgersql.InsertReview(tx, r)
}

package ledgertools

import (
	"context"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

func artifactLine(a ledger.Artifact) string {
	return fmt.Sprintf("%s %s %s", a.ID, oneLine(a.Kind), oneLine(a.Title))
}

func evidenceLine(e ledger.Evidence) string {
	out := e.ID + " " + oneLine(e.Title)
	if e.AssignmentID != "" {
		out += " assignment=" + e.AssignmentID
	}
	if e.Locator != "" {
		out += " locator=" + oneLine(e.Locator)
	}
	return out
}

func reviewLine(r ledger.Review) string {
	out := fmt.Sprintf("%s %s %s", r.ID, r.Verdict, oneLine(r.Title))
	if r.Risk != "" {
		out += " risk=" + r.Risk
	}
	return out
}

type inItemPage struct {
	inItem
	paging
}

// listOf adds the list of a work item's records.
func listOf[T any](name, none string, read func(*coord.Service, context.Context, string, string, coord.Span) (coord.Page[T], error), line func(T) string) {
	tool(name, func(ctx context.Context, s *coord.Service, in inItemPage) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := read(s, ctx, in.ProjectID, in.WorkItemID, span)
		return lines(p, err, none, line)
	})
}

func addCollab() {
	listOf("artifacts.list", "No artifacts.", (*coord.Service).ListArtifacts, artifactLine)
	tool("artifacts.get", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		ArtifactID string `json:"artifact_id"`
	}) (Outcome, error) {
		a, err := s.GetArtifact(ctx, in.ProjectID, in.WorkItemID, in.ArtifactID)
		return record(a, err, func(a ledger.Artifact) string { return artifactLine(a) + "\n" + a.Body })
	})
	tool("artifacts.create", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		AssignmentID   string `json:"assignment_id"`
		Kind           string `json:"kind"`
		Title          string `json:"title"`
		Body           string `json:"body"`
		AuthorRoleID   string `json:"author_role_id"`
		ProvenanceKind string `json:"provenance_kind"`
		TrustLabel     string `json:"trust_label"`
	}) (Outcome, error) {
		a, err := s.CreateArtifact(ctx, ledger.Artifact{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID, AssignmentID: in.AssignmentID, Kind: in.Kind, Title: in.Title,
			Body: in.Body, AuthorRoleID: in.AuthorRoleID, ProvenanceKind: in.ProvenanceKind, TrustLabel: in.TrustLabel})
		return record(a, err, func(a ledger.Artifact) string { return "Created artifact " + artifactLine(a) })
	})

	listOf("evidence.list", "No evidence.", (*coord.Service).ListEvidence, evidenceLine)
	tool("evidence.get", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		EvidenceID string `json:"evidence_id"`
	}) (Outcome, error) {
		e, err := s.GetEvidence(ctx, in.ProjectID, in.WorkItemID, in.EvidenceID)
		return record(e, err, func(e ledger.Evidence) string { return evidenceLine(e) + "\n" + e.Body })
	})
	tool("evidence.record", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		AssignmentID string `json:"assignment_id"`
		Title        string `json:"title"`
		Body         string `json:"body"`
		Locator      string `json:"locator"`
		SourceKind   string `json:"source_kind"`
		ExternalID   string `json:"external_id"`
		Provider     string `json:"provider"`
		TrustLabel   string `json:"trust_label"`
	}) (Outcome, error) {
		e, err := s.RecordEvidence(ctx, ledger.Evidence{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID, AssignmentID: in.AssignmentID, Title: in.Title, Body: in.Body,
			Locator: in.Locator, SourceKind: in.SourceKind, ExternalID: in.ExternalID, Provider: in.Provider, TrustLabel: in.TrustLabel})
		return record(e, err, func(e ledger.Evidence) string { return "Recorded evidence " + evidenceLine(e) })
	})

	listOf("reviews.list", "No reviews.", (*coord.Service).ListReviews, reviewLine)
	tool("reviews.get", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		ReviewID string `json:"review_id"`
	}) (Outcome, error) {
		r, err := s.GetReview(ctx, in.ProjectID, in.WorkItemID, in.ReviewID)
		return record(r, err, func(r ledger.Review) string { return reviewLine(r) + "\n" + r.Body })
	})
	tool("reviews.record", func(ctx context.Context, s *coord.Service, in struct {
		inItem
		AssignmentID   string `json:"assignment_id"`
		ReviewerRoleID string `json:"reviewer_role_id"`
		Title          string `json:"title"`
		Body           string `json:"body"`
		Verdict        string `json:"verdict"`
		Risk           string `json:"risk"`
	}) (Outcome, error) {
		r, err := s.RecordReview(ctx, ledger.Review{ProjectID: in.ProjectID, WorkItemID: in.WorkItemID, AssignmentID: in.AssignmentID, ReviewerRoleID: in.ReviewerRoleID,
			Title: in.Title, Body: in.Body, Verdict: in.Verdict, Risk: in.Risk})
		return record(r, err, func(r ledger.Review) string { return "Recorded review " + reviewLine(r) })
	})
}

package ledgertools

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }

func memoryLine(m ledger.MemoryEntry) string {
	off := ""
	if !m.Enabled {
		off = " disabled"
	}
	return m.ID + off + " " + oneLine(m.Title)
}

func candidateLine(c ledger.MemoryCandidate) string {
	return fmt.Sprintf("%s %s %s", c.ID, c.Status, oneLine(c.Title))
}

type inMemory struct {
	ProjectID string `json:"project_id"`
	MemoryID  string `json:"memory_id"`
}

type inCandidate struct {
	ProjectID   string `json:"project_id"`
	CandidateID string `json:"candidate_id"`
}

type memoryFields struct {
	Title      *string `json:"title"`
	Body       *string `json:"body"`
	TrustLabel *string `json:"trust_label"`
	SourceKind *string `json:"source_kind"`
	SourceID   *string `json:"source_id"`
	Enabled    *bool   `json:"enabled"`
}

func addMemory() {
	tool("memory_entries.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
		IncludeDisabled bool `json:"include_disabled"`
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListMemoryEntries(ctx, in.ProjectID, in.IncludeDisabled, span)
		return lines(p, err, "No memory.", memoryLine)
	})
	tool("memory_entries.get", func(ctx context.Context, s *coord.Service, in inMemory) (Outcome, error) {
		m, err := s.GetMemoryEntry(ctx, in.ProjectID, in.MemoryID)
		return record(m, err, func(m ledger.MemoryEntry) string { return memoryLine(m) + "\n" + m.Body })
	})
	tool("memory_entries.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		memoryFields
	}) (Outcome, error) {
		m, err := s.CreateMemoryEntry(ctx, ledger.MemoryEntry{ProjectID: in.ProjectID, Title: text(in.Title), Body: text(in.Body), TrustLabel: text(in.TrustLabel),
			SourceKind: text(in.SourceKind), SourceID: text(in.SourceID)})
		return record(m, err, func(m ledger.MemoryEntry) string { return "Created memory entry " + memoryLine(m) })
	})
	tool("memory_entries.update", func(ctx context.Context, s *coord.Service, in struct {
		inMemory
		memoryFields
	}) (Outcome, error) {
		m, err := s.UpdateMemoryEntry(ctx, in.ProjectID, in.MemoryID, coord.MemoryPatch(in.memoryFields))
		return record(m, err, func(m ledger.MemoryEntry) string { return "Updated memory entry " + memoryLine(m) })
	})
	tool("memory_entries.delete", func(ctx context.Context, s *coord.Service, in inMemory) (Outcome, error) {
		return removed("memory entry", in.MemoryID, s.DeleteMemoryEntry(ctx, in.ProjectID, in.MemoryID))
	})

	tool("memory_candidates.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
		IncludeResolved bool   `json:"include_resolved"`
		Status          string `json:"status"`
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListMemoryCandidates(ctx, in.ProjectID, in.Status, in.IncludeResolved, span)
		return lines(p, err, "No memory candidates.", candidateLine)
	})
	tool("memory_candidates.get", func(ctx context.Context, s *coord.Service, in inCandidate) (Outcome, error) {
		c, err := s.GetMemoryCandidate(ctx, in.ProjectID, in.CandidateID)
		return record(c, err, func(c ledger.MemoryCandidate) string { return candidateLine(c) + "\n" + c.Body })
	})
	tool("memory_candidates.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		Title               string             `json:"title"`
		Body                string             `json:"body"`
		SuggestedKind       string             `json:"suggested_kind"`
		SuggestedTrustLabel string             `json:"suggested_trust_label"`
		SuggestedSourceKind string             `json:"suggested_source_kind"`
		SuggestedSourceID   string             `json:"suggested_source_id"`
		SourceRefs          []ledger.SourceRef `json:"source_refs"`
	}) (Outcome, error) {
		c, err := s.CreateMemoryCandidate(ctx, ledger.MemoryCandidate{ProjectID: in.ProjectID, Title: in.Title, Body: in.Body, SuggestedKind: in.SuggestedKind,
			SuggestedTrustLabel: in.SuggestedTrustLabel, SuggestedSourceKind: in.SuggestedSourceKind, SuggestedSourceID: in.SuggestedSourceID, SourceRefs: in.SourceRefs})
		return record(c, err, func(c ledger.MemoryCandidate) string { return "Created memory candidate " + candidateLine(c) })
	})
	tool("memory_candidates.promote", func(ctx context.Context, s *coord.Service, in struct {
		inCandidate
		memoryFields
	}) (Outcome, error) {
		c, err := s.PromoteMemoryCandidate(ctx, in.ProjectID, in.CandidateID, ledger.Promotion(in.memoryFields))
		return record(c, err, func(c ledger.MemoryCandidate) string {
			return "Promoted memory candidate " + candidateLine(c) + " memory=" + c.PromotedMemoryID
		})
	})
	tool("memory_candidates.reject", func(ctx context.Context, s *coord.Service, in struct {
		inCandidate
		Reason string `json:"reason"`
	}) (Outcome, error) {
		c, err := s.RejectMemoryCandidate(ctx, in.ProjectID, in.CandidateID, in.Reason)
		return record(c, err, func(c ledger.MemoryCandidate) string { return "Rejected memory candidate " + candidateLine(c) })
	})
	tool("memory_candidates.delete", func(ctx context.Context, s *coord.Service, in inCandidate) (Outcome, error) {
		return removed("memory candidate", in.CandidateID, s.DeleteMemoryCandidate(ctx, in.ProjectID, in.CandidateID))
	})
}

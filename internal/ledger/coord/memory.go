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

// ofProject reads one record of a project.
func ofProject[T any](tx *store.Tx, projectID, kind, id string, read func(tx *store.Tx, projectID, id string) (T, bool, error)) (T, error) {
	v, ok, err := read(tx, projectID, id)
	if err == nil && !ok {
		if err := needProject(tx, projectID); err != nil {
			return v, err
		}
	}
	return must[T](kind, id)(v, ok, err)
}

// ListMemoryEntries lists accepted memory, enabled entries first.
func (s *Service) ListMemoryEntries(ctx context.Context, projectID string, includeDisabled bool, span Span) (Page[ledger.MemoryEntry], error) {
	return list(ctx, s, projectID, span, func(tx *store.Tx, id string, p ledgersql.Page) ([]ledger.MemoryEntry, error) {
		return ledgersql.Memories(tx, id, includeDisabled, p)
	})
}

// GetMemoryEntry reads an entry.
func (s *Service) GetMemoryEntry(ctx context.Context, projectID, id string) (m ledger.MemoryEntry, err error) {
	if err := requireIDs("project_id", &projectID, "memory_id", &id); err != nil {
		return m, err
	}
	err = s.view(ctx, func(tx *store.Tx) error {
		m, err = ofProject(tx, projectID, "memory entry", id, ledgersql.Memory)
		return err
	})
	return m, err
}

// CreateMemoryEntry adds an entry, enabled.
func (s *Service) CreateMemoryEntry(ctx context.Context, m ledger.MemoryEntry) (ledger.MemoryEntry, error) {
	if err := requireIDs("project_id", &m.ProjectID); err != nil {
		return m, err
	}
	m, err := ledger.CleanMemory(m)
	if err != nil {
		return m, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if err := needProject(tx, m.ProjectID); err != nil {
			return err
		}
		m.ID, m.Enabled, m.CreatedAt, m.UpdatedAt = ledger.NewID(ledger.KindMemory), true, now, now
		return ledgersql.PutMemory(tx, m)
	})
	return m, err
}

// MemoryPatch is an edit; a nil field keeps.
type MemoryPatch struct {
	Title, Body, TrustLabel, SourceKind, SourceID *string
	Enabled                                       *bool
}

// UpdateMemoryEntry edits an entry.
func (s *Service) UpdateMemoryEntry(ctx context.Context, projectID, id string, p MemoryPatch) (m ledger.MemoryEntry, err error) {
	if err := requireIDs("project_id", &projectID, "memory_id", &id); err != nil {
		return m, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if m, err = ofProject(tx, projectID, "memory entry", id, ledgersql.Memory); err != nil {
			return err
		}
		set(&m.Title, p.Title)
		set(&m.Body, p.Body)
		set(&m.TrustLabel, p.TrustLabel)
		set(&m.SourceKind, p.SourceKind)
		set(&m.SourceID, p.SourceID)
		if p.Enabled != nil {
			m.Enabled = *p.Enabled
		}
		if m, err = ledger.CleanMemory(m); err != nil {
			return err
		}
		m.UpdatedAt = ledger.Next(m.UpdatedAt, now)
		return ledgersql.PutMemory(tx, m)
	})
	return m, err
}

// DeleteMemoryEntry removes an entry.
func (s *Service) DeleteMemoryEntry(ctx context.Context, projectID, id string) error {
	if err := requireIDs("project_id", &projectID, "memory_id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		return gone(ledgersql.DeleteMemory(tx, projectID, id))("memory entry", id)
	})
}

// ListMemoryCandidates lists candidates: those of a status, all of them, or pending ones.
func (s *Service) ListMemoryCandidates(ctx context.Context, projectID, status string, includeResolved bool, span Span) (Page[ledger.MemoryCandidate], error) {
	status = ledger.Trim(status)
	if status != "" && !slices.Contains(ledger.CandidateStates, status) {
		return Page[ledger.MemoryCandidate]{}, fault.New(fault.Invalid, "ledger", "status must be one of pending, promoted, rejected")
	}
	if status == "" && !includeResolved {
		status = ledger.Pending
	}
	return list(ctx, s, projectID, span, func(tx *store.Tx, id string, p ledgersql.Page) ([]ledger.MemoryCandidate, error) {
		return ledgersql.Candidates(tx, id, status, p)
	})
}

// GetMemoryCandidate reads a candidate.
func (s *Service) GetMemoryCandidate(ctx context.Context, projectID, id string) (c ledger.MemoryCandidate, err error) {
	if err := requireIDs("project_id", &projectID, "candidate_id", &id); err != nil {
		return c, err
	}
	err = s.view(ctx, func(tx *store.Tx) error {
		c, err = ofProject(tx, projectID, "memory candidate", id, ledgersql.Candidate)
		return err
	})
	return c, err
}

// CreateMemoryCandidate adds a candidate, pending.
func (s *Service) CreateMemoryCandidate(ctx context.Context, c ledger.MemoryCandidate) (ledger.MemoryCandidate, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { c, err = createCandidate(tx, now, c); return err })
	return c, err
}

func createCandidate(tx *store.Tx, now time.Time, c ledger.MemoryCandidate) (ledger.MemoryCandidate, error) {
	if err := requireIDs("project_id", &c.ProjectID); err != nil {
		return c, err
	}
	c.Status, c.StatusReason, c.PromotedMemoryID = ledger.Pending, "", ""
	c, err := ledger.CleanCandidate(c)
	if err != nil {
		return c, err
	}
	if err := needProject(tx, c.ProjectID); err != nil {
		return c, err
	}
	if err := free(ledger.KindCandidate, "memory candidate", &c.ID, found(func(id string) (ledger.MemoryCandidate, bool, error) {
		return ledgersql.Candidate(tx, c.ProjectID, id)
	})); err != nil {
		return c, err
	}
	c.CreatedAt, c.UpdatedAt = now, now
	return c, ledgersql.PutCandidate(tx, c)
}

// PromoteMemoryCandidate accepts a candidate into memory. A second promotion answers the
// same and changes nothing.
func (s *Service) PromoteMemoryCandidate(ctx context.Context, projectID, id string, p ledger.Promotion) (c ledger.MemoryCandidate, err error) {
	if err := requireIDs("project_id", &projectID, "candidate_id", &id); err != nil {
		return c, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if c, err = ofProject(tx, projectID, "memory candidate", id, ledgersql.Candidate); err != nil {
			return err
		}
		if c.Status == ledger.Promoted {
			_, err = ofProject(tx, projectID, "memory entry", c.PromotedMemoryID, ledgersql.Memory)
			return err
		}
		var m ledger.MemoryEntry
		if c, m, err = c.Promote(p, ledger.NewID(ledger.KindMemory), now); err != nil {
			return err
		}
		if err := ledgersql.PutMemory(tx, m); err != nil {
			return err
		}
		return ledgersql.PutCandidate(tx, c)
	})
	return c, err
}

// RejectMemoryCandidate closes a pending candidate.
func (s *Service) RejectMemoryCandidate(ctx context.Context, projectID, id, reason string) (c ledger.MemoryCandidate, err error) {
	if err := requireIDs("project_id", &projectID, "candidate_id", &id); err != nil {
		return c, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if c, err = ofProject(tx, projectID, "memory candidate", id, ledgersql.Candidate); err != nil {
			return err
		}
		if c, err = c.Reject(reason, now); err != nil {
			return err
		}
		return ledgersql.PutCandidate(tx, c)
	})
	return c, err
}

// DeleteMemoryCandidate removes a candidate in any state.
func (s *Service) DeleteMemoryCandidate(ctx context.Context, projectID, id string) error {
	if err := requireIDs("project_id", &projectID, "candidate_id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		return gone(ledgersql.DeleteCandidate(tx, projectID, id))("memory candidate", id)
	})
}

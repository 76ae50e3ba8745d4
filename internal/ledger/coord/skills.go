package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ListSkills lists skill metadata by id.
func (s *Service) ListSkills(ctx context.Context, projectID string, span Span) (Page[ledger.Skill], error) {
	return list(ctx, s, projectID, span, ledgersql.Skills)
}

// CreateSkill adds skill metadata by hand; its id is normalised and must be free.
func (s *Service) CreateSkill(ctx context.Context, k ledger.Skill) (ledger.Skill, error) {
	if err := requireIDs("project_id", &k.ProjectID); err != nil {
		return k, err
	}
	k, err := ledger.CleanSkill(k)
	if err != nil {
		return k, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if err := needProject(tx, k.ProjectID); err != nil {
			return err
		}
		if err := free("", "skill", &k.ID, found(func(id string) (ledger.Skill, bool, error) { return ledgersql.Skill(tx, k.ProjectID, id) })); err != nil {
			return err
		}
		k.CreatedAt, k.UpdatedAt = now, now
		return ledgersql.PutSkill(tx, k)
	})
	return k, err
}

// UpdateSkill edits skill metadata.
func (s *Service) UpdateSkill(ctx context.Context, projectID, id string, p ledger.SkillPatch) (k ledger.Skill, err error) {
	if err := requireIDs("project_id", &projectID); err != nil {
		return k, err
	}
	if id, err = ledger.SkillID(id); err != nil {
		return k, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if k, err = ofProject(tx, projectID, "skill", id, ledgersql.Skill); err != nil {
			return err
		}
		updated := k.UpdatedAt
		if k, err = ledger.CleanSkill(p.Apply(k)); err != nil {
			return err
		}
		k.UpdatedAt = ledger.Next(updated, now)
		return ledgersql.PutSkill(tx, k)
	})
	return k, err
}

// Finder looks for skills on the disk. It is the only thing that reads a root.
type Finder interface {
	Find(ctx context.Context, p ledger.Project) ([]ledger.FoundSkill, error)
}

// DiscoverSkills looks for skills below the active roots and refreshes their metadata.
// The disk is read outside the transaction.
func (s *Service) DiscoverSkills(ctx context.Context, projectID string, f Finder) ([]ledger.Skill, error) {
	p, err := s.GetProject(ctx, projectID)
	if err != nil {
		return nil, err
	}
	seen, err := f.Find(ctx, p)
	if err != nil {
		return nil, err
	}
	var out []ledger.Skill
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if err := needProject(tx, p.ID); err != nil {
			return err
		}
		before, err := ledgersql.Skills(tx, p.ID, ledgersql.Page{})
		if err != nil {
			return err
		}
		for _, k := range ledger.MergeSkills(p.ID, before, seen, now) {
			if k, err = ledger.CleanSkill(k); err != nil {
				return err
			}
			if err := ledgersql.PutSkill(tx, k); err != nil {
				return err
			}
		}
		out, err = ledgersql.Skills(tx, p.ID, ledgersql.Page{})
		return err
	})
	return out, err
}

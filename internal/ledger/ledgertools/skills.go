package ledgertools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/skillfind"
)

func skillLine(k ledger.Skill) string {
	off := ""
	if !k.Enabled {
		off = " disabled"
	}
	return k.ID + " " + k.Status + off + " " + oneLine(k.Title)
}

func addSkills() {
	tool("skills.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListSkills(ctx, in.ProjectID, span)
		return lines(p, err, "No skills.", skillLine)
	})
	tool("skills.discover", func(ctx context.Context, s *coord.Service, in inProject) (Outcome, error) {
		all, err := s.DiscoverSkills(ctx, in.ProjectID, skillfind.Finder{})
		return lines(coord.Page[ledger.Skill]{Items: all}, err, "No skills.", skillLine)
	})
	tool("skills.create", func(ctx context.Context, s *coord.Service, in struct {
		inID
		ledger.SkillPatch
	}) (Outcome, error) {
		k, err := s.CreateSkill(ctx, in.Apply(ledger.Skill{ID: in.ID, ProjectID: in.ProjectID, Enabled: true}))
		return record(k, err, func(k ledger.Skill) string { return "Created skill " + skillLine(k) })
	})
	tool("skills.update", func(ctx context.Context, s *coord.Service, in struct {
		inID
		ledger.SkillPatch
	}) (Outcome, error) {
		k, err := s.UpdateSkill(ctx, in.ProjectID, in.ID, in.SkillPatch)
		return record(k, err, func(k ledger.Skill) string { return "Updated skill " + skillLine(k) })
	})
}

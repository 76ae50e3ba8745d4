package ledgertools

import (
	"context"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
)

func roleLine(r ledger.Role) string { return r.ID + " " + oneLine(r.Name) }
func itemLine(w ledger.WorkItem) string {
	return fmt.Sprintf("%s %s priority=%s %s", w.ID, oneLine(w.Status), oneLine(w.Priority), oneLine(w.Title))
}

type roleFields struct {
	Name                 *string   `json:"name"`
	Description          *string   `json:"description"`
	Instructions         *string   `json:"instructions"`
	DefaultSkillIDs      *[]string `json:"default_skill_ids"`
	DefaultExecutionMode *string   `json:"default_execution_mode"`
}

type itemFields struct {
	Title           *string   `json:"title"`
	Brief           *string   `json:"brief"`
	Status          *string   `json:"status"`
	Priority        *string   `json:"priority"`
	OwnerRoleID     *string   `json:"owner_role_id"`
	ReviewerRoleIDs *[]string `json:"reviewer_role_ids"`
	RootID          *string   `json:"root_id"`
}

func entries(l *[]string) []string {
	if l == nil {
		return nil
	}
	return *l
}

type inID struct {
	ProjectID string `json:"project_id"`
	ID        string `json:"id"`
}

func addWork() {
	tool("roles.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListRoles(ctx, in.ProjectID, span)
		return lines(p, err, "No roles.", roleLine)
	})
	tool("roles.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		roleFields
	}) (Outcome, error) {
		r, err := s.CreateRole(ctx, ledger.Role{ProjectID: in.ProjectID, Name: text(in.Name), Description: text(in.Description), Instructions: text(in.Instructions),
			DefaultSkillIDs: entries(in.DefaultSkillIDs), DefaultExecutionMode: text(in.DefaultExecutionMode)})
		return record(r, err, func(r ledger.Role) string { return "Created role " + roleLine(r) })
	})
	tool("roles.update", func(ctx context.Context, s *coord.Service, in struct {
		inID
		roleFields
	}) (Outcome, error) {
		r, err := s.UpdateRole(ctx, in.ProjectID, in.ID, coord.RolePatch(in.roleFields))
		return record(r, err, func(r ledger.Role) string { return "Updated role " + roleLine(r) })
	})
	tool("roles.delete", func(ctx context.Context, s *coord.Service, in inID) (Outcome, error) {
		return removed("role", in.ID, s.DeleteRole(ctx, in.ProjectID, in.ID))
	})

	tool("work_items.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListWorkItems(ctx, in.ProjectID, span)
		return lines(p, err, "No work items.", itemLine)
	})
	tool("work_items.get", func(ctx context.Context, s *coord.Service, in inID) (Outcome, error) {
		w, err := s.GetWorkItem(ctx, in.ProjectID, in.ID)
		return record(w, err, itemLine)
	})
	tool("work_items.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		itemFields
	}) (Outcome, error) {
		w, err := s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: in.ProjectID, Title: text(in.Title), Brief: text(in.Brief), Status: text(in.Status), Priority: text(in.Priority),
			OwnerRoleID: text(in.OwnerRoleID), ReviewerRoleIDs: entries(in.ReviewerRoleIDs), RootID: text(in.RootID)})
		return record(w, err, func(w ledger.WorkItem) string { return "Created work item " + itemLine(w) })
	})
	tool("work_items.update", func(ctx context.Context, s *coord.Service, in struct {
		inID
		itemFields
	}) (Outcome, error) {
		f := in.itemFields
		w, err := s.UpdateWorkItem(ctx, in.ProjectID, in.ID, coord.WorkItemPatch{Title: f.Title, Brief: f.Brief, Status: f.Status, Priority: f.Priority,
			OwnerRoleID: f.OwnerRoleID, RootID: f.RootID, ReviewerRoleIDs: f.ReviewerRoleIDs})
		return record(w, err, func(w ledger.WorkItem) string { return "Updated work item " + itemLine(w) })
	})
	tool("work_items.delete", func(ctx context.Context, s *coord.Service, in inID) (Outcome, error) {
		return removed("work item", in.ID, s.DeleteWorkItem(ctx, in.ProjectID, in.ID))
	})
	tool("work_items.closeout_readiness", func(ctx context.Context, s *coord.Service, in inItem) (Outcome, error) {
		r, err := s.CloseoutReadiness(ctx, in.ProjectID, in.WorkItemID)
		return record(r, err, func(r overview.Readiness) string {
			out := fmt.Sprintf("%s %s: %s", r.WorkItemID, r.Status, r.Detail)
			for _, b := range r.Blockers {
				out += "\n- " + b
			}
			for _, w := range r.Warnings {
				out += "\n- " + w
			}
			return out
		})
	})
}

package coord

import (
	"context"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
)

// list reads a piece of a project's list; the project must exist.
func list[T any](ctx context.Context, s *Service, projectID string, span Span, read func(tx *store.Tx, projectID string, p ledgersql.Page) ([]T, error)) (out Page[T], err error) {
	if err := requireIDs("project_id", &projectID); err != nil {
		return out, err
	}
	err = s.view(ctx, func(tx *store.Tx) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		out, err = page(span, func(p ledgersql.Page) ([]T, error) { return read(tx, projectID, p) })
		return err
	})
	return out, err
}

// ListRoles lists roles by name.
func (s *Service) ListRoles(ctx context.Context, projectID string, span Span) (Page[ledger.Role], error) {
	return list(ctx, s, projectID, span, ledgersql.Roles)
}

// CreateRole adds a role.
func (s *Service) CreateRole(ctx context.Context, r ledger.Role) (ledger.Role, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { r, err = createRole(tx, r); return err })
	return r, err
}

func createRole(tx *store.Tx, r ledger.Role) (ledger.Role, error) {
	if err := requireIDs("project_id", &r.ProjectID); err != nil {
		return r, err
	}
	r, err := ledger.CleanRole(r)
	if err != nil {
		return r, err
	}
	if err := needProject(tx, r.ProjectID); err != nil {
		return r, err
	}
	if err := free(ledger.KindRole, "role", &r.ID, found(func(id string) (ledger.Role, bool, error) { return ledgersql.Role(tx, r.ProjectID, id) })); err != nil {
		return r, err
	}
	return r, ledgersql.PutRole(tx, r)
}

// RolePatch is an edit; a nil field keeps.
type RolePatch struct {
	Name, Description, Instructions *string
	DefaultSkillIDs                 *[]string
	DefaultExecutionMode            *string
}

// UpdateRole edits a role.
func (s *Service) UpdateRole(ctx context.Context, projectID, id string, p RolePatch) (r ledger.Role, err error) {
	if err := requireIDs("project_id", &projectID, "id", &id); err != nil {
		return r, err
	}
	err = s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		if r, err = role(tx, projectID, id); err != nil {
			return err
		}
		set(&r.Name, p.Name)
		set(&r.Description, p.Description)
		set(&r.Instructions, p.Instructions)
		set(&r.DefaultExecutionMode, p.DefaultExecutionMode)
		if p.DefaultSkillIDs != nil {
			r.DefaultSkillIDs = *p.DefaultSkillIDs
		}
		if r, err = ledger.CleanRole(r); err != nil {
			return err
		}
		return ledgersql.PutRole(tx, r)
	})
	return r, err
}

// DeleteRole removes a role. Nothing that names it is rewritten; readers warn.
func (s *Service) DeleteRole(ctx context.Context, projectID, id string) error {
	if err := requireIDs("project_id", &projectID, "id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		return gone(ledgersql.DeleteRole(tx, projectID, id))("role", id)
	})
}

// ListWorkItems lists work items, the most recently changed first.
func (s *Service) ListWorkItems(ctx context.Context, projectID string, span Span) (Page[ledger.WorkItem], error) {
	return list(ctx, s, projectID, span, ledgersql.WorkItems)
}

// GetWorkItem reads a work item.
func (s *Service) GetWorkItem(ctx context.Context, projectID, id string) (w ledger.WorkItem, err error) {
	if err := requireIDs("project_id", &projectID, "id", &id); err != nil {
		return w, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { w, err = itemOf(tx, projectID, id); return err })
	return w, err
}

// CreateWorkItem adds a work item.
func (s *Service) CreateWorkItem(ctx context.Context, w ledger.WorkItem) (ledger.WorkItem, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { w, err = createWorkItem(tx, now, w); return err })
	return w, err
}

func createWorkItem(tx *store.Tx, now time.Time, w ledger.WorkItem) (ledger.WorkItem, error) {
	if err := requireIDs("project_id", &w.ProjectID); err != nil {
		return w, err
	}
	w, err := ledger.CleanWorkItem(w)
	if err != nil {
		return w, err
	}
	if err := needProject(tx, w.ProjectID); err != nil {
		return w, err
	}
	if err := itemRefs(tx, ledger.WorkItem{}, w); err != nil {
		return w, err
	}
	if err := free(ledger.KindWorkItem, "work item", &w.ID, found(func(id string) (ledger.WorkItem, bool, error) { return ledgersql.WorkItem(tx, w.ProjectID, id) })); err != nil {
		return w, err
	}
	w.CreatedAt, w.UpdatedAt = now, now
	return w, ledgersql.PutWorkItem(tx, w)
}

// itemRefs checks the references of a work item that an edit adds. One that was there
// before may be dangling: a deleted role must not make an item uneditable.
func itemRefs(tx *store.Tx, before, w ledger.WorkItem) error {
	if w.RootID != before.RootID {
		if err := rootOf(tx, w.ProjectID, w.RootID); err != nil {
			return err
		}
	}
	if w.OwnerRoleID != before.OwnerRoleID {
		if err := roleOf(tx, w.ProjectID, w.OwnerRoleID); err != nil {
			return err
		}
	}
	for _, id := range w.ReviewerRoleIDs {
		if !slices.Contains(before.ReviewerRoleIDs, id) {
			if err := roleOf(tx, w.ProjectID, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// WorkItemPatch is an edit; a nil field keeps.
type WorkItemPatch struct {
	Title, Brief, Status, Priority, OwnerRoleID, RootID *string
	ReviewerRoleIDs                                     *[]string
}

// UpdateWorkItem edits a work item.
func (s *Service) UpdateWorkItem(ctx context.Context, projectID, id string, p WorkItemPatch) (w ledger.WorkItem, err error) {
	if err := requireIDs("project_id", &projectID, "id", &id); err != nil {
		return w, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		w, err = changeWorkItem(tx, now, projectID, id, func(w *ledger.WorkItem) {
			set(&w.Title, p.Title)
			set(&w.Brief, p.Brief)
			set(&w.Status, p.Status)
			set(&w.Priority, p.Priority)
			set(&w.OwnerRoleID, p.OwnerRoleID)
			set(&w.RootID, p.RootID)
			if p.ReviewerRoleIDs != nil {
				w.ReviewerRoleIDs = *p.ReviewerRoleIDs
			}
		})
		return err
	})
	return w, err
}

func changeWorkItem(tx *store.Tx, now time.Time, projectID, id string, edit func(*ledger.WorkItem)) (ledger.WorkItem, error) {
	w, err := itemOf(tx, projectID, id)
	if err != nil {
		return w, err
	}
	before := w
	edit(&w)
	if w, err = ledger.CleanWorkItem(w); err != nil {
		return w, err
	}
	if err := itemRefs(tx, before, w); err != nil {
		return w, err
	}
	w.UpdatedAt = ledger.Next(before.UpdatedAt, now)
	return w, ledgersql.PutWorkItem(tx, w)
}

// DeleteWorkItem removes a work item with its assignments, artifacts, evidence, reviews,
// and the handoffs on it and towards it or an assignment of it.
func (s *Service) DeleteWorkItem(ctx context.Context, projectID, id string) error {
	if err := requireIDs("project_id", &projectID, "id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		return gone(ledgersql.DeleteWorkItem(tx, projectID, id))("work item", id)
	})
}

// namedMost bounds the names that a readiness lists; its counts are exact.
const namedMost = 200

// CloseoutReadiness says whether a work item can be closed.
func (s *Service) CloseoutReadiness(ctx context.Context, projectID, workItemID string) (r overview.Readiness, err error) {
	if err := requireIDs("project_id", &projectID, "work_item_id", &workItemID); err != nil {
		return r, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { r, err = closeout(tx, projectID, workItemID); return err })
	return r, err
}

func closeout(tx *store.Tx, projectID, workItemID string) (r overview.Readiness, err error) {
	w, err := itemOf(tx, projectID, workItemID)
	if err != nil {
		return r, err
	}
	t, err := ledgersql.Tally(tx, projectID, workItemID)
	if err != nil {
		return r, err
	}
	names, err := ledgersql.Unfinished(tx, projectID, workItemID, namedMost)
	if err != nil {
		return r, err
	}
	return overview.Closeout(w, t, names), nil
}

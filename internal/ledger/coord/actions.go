package coord

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// runAction applies one action of a proposal inside the proposal's transaction. Ids of a
// payload are honoured; times and states that only the ledger decides are not.
func runAction(tx *store.Tx, now time.Time, a ledger.Action) (out ledger.ActionResult, err error) {
	switch a.Kind {
	case ledger.CreateProject:
		p, err := createProject(tx, now, a.Project.Project())
		return ledger.ActionResult{ProjectID: p.ID, RootID: p.DefaultRootID}, err
	case ledger.UpdateProject, ledger.SetDefaults, ledger.AttachRoot, ledger.RemoveRoot:
		return runProjectAction(tx, now, a)
	case ledger.CreateRole:
		r, err := createRole(tx, *a.Role)
		return ledger.ActionResult{ProjectID: r.ProjectID, RoleID: r.ID}, err
	case ledger.UpdateRole:
		return updateRole(tx, *a.Role)
	case ledger.CreateWorkItem:
		w, err := createWorkItem(tx, now, *a.WorkItem)
		return ledger.ActionResult{ProjectID: w.ProjectID, WorkItemID: w.ID}, err
	case ledger.UpdateWorkItem:
		to := *a.WorkItem
		if err := requireIDs("project_id", &to.ProjectID, "id", &to.ID); err != nil {
			return out, err
		}
		w, err := changeWorkItem(tx, now, to.ProjectID, to.ID, func(w *ledger.WorkItem) {
			to.CreatedAt = w.CreatedAt
			*w = to
		})
		return ledger.ActionResult{ProjectID: w.ProjectID, WorkItemID: w.ID}, err
	case ledger.CreateAssign:
		w, err := createAssignment(tx, now, *a.Assignment)
		return ledger.ActionResult{ProjectID: w.ProjectID, WorkItemID: w.WorkItemID, AssignmentID: w.ID}, err
	case ledger.CreateEvidence:
		e, err := recordEvidence(tx, now, *a.Evidence)
		return ledger.ActionResult{ProjectID: e.ProjectID, WorkItemID: e.WorkItemID, AssignmentID: e.AssignmentID, ArtifactID: e.ID}, err
	case ledger.CreateReview:
		r, err := recordReview(tx, now, *a.Review)
		return ledger.ActionResult{ProjectID: r.ProjectID, WorkItemID: r.WorkItemID, AssignmentID: r.AssignmentID, ArtifactID: r.ID}, err
	case ledger.CreateHandoff:
		h, err := createHandoff(tx, now, *a.Handoff)
		return ledger.ActionResult{ProjectID: h.ProjectID, WorkItemID: h.WorkItemID, HandoffID: h.ID}, err
	case ledger.UpdateHandoff:
		return updateHandoff(tx, now, *a.Handoff)
	case ledger.CreateCandidate:
		c, err := createCandidate(tx, now, *a.MemoryCandidate)
		return ledger.ActionResult{ProjectID: c.ProjectID, MemoryCandidateID: c.ID}, err
	}
	return out, fault.New(fault.Invalid, "ledger", "unknown kind of action")
}

func runProjectAction(tx *store.Tx, now time.Time, a ledger.Action) (out ledger.ActionResult, err error) {
	id, err := a.AboutProject()
	if err != nil { // of a historical proposal, which nobody checked when it was recorded
		return out, err
	}
	p, err := changeProject(tx, now, id, func(p *ledger.Project, now time.Time) (err error) {
		switch a.Kind {
		case ledger.AttachRoot:
			r, err := attachRoot(p, a.Root.Apply(ledger.Root{ID: a.Root.ID, Active: true}))
			out.RootID = r.ID
			return err
		case ledger.RemoveRoot:
			r, err := detachRoot(p, ledger.Trim(a.Target.RootID))
			out.RootID = r.ID
			return err
		case ledger.SetDefaults:
			p.DefaultRootID = a.Project.DefaultRootID
			return nil
		}
		to := a.Project.Project()
		p.Name, p.Description, p.DefaultRootID = to.Name, to.Description, to.DefaultRootID
		if p.Roots, err = ledger.CleanRoots(to.Roots); err != nil {
			return err
		}
		p.ContextSources, err = ledger.CleanSources(to.ContextSources, p.ContextSources, now)
		return err
	})
	out.ProjectID = p.ID
	if a.Kind == ledger.SetDefaults {
		out.RootID = p.DefaultRootID
	}
	return out, err
}

func updateRole(tx *store.Tx, to ledger.Role) (out ledger.ActionResult, err error) {
	if err := requireIDs("project_id", &to.ProjectID, "id", &to.ID); err != nil {
		return out, err
	}
	if _, err := ofProject(tx, to.ProjectID, "role", to.ID, ledgersql.Role); err != nil {
		return out, err
	}
	if to, err = ledger.CleanRole(to); err != nil {
		return out, err
	}
	return ledger.ActionResult{ProjectID: to.ProjectID, RoleID: to.ID}, ledgersql.PutRole(tx, to)
}

func updateHandoff(tx *store.Tx, now time.Time, to ledger.Handoff) (out ledger.ActionResult, err error) {
	if err := revisedIDs(&to.ProjectID, &to.WorkItemID, &to.ID, to.UpdatedAt); err != nil {
		return out, err
	}
	h, err := changeHandoff(tx, now, to.ProjectID, to.WorkItemID, to.ID, to.UpdatedAt, func(h ledger.Handoff) ledger.Handoff {
		if to.Status == "" {
			to.Status = h.Status
		}
		return to
	})
	return ledger.ActionResult{ProjectID: h.ProjectID, WorkItemID: h.WorkItemID, HandoffID: h.ID}, err
}

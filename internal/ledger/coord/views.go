package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Names lists the records of a kind, of all projects.
func (s *Service) Names(ctx context.Context, kind string, span Span) (out Page[ledgersql.Name], err error) {
	err = s.view(ctx, func(tx *store.Tx) error {
		out, err = page(span, func(p ledgersql.Page) ([]ledgersql.Name, error) { return ledgersql.Names(tx, kind, p) })
		return err
	})
	return out, err
}

// ProjectView is a project with what hangs on it; lists hold the most recent records.
type ProjectView struct {
	Project     ledger.Project       `json:"project"`
	Operations  overview.Brief       `json:"operations"`
	Activity    overview.Activity    `json:"activity"`
	Roles       []ledger.Role        `json:"roles"`
	Skills      []ledger.Skill       `json:"skills"`
	Memory      []ledger.MemoryEntry `json:"memory"`
	WorkItems   []ledger.WorkItem    `json:"work_items"`
	Assignments []ledger.Assignment  `json:"assignments"`
}

// ViewProject reads a project with what hangs on it, at one moment.
func (s *Service) ViewProject(ctx context.Context, projectID string) (v ProjectView, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, id string, now time.Time) (err error) {
		most := ledgersql.Page{Limit: packetMost}
		if v.Project, err = project(tx, id); err != nil {
			return err
		}
		if v.Operations, _, err = brief(tx, id, now, briefMost); err != nil {
			return err
		}
		if v.Activity, err = activity(tx, id, now); err != nil {
			return err
		}
		if v.Roles, err = ledgersql.Roles(tx, id, most); err != nil {
			return err
		}
		if v.Skills, err = ledgersql.Skills(tx, id, most); err != nil {
			return err
		}
		if v.Memory, err = ledgersql.Memories(tx, id, false, most); err != nil {
			return err
		}
		if v.WorkItems, err = ledgersql.WorkItems(tx, id, most); err != nil {
			return err
		}
		v.Assignments, err = ledgersql.Assignments(tx, id, ledgersql.AssignmentFilter{}, most)
		return err
	})
	return v, err
}

// WorkItemView is a work item with its collaboration.
type WorkItemView struct {
	ProjectID   string              `json:"project_id"`
	WorkItem    ledger.WorkItem     `json:"work_item"`
	Assignments []ledger.Assignment `json:"assignments"`
	Artifacts   []ledger.Artifact   `json:"artifacts"`
	Evidence    []ledger.Evidence   `json:"evidence"`
	Reviews     []ledger.Review     `json:"reviews"`
	Handoffs    []ledger.Handoff    `json:"handoffs"`
}

// ViewWorkItem reads a work item with its collaboration, at one moment.
func (s *Service) ViewWorkItem(ctx context.Context, projectID, id string) (v WorkItemView, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, projectID string, _ time.Time) (err error) {
		most := ledgersql.Page{Limit: packetMost}
		v.ProjectID = projectID
		if v.WorkItem, err = item(tx, projectID, id); err != nil {
			return err
		}
		if v.Assignments, err = ledgersql.Assignments(tx, projectID, ledgersql.AssignmentFilter{WorkItemID: id}, most); err != nil {
			return err
		}
		if v.Artifacts, err = ledgersql.Artifacts(tx, projectID, id, most); err != nil {
			return err
		}
		if v.Evidence, err = ledgersql.EvidenceOf(tx, projectID, id, most); err != nil {
			return err
		}
		if v.Reviews, err = ledgersql.Reviews(tx, projectID, id, most); err != nil {
			return err
		}
		v.Handoffs, err = ledgersql.Handoffs(tx, projectID, id, most)
		return err
	})
	return v, err
}

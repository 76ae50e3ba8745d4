package ledger

import (
	"strings"
	"time"
)

// Role is a responsibility that a project needs. It grants nothing.
type Role struct {
	ID                   string   `json:"id"`
	ProjectID            string   `json:"project_id"`
	Name                 string   `json:"name"`
	Description          string   `json:"description,omitempty"`
	Instructions         string   `json:"instructions,omitempty"`
	DefaultSkillIDs      []string `json:"default_skill_ids,omitempty"`
	DefaultExecutionMode string   `json:"default_execution_mode,omitempty"`
}

// CleanRole makes a role canonical.
func CleanRole(r Role) (Role, error) {
	r.Name, r.Description, r.Instructions = Trim(r.Name), Trim(r.Description), Trim(r.Instructions)
	r.DefaultSkillIDs, r.DefaultExecutionMode = List(r.DefaultSkillIDs), Trim(r.DefaultExecutionMode)
	if err := Required("name", r.Name); err != nil {
		return r, err
	}
	if r.DefaultExecutionMode != "" {
		if err := oneOf("default_execution_mode", r.DefaultExecutionMode, ExecutionModes); err != nil {
			return r, err
		}
	}
	if err := checkList("default_skill_ids", r.DefaultSkillIDs); err != nil {
		return r, err
	}
	return r, check(ref("id", r.ID), short("name", r.Name), body("description", r.Description), body("instructions", r.Instructions))
}

// WorkItem is a reviewable unit of work.
type WorkItem struct {
	ID              string    `json:"id"`
	ProjectID       string    `json:"project_id"`
	Title           string    `json:"title"`
	Brief           string    `json:"brief,omitempty"`
	Status          string    `json:"status"`
	Priority        string    `json:"priority"`
	OwnerRoleID     string    `json:"owner_role_id,omitempty"`
	ReviewerRoleIDs []string  `json:"reviewer_role_ids,omitempty"`
	RootID          string    `json:"root_id,omitempty"`
	CreatedAt       time.Time `json:"created_at,omitzero"`
	UpdatedAt       time.Time `json:"updated_at,omitzero"`
}

// The statuses of a work item that rules know; any other text means open.
const (
	WorkReady     = "ready"
	WorkDone      = "done"
	WorkCancelled = "cancelled"
)

// Open reports whether the item is neither done nor cancelled.
func (w WorkItem) Open() bool { return w.Status != WorkDone && w.Status != WorkCancelled }

// Rank orders work by its priority, the most urgent first. Text that no rule knows is
// normal.
func (w WorkItem) Rank() int {
	switch strings.ToLower(w.Priority) {
	case "critical", "urgent", "p0":
		return 0
	case "high", "p1":
		return 1
	case "low", "p3":
		return 3
	case "lowest", "p4":
		return 4
	}
	return 2
}

// CleanWorkItem makes an item canonical. References are the caller's to check.
func CleanWorkItem(w WorkItem) (WorkItem, error) {
	w.Title, w.Brief, w.RootID, w.OwnerRoleID = Trim(w.Title), Trim(w.Brief), Trim(w.RootID), Trim(w.OwnerRoleID)
	w.Status, w.Priority = or(Trim(w.Status), WorkReady), or(Trim(w.Priority), "normal")
	w.ReviewerRoleIDs = List(w.ReviewerRoleIDs)
	if err := Required("title", w.Title); err != nil {
		return w, err
	}
	if err := checkList("reviewer_role_ids", w.ReviewerRoleIDs); err != nil {
		return w, err
	}
	return w, check(ref("id", w.ID), short("title", w.Title), body("brief", w.Brief), ref("status", w.Status), ref("priority", w.Priority))
}

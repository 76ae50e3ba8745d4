package ledger

import (
	"slices"
	"time"
)

// Coordination is what an operator may change while an assignment is queued.
type Coordination struct {
	WorkItemID    string       `json:"work_item_id"`
	RoleID        string       `json:"role_id"`
	RootID        string       `json:"root_id,omitempty"`
	ExecutionMode string       `json:"execution_mode"`
	DesiredAgent  DesiredAgent `json:"desired_agent"`
}

// Coordination is the snapshot that a compare-and-set edit repeats.
func (a Assignment) Coordination() Coordination {
	c := Coordination{a.WorkItemID, a.RoleID, a.RootID, a.ExecutionMode, a.DesiredAgent}
	c.DesiredAgent.SkillIDs = slices.Clone(c.DesiredAgent.SkillIDs)
	return c
}

// Clean makes a snapshot canonical and refuses an incomplete one.
func (c Coordination) Clean(name string) (Coordination, error) {
	c.WorkItemID, c.RoleID, c.RootID, c.ExecutionMode = Trim(c.WorkItemID), Trim(c.RoleID), Trim(c.RootID), Trim(c.ExecutionMode)
	c.DesiredAgent = c.DesiredAgent.clean()
	if err := Required(name+".work_item_id", c.WorkItemID); err != nil {
		return c, err
	}
	if err := Required(name+".role_id", c.RoleID); err != nil {
		return c, err
	}
	if err := checkList(name+".skill_ids", c.DesiredAgent.SkillIDs); err != nil {
		return c, err
	}
	return c, oneOf(name+".execution_mode", c.ExecutionMode, ExecutionModes)
}

// Equal compares canonical snapshots; the order of skills matters.
func (c Coordination) Equal(d Coordination) bool {
	return c.WorkItemID == d.WorkItemID && c.RoleID == d.RoleID && c.RootID == d.RootID && c.ExecutionMode == d.ExecutionMode &&
		c.DesiredAgent.Kind == d.DesiredAgent.Kind && slices.Equal(c.DesiredAgent.SkillIDs, d.DesiredAgent.SkillIDs)
}

// QueuedUpdate is a compare-and-set edit: it applies only to what was read.
type QueuedUpdate struct {
	Expected          Coordination
	ExpectedUpdatedAt time.Time
	Replacement       Coordination
}

// Edit replaces the coordination of an assignment that nobody has touched since it was
// read. Both snapshots are canonical.
func (a Assignment) Edit(u QueuedUpdate, now time.Time) (Assignment, error) {
	if a.Status != Queued || a.Claim != nil || a.ClaimedBy != "" || a.ExecutionRef != nil || a.ContextSnapshotID != "" ||
		!a.StartedAt.IsZero() || !a.CompletedAt.IsZero() {
		return a, conflict("the assignment is %s: only queued work that nobody touched can be edited", a.Status).WithHint("read it again")
	}
	if err := CheckRevision("assignment", a.UpdatedAt, u.ExpectedUpdatedAt); err != nil {
		return a, err
	}
	have := a.Coordination()
	have.DesiredAgent = have.DesiredAgent.clean()
	if !have.Equal(u.Expected) {
		return a, conflict("the assignment is not as expected").WithHint("read it again and repeat the edit with what was read")
	}
	r := u.Replacement
	a.WorkItemID, a.RoleID, a.RootID, a.ExecutionMode, a.DesiredAgent = r.WorkItemID, r.RoleID, r.RootID, r.ExecutionMode, r.DesiredAgent
	a.UpdatedAt = Next(a.UpdatedAt, now)
	return a, nil
}

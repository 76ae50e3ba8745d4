package ledger

import "time"

// The versions of a snapshot. Version 1 knew no claims.
const (
	SnapshotVersion = 2
	snapshotOld     = 1
)

// Snapshot is everything in a ledger, to move it or to keep it. It is for an
// administrator, never a tool of an agent.
type Snapshot struct {
	Version            int               `json:"version"`
	ExportedAt         time.Time         `json:"exported_at"`
	Projects           []Project         `json:"projects"`
	ProjectSkills      []Skill           `json:"project_skills"`
	Roles              []Role            `json:"roles"`
	WorkItems          []WorkItem        `json:"work_items"`
	Assignments        []Assignment      `json:"assignments"`
	Artifacts          []Artifact        `json:"artifacts"`
	Evidence           []Evidence        `json:"evidence"`
	Reviews            []Review          `json:"reviews"`
	Handoffs           []Handoff         `json:"handoffs"`
	MemoryEntries      []MemoryEntry     `json:"memory_entries"`
	MemoryCandidates   []MemoryCandidate `json:"memory_candidates"`
	AssistantProposals []ProposalRecord  `json:"assistant_proposals"`
	// CommandReceipts keep a repeated command answered the same after a move.
	CommandReceipts []Receipt `json:"command_receipts,omitempty"`
}

// Receipt is what a command answered once.
type Receipt struct {
	ProjectID      string    `json:"project_id"`
	Operation      string    `json:"operation"`
	IdempotencyKey string    `json:"idempotency_key"`
	Fingerprint    string    `json:"fingerprint"`
	Outcome        string    `json:"outcome"`
	HandoffID      string    `json:"handoff_id"`
	AssignmentID   string    `json:"assignment_id"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
}

// Check refuses a snapshot that cannot be a ledger: an unknown version, a claim that
// contradicts its status, an unknown state, a time that no ledger holds, a record without an
// id, or one whose parent is neither in the snapshot nor known to exist already. Roles, roots and the assignments that collaboration
// names may be gone, as they may be in a ledger.
func (s Snapshot) Check(project, workItem func(projectID, id string) bool) error {
	if s.Version != SnapshotVersion && s.Version != snapshotOld {
		return invalid("snapshot version %d is not known; 1 and 2 are", s.Version)
	}
	for _, a := range s.Assignments {
		if err := a.CheckClaim(); err != nil {
			return err
		}
		if s.Version == snapshotOld && a.Claim != nil {
			return invalid("assignment %q: a snapshot of version 1 holds no claims", Clip(a.ID))
		}
		if err := oneOf("execution_mode", a.ExecutionMode, ExecutionModes); err != nil {
			return err
		}
	}
	if err := s.checkStates(); err != nil {
		return err
	}
	if err := s.checkTimes(); err != nil {
		return err
	}
	projects, items := map[string]bool{}, map[[2]string]bool{}
	for _, p := range s.Projects {
		projects[p.ID] = true
	}
	for _, w := range s.WorkItems {
		items[[2]string{w.ProjectID, w.ID}] = true
	}
	c := snapshotCheck{
		project: func(id string) bool { return projects[id] || project(id, id) },
		item:    func(p, id string) bool { return items[[2]string{p, id}] || workItem(p, id) },
	}
	return c.run(s)
}

type snapshotCheck struct {
	project func(id string) bool
	item    func(projectID, id string) bool
}

func (c snapshotCheck) run(s Snapshot) error {
	var err error
	top := func(kind, projectID, id string) {
		switch {
		case err != nil:
		case Trim(id) == "":
			err = invalid("a %s of the snapshot has no id", kind)
		case projectID != "" && !c.project(projectID):
			err = Missing("project", projectID)
		case projectID == "":
			err = invalid("%s %q of the snapshot has no project_id", kind, Clip(id))
		}
	}
	under := func(kind, projectID, itemID, id string) {
		if top(kind, projectID, id); err == nil && !c.item(projectID, itemID) {
			err = Missing("work item", itemID)
		}
	}
	for _, p := range s.Projects {
		top("project", p.ID, p.ID)
	}
	for _, v := range s.ProjectSkills {
		top("skill", v.ProjectID, v.ID)
	}
	for _, v := range s.Roles {
		top("role", v.ProjectID, v.ID)
	}
	for _, v := range s.WorkItems {
		top("work item", v.ProjectID, v.ID)
	}
	for _, v := range s.Assignments {
		under("assignment", v.ProjectID, v.WorkItemID, v.ID)
	}
	for _, v := range s.Artifacts {
		under("artifact", v.ProjectID, v.WorkItemID, v.ID)
	}
	for _, v := range s.Evidence {
		under("evidence", v.ProjectID, v.WorkItemID, v.ID)
	}
	for _, v := range s.Reviews {
		under("review", v.ProjectID, v.WorkItemID, v.ID)
	}
	for _, v := range s.Handoffs {
		under("handoff", v.ProjectID, v.WorkItemID, v.ID)
	}
	for _, v := range s.MemoryEntries {
		top("memory entry", v.ProjectID, v.ID)
	}
	for _, v := range s.MemoryCandidates {
		top("memory candidate", v.ProjectID, v.ID)
	}
	for _, v := range s.CommandReceipts {
		top("receipt", v.ProjectID, v.IdempotencyKey)
	}
	for _, v := range s.AssistantProposals {
		if err == nil && Trim(v.ID) == "" {
			err = invalid("a proposal of the snapshot has no id")
		}
	}
	return err
}

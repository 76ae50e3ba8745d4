package ledger

import (
	"time"
)

// Proposal is a list of changes that an operator confirms or not.
type Proposal struct {
	ID                   string    `json:"id"`
	ProjectID            string    `json:"project_id,omitempty"`
	Title                string    `json:"title"`
	Summary              string    `json:"summary,omitempty"`
	Warnings             []string  `json:"warnings,omitempty"`
	Source               string    `json:"source"`
	RequiresConfirmation bool      `json:"requires_confirmation"`
	Actions              []Action  `json:"actions"`
	CreatedAt            time.Time `json:"created_at,omitzero"`
}

// Action is one change; its kind says which payload or target it needs.
type Action struct {
	Kind            string           `json:"kind"`
	Title           string           `json:"title,omitempty"`
	Summary         string           `json:"summary,omitempty"`
	Target          Target           `json:"target,omitzero"`
	Project         *ProposedProject `json:"project,omitempty"`
	Root            *RootInput       `json:"root,omitempty"`
	Role            *Role            `json:"role,omitempty"`
	WorkItem        *WorkItem        `json:"work_item,omitempty"`
	Assignment      *Assignment      `json:"assignment,omitempty"`
	Evidence        *Evidence        `json:"evidence,omitempty"`
	Review          *Review          `json:"review,omitempty"`
	Handoff         *Handoff         `json:"handoff,omitempty"`
	MemoryCandidate *MemoryCandidate `json:"memory_candidate,omitempty"`
}

// Target names the records that an action is about.
type Target struct {
	ProjectID    string `json:"project_id,omitempty"`
	RootID       string `json:"root_id,omitempty"`
	RoleID       string `json:"role_id,omitempty"`
	WorkItemID   string `json:"work_item_id,omitempty"`
	AssignmentID string `json:"assignment_id,omitempty"`
	ArtifactID   string `json:"artifact_id,omitempty"`
	HandoffID    string `json:"handoff_id,omitempty"`
}

// ProposedProject is a project as an action gives it.
type ProposedProject struct {
	ID             string        `json:"id,omitempty"`
	Name           string        `json:"name,omitempty"`
	Description    string        `json:"description,omitempty"`
	Roots          []RootInput   `json:"roots,omitempty"`
	DefaultRootID  string        `json:"default_root_id,omitempty"`
	ContextSources []SourceInput `json:"context_sources,omitempty"`
}

// Project is the record that the payload describes.
func (p ProposedProject) Project() Project {
	out := Project{ID: p.ID, Name: p.Name, Description: p.Description, DefaultRootID: p.DefaultRootID}
	for _, r := range p.Roots {
		out.Roots = append(out.Roots, r.Apply(Root{ID: r.ID, Active: true}))
	}
	for _, s := range p.ContextSources {
		out.ContextSources = append(out.ContextSources, s.Apply(Source{ID: s.ID, Enabled: true}))
	}
	return out
}

// The kinds of actions.
const (
	CreateProject   = "create_project"
	UpdateProject   = "update_project"
	SetDefaults     = "set_project_defaults"
	AttachRoot      = "attach_project_root"
	RemoveRoot      = "remove_project_root"
	CreateRole      = "create_role"
	UpdateRole      = "update_role"
	CreateWorkItem  = "create_work_item"
	UpdateWorkItem  = "update_work_item"
	CreateAssign    = "create_assignment"
	CreateEvidence  = "create_evidence"
	CreateReview    = "create_review"
	CreateHandoff   = "create_handoff"
	UpdateHandoff   = "update_handoff"
	CreateCandidate = "create_memory_candidate"
)

// ProjectID is the project that the action is about, "" when it says none.
func (a Action) ProjectID() string {
	if a.Target.ProjectID != "" {
		return a.Target.ProjectID
	}
	switch {
	case a.Project != nil:
		return a.Project.ID
	case a.Role != nil:
		return a.Role.ProjectID
	case a.WorkItem != nil:
		return a.WorkItem.ProjectID
	case a.Assignment != nil:
		return a.Assignment.ProjectID
	case a.Evidence != nil:
		return a.Evidence.ProjectID
	case a.Review != nil:
		return a.Review.ProjectID
	case a.Handoff != nil:
		return a.Handoff.ProjectID
	case a.MemoryCandidate != nil:
		return a.MemoryCandidate.ProjectID
	}
	return ""
}

// AboutProject is the project that an action on a project changes: that of its payload when
// it has one. A target that names another one is refused: nobody can know which was meant.
func (a Action) AboutProject() (string, error) {
	target := Trim(a.Target.ProjectID)
	if a.Kind != UpdateProject && a.Kind != SetDefaults {
		return target, nil
	}
	id := Trim(a.Project.ID)
	if target != "" && target != id {
		return "", invalid("action %s names the project %q and the target %q", a.Kind, Clip(id), Clip(target))
	}
	return id, nil
}

// MaxActions bounds a proposal.
const MaxActions = 200

// CleanProposal makes a proposal canonical. live asks for what only a proposal that can
// be applied needs: the revision of an update_handoff.
func CleanProposal(p Proposal, live bool) (Proposal, error) {
	p.ID, p.ProjectID, p.Title, p.Summary = Trim(p.ID), Trim(p.ProjectID), Trim(p.Title), Trim(p.Summary)
	p.Source, p.Warnings, p.RequiresConfirmation = or(Trim(p.Source), "api"), List(p.Warnings), true
	if err := Required("title", p.Title); err != nil {
		return p, err
	}
	if len(p.Actions) == 0 {
		return p, invalid("actions must hold at least one action")
	}
	if len(p.Actions) > MaxActions {
		return p, invalid("actions holds more than %d actions", MaxActions)
	}
	for i := range p.Actions {
		p.Actions[i].Kind = Trim(p.Actions[i].Kind)
		if err := p.Actions[i].check(live); err != nil {
			return p, err
		}
		if p.ProjectID == "" {
			p.ProjectID = Trim(p.Actions[i].ProjectID())
		}
	}
	if err := checkList("warnings", p.Warnings); err != nil {
		return p, err
	}
	return p, check(ref("id", p.ID), short("title", p.Title), body("summary", p.Summary), short("source", p.Source))
}

func (a Action) check(live bool) error {
	need := func(ok bool, what string) error {
		if !ok {
			return invalid("action %s needs %s", a.Kind, what)
		}
		return nil
	}
	switch a.Kind {
	case CreateProject:
		return need(a.Project != nil, "project")
	case UpdateProject, SetDefaults:
		if err := need(a.Project != nil && Trim(a.Project.ID) != "", "project with its id"); err != nil || !live {
			return err
		}
		_, err := a.AboutProject()
		return err
	case AttachRoot:
		return need(a.Root != nil && Trim(a.Target.ProjectID) != "", "root and target.project_id")
	case RemoveRoot:
		return need(Trim(a.Target.ProjectID) != "" && Trim(a.Target.RootID) != "", "target.project_id and target.root_id")
	case CreateRole:
		return need(a.Role != nil, "role")
	case UpdateRole:
		return need(a.Role != nil && Trim(a.Role.ID) != "", "role with its id")
	case CreateWorkItem:
		return need(a.WorkItem != nil, "work_item")
	case UpdateWorkItem:
		return need(a.WorkItem != nil && Trim(a.WorkItem.ID) != "", "work_item with its id")
	case CreateAssign:
		return a.checkAssignment()
	case CreateEvidence:
		return need(a.Evidence != nil, "evidence")
	case CreateReview:
		return need(a.Review != nil, "review")
	case CreateHandoff:
		return need(a.Handoff != nil, "handoff")
	case UpdateHandoff:
		if err := need(a.Handoff != nil && Trim(a.Handoff.ID) != "", "handoff with its id"); err != nil {
			return err
		}
		return need(!live || !a.Handoff.UpdatedAt.IsZero(), "handoff.updated_at: the revision that was read")
	case CreateCandidate:
		return need(a.MemoryCandidate != nil, "memory_candidate")
	}
	return invalid("%q is not a kind of action", Clip(a.Kind))
}

// checkAssignment refuses an assignment that would be born with an execution.
func (a Action) checkAssignment() error {
	w := a.Assignment
	if w == nil {
		return invalid("action %s needs assignment", a.Kind)
	}
	r, err := CleanRef(w.ExecutionRef)
	if err != nil {
		return err
	}
	if s := Trim(w.Status); s != "" && s != Queued || Trim(w.ClaimedBy) != "" || w.Claim != nil || r != nil || Trim(w.ContextSnapshotID) != "" {
		return invalid("action %s only queues: it has no status but queued, no claim, execution_ref or context_snapshot_id", a.Kind)
	}
	return nil
}

// The statuses of a recorded proposal. partial is history of other releases: here all
// actions of a proposal happen or none.
const (
	Proposed           = "proposed"
	NeedsConfirmation  = "needs_confirmation"
	Applied            = "applied"
	Partial            = "partial"
	ProposalRejected   = "rejected"
	actionApplied      = "applied"
	actionRejected     = "rejected"
	actionNotAttempted = "reverted"
)

var proposalStatuses = []string{Proposed, NeedsConfirmation, Applied, Partial, ProposalRejected}

// ProposalRecord is a proposal with what became of it.
type ProposalRecord struct {
	ID            string       `json:"id"`
	ProjectID     string       `json:"project_id,omitempty"`
	Source        string       `json:"source"`
	SourceID      string       `json:"source_id,omitempty"`
	Proposal      Proposal     `json:"proposal"`
	Status        string       `json:"status"`
	LatestResult  *ApplyResult `json:"latest_result,omitempty"`
	ApplyAttempts []Attempt    `json:"apply_attempts,omitempty"`
	CreatedAt     time.Time    `json:"created_at,omitzero"`
	UpdatedAt     time.Time    `json:"updated_at,omitzero"`
	AppliedAt     time.Time    `json:"applied_at,omitzero"`
}

// Attempt is one try to apply a proposal.
type Attempt struct {
	ID           string       `json:"id"`
	ProposalID   string       `json:"proposal_id"`
	Status       string       `json:"status"`
	Confirmed    bool         `json:"confirmed"`
	Result       *ApplyResult `json:"result,omitempty"`
	ErrorMessage string       `json:"error_message,omitempty"`
	CreatedAt    time.Time    `json:"created_at,omitzero"`
}

// ApplyResult is what an attempt did.
type ApplyResult struct {
	ProposalID         string         `json:"proposal_id"`
	Status             string         `json:"status"`
	Applied            bool           `json:"applied"`
	Confirmed          bool           `json:"confirmed"`
	TotalActionCount   int            `json:"total_action_count"`
	AppliedActionCount int            `json:"applied_action_count"`
	FailedActionIndex  *int           `json:"failed_action_index,omitempty"`
	Actions            []ActionResult `json:"actions,omitempty"`
}

// ActionResult is what one action did.
type ActionResult struct {
	Kind              string `json:"kind"`
	Status            string `json:"status"`
	ProjectID         string `json:"project_id,omitempty"`
	RootID            string `json:"root_id,omitempty"`
	RoleID            string `json:"role_id,omitempty"`
	WorkItemID        string `json:"work_item_id,omitempty"`
	AssignmentID      string `json:"assignment_id,omitempty"`
	ArtifactID        string `json:"artifact_id,omitempty"`
	HandoffID         string `json:"handoff_id,omitempty"`
	MemoryCandidateID string `json:"memory_candidate_id,omitempty"`
	Error             string `json:"error,omitempty"`
}

// Unconfirmed is the result of an attempt without confirmation.
func Unconfirmed(p Proposal) ApplyResult {
	return ApplyResult{ProposalID: p.ID, Status: NeedsConfirmation, TotalActionCount: len(p.Actions)}
}

// Succeeded is the result of an attempt whose actions all happened.
func Succeeded(p Proposal, actions []ActionResult) ApplyResult {
	for i := range actions {
		actions[i].Status = actionApplied
	}
	return ApplyResult{ProposalID: p.ID, Status: Applied, Applied: true, Confirmed: true, TotalActionCount: len(p.Actions), AppliedActionCount: len(actions), Actions: actions}
}

// RolledBack is the result of an attempt whose action number at failed: nothing of it
// stayed.
func RolledBack(p Proposal, at int, message string) ApplyResult {
	r := ApplyResult{ProposalID: p.ID, Status: ProposalRejected, Confirmed: true, TotalActionCount: len(p.Actions), FailedActionIndex: &at}
	for i, a := range p.Actions[:at+1] {
		done := ActionResult{Kind: a.Kind, Status: actionNotAttempted}
		if i == at {
			done.Status, done.Error = actionRejected, message
		}
		r.Actions = append(r.Actions, done)
	}
	return r
}

// NotConfirmed is the refusal of an attempt without confirmation.
func NotConfirmed() error {
	return conflict("the proposal needs the operator's confirmation; nothing was applied").WithHint("ask the operator, then call assistant.apply with confirm")
}

// AlreadyApplied is the refusal of a second application.
func AlreadyApplied(at time.Time) error {
	return conflict("the proposal was applied at %s; nothing is repeated", stamp(at))
}

// ActionFailed says which action failed; it keeps the code of the cause.
func ActionFailed(at int, kind string, err error) error {
	code, msg, hint := publicOf(err)
	e := faultOf(code, "action %d (%s) failed: %s; nothing was applied", at, kind, msg)
	if hint != "" {
		e = e.WithHint("%s", hint)
	}
	return e
}

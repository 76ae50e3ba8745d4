package overview

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

// SetupFacts is what the setup of a project is judged by.
type SetupFacts struct {
	Project                    ledger.Project
	Items, Roles, Skills       int
	EnabledSources, Sources    int
	SavedMemory, EnabledMemory int
	Candidates                 map[string]int // by status
	SkillIssues                int
	Handoffs, Reviews          map[string]int // by status, by verdict
	ActiveRoot                 bool
}

// Started reports whether anybody set the project up.
func (f SetupFacts) Started() bool {
	return f.EnabledSources+f.Roles+f.Skills+f.SavedMemory+f.Candidates[ledger.Pending] > 0
}

// SetupAction is what to do about a check.
type SetupAction struct {
	Kind      string `json:"kind"`
	ProjectID string `json:"project_id"`
	Label     string `json:"label"`
}

// SetupCheck is one condition of a project that is ready for work.
type SetupCheck struct {
	ID       string       `json:"id"`
	Label    string       `json:"label"`
	Detail   string       `json:"detail"`
	Status   string       `json:"status"`
	Optional bool         `json:"optional"`
	Action   *SetupAction `json:"action,omitempty"`
}

// SetupSummary is the numbers behind the checks.
type SetupSummary struct {
	WorkItemCount               int  `json:"work_item_count"`
	RoleCount                   int  `json:"role_count"`
	SkillCount                  int  `json:"skill_count"`
	EnabledContextSourceCount   int  `json:"enabled_context_source_count"`
	SavedMemoryCount            int  `json:"saved_memory_count"`
	PendingMemoryCandidateCount int  `json:"pending_memory_candidate_count"`
	HasPurpose                  bool `json:"has_purpose"`
	HasActiveRoot               bool `json:"has_active_root"`
}

// Setup says whether a project is ready for its first work.
type Setup struct {
	ProjectID      string       `json:"project_id"`
	ShowOnboarding bool         `json:"show_onboarding"`
	SetupStarted   bool         `json:"setup_started"`
	FirstWorkReady bool         `json:"first_work_ready"`
	Summary        SetupSummary `json:"summary"`
	PrimaryAction  SetupAction  `json:"primary_action"`
	Checks         []SetupCheck `json:"checks"`
	CreatedAt      time.Time    `json:"created_at,omitzero"`
}

// JudgeSetup makes the five checks.
func JudgeSetup(f SetupFacts, now time.Time) Setup {
	id := f.Project.ID
	started := f.Started()
	s := Setup{ProjectID: id, SetupStarted: started, ShowOnboarding: f.Items == 0 && !started, FirstWorkReady: f.Items == 0 && started,
		Summary:       SetupSummary{f.Items, f.Roles, f.Skills, f.EnabledSources, f.SavedMemory, f.Candidates[ledger.Pending], f.Project.Description != "", f.ActiveRoot},
		PrimaryAction: SetupAction{ActionSetUp, id, "Set the project up"}, CreatedAt: now}
	add := func(check, label, ready, todo string, ok bool, action, actionLabel string) {
		c := SetupCheck{ID: check, Label: label, Detail: ready, Status: "ready"}
		if !ok {
			c.Detail, c.Status, c.Action = todo, "todo", &SetupAction{action, id, actionLabel}
		}
		s.Checks = append(s.Checks, c)
	}
	add("purpose", "Purpose", "The project says what it is for.", "The project has no description.", f.Project.Description != "", ActionProject, "Describe the project")
	root := SetupCheck{ID: "workspace_source", Label: "Workspace", Detail: "A root is active.", Status: "ready", Optional: true}
	if !f.ActiveRoot {
		root.Detail, root.Status = "No root is active; a project needs none.", "optional"
	}
	s.Checks = append(s.Checks, root)
	add("sources_memory", "Context", "There are sources, skills or memory.", "There is no source, skill or memory.",
		f.Sources+f.Skills+f.SavedMemory+f.Candidates[ledger.Pending] > 0, ActionContext, "Add context")
	add("roles", "Roles", "There are roles.", "There is no role.", f.Roles > 0, ActionRoles, "Add a role")
	add("first_work_item", "First work", "There is work.", "There is no work item.", f.Items > 0, ActionFirstWork, "Add a work item")
	return s
}

func (s Setup) todos() (n int) {
	for _, c := range s.Checks {
		if c.Status == "todo" {
			n++
		}
	}
	return n
}

// AttentionLimit is how many things a health shows.
const AttentionLimit = 5

// HealthSummary is the counters of a health.
type HealthSummary struct {
	AttentionCount               int  `json:"attention_count"`
	AvailableAttentionCount      int  `json:"available_attention_count"`
	OmittedAttentionCount        int  `json:"omitted_attention_count"`
	AttentionLimit               int  `json:"attention_limit"`
	SetupTodoCount               int  `json:"setup_todo_count"`
	MissingProjectRoot           bool `json:"missing_project_root"`
	EnabledMemoryCount           int  `json:"enabled_memory_count"`
	SavedMemoryCount             int  `json:"saved_memory_count"`
	EnabledContextSourceCount    int  `json:"enabled_context_source_count"`
	PendingMemoryCandidateCount  int  `json:"pending_memory_candidate_count"`
	PromotedMemoryCandidateCount int  `json:"promoted_memory_candidate_count"`
	RejectedMemoryCandidateCount int  `json:"rejected_memory_candidate_count"`
	OpenHandoffCount             int  `json:"open_handoff_count"`
	AcceptedHandoffCount         int  `json:"accepted_handoff_count"`
	SupersededHandoffCount       int  `json:"superseded_handoff_count"`
	DismissedHandoffCount        int  `json:"dismissed_handoff_count"`
	ReviewFollowUpCount          int  `json:"review_follow_up_count"`
	BlockedReviewCount           int  `json:"blocked_review_count"`
	ChangesRequestedReviewCount  int  `json:"changes_requested_review_count"`
	ActiveAssignmentCount        int  `json:"active_assignment_count"`
	BlockedAssignmentCount       int  `json:"blocked_assignment_count"`
	ProjectSkillIssueCount       int  `json:"project_skill_issue_count"`
}

// Attention is one thing that a health shows.
type Attention struct {
	ProjectID string `json:"project_id"`
	BriefItem
}

// Health is the overview of a project.
type Health struct {
	ProjectID string        `json:"project_id"`
	Status    string        `json:"status"`
	Title     string        `json:"title"`
	Detail    string        `json:"detail"`
	Summary   HealthSummary `json:"summary"`
	Attention []Attention   `json:"attention"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
}

// JudgeHealth puts a brief and a setup together.
func JudgeHealth(f SetupFacts, b Brief, idle int, now time.Time) Health {
	s := JudgeSetup(f, now)
	id := f.Project.ID
	var extra int
	var items []BriefItem
	if s.ShowOnboarding {
		items = append(items, BriefItem{ID: id + ":project_setup", Kind: "project_setup", Severity: "action", Status: "todo", Title: "Set the project up", Detail: "It has no roles, context or work yet.",
			ActionKind: ActionSetUp, ActionLabel: "Set the project up"})
		extra++
	}
	for _, i := range b.Items {
		if i.Kind == "handoff" {
			i.HandoffID, i.ArtifactID = i.ArtifactID, ""
		}
		i.ID = id + ":" + i.Kind
		for _, part := range []string{i.WorkItemID, i.AssignmentID, i.ArtifactID, i.HandoffID, i.MemoryCandidateID} {
			if part != "" {
				i.ID += ":" + part
			}
		}
		items = append(items, i)
	}
	if f.SkillIssues > 0 {
		items = append(items, BriefItem{ID: id + ":skill", Kind: "skill", Severity: "action", Status: "needs_review", Title: "Review the skills",
			Detail: "Roles or assignments name skills that are unknown, disabled or not available.", ActionKind: ActionSkills, ActionLabel: "Update the skills"})
		extra++
	}
	if !s.ShowOnboarding && f.EnabledMemory == 0 && f.EnabledSources == 0 { // so that its id comes once
		items = append(items, BriefItem{ID: id + ":project_setup", Kind: "project_setup", Severity: "action", Status: "todo", Title: "Add context", Detail: "There is no enabled memory and no enabled source.",
			ActionKind: ActionContext, ActionLabel: "Add context"})
		extra++
	}
	h := Health{ProjectID: id, Status: "clear", Title: "Healthy", Detail: "Nothing needs attention.", Attention: []Attention{}, CreatedAt: now}
	available := b.Counts.Things(idle) + extra
	for _, i := range items[:min(len(items), AttentionLimit)] {
		h.Attention = append(h.Attention, Attention{id, i})
	}
	if len(h.Attention) > 0 {
		h.Status, h.Title, h.Detail = "attention", "Needs attention", h.Attention[0].Title
	}
	h.Summary = HealthSummary{AttentionCount: len(h.Attention), AvailableAttentionCount: available, OmittedAttentionCount: available - len(h.Attention), AttentionLimit: AttentionLimit,
		SetupTodoCount: s.todos(), MissingProjectRoot: !f.ActiveRoot, EnabledMemoryCount: f.EnabledMemory, SavedMemoryCount: f.SavedMemory, EnabledContextSourceCount: f.EnabledSources,
		PendingMemoryCandidateCount: f.Candidates[ledger.Pending], PromotedMemoryCandidateCount: f.Candidates[ledger.Promoted], RejectedMemoryCandidateCount: f.Candidates[ledger.Rejected],
		OpenHandoffCount: f.Handoffs[ledger.HandoffOpen], AcceptedHandoffCount: f.Handoffs[ledger.HandoffAccepted], SupersededHandoffCount: f.Handoffs[ledger.HandoffSuperseded], DismissedHandoffCount: f.Handoffs[ledger.HandoffDismissed],
		ReviewFollowUpCount: b.Counts.ReviewFollowUps, BlockedReviewCount: f.Reviews[ledger.VerdictBlocked], ChangesRequestedReviewCount: f.Reviews[ledger.VerdictChanges],
		ActiveAssignmentCount: b.Counts.ActiveAssignments, BlockedAssignmentCount: b.Counts.BlockedAssignments, ProjectSkillIssueCount: f.SkillIssues}
	return h
}

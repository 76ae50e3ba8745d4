package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

// ProjectTally is what is known of a project in numbers.
type ProjectTally struct {
	Items, OpenItems                          int
	All                                       map[string]int // assignments by status
	Open                                      map[string]int // those of open items
	Missing, Handoffs, FollowUps, Ready, Idle int            // of open items
}

func sum(by map[string]int, statuses ...string) (n int) {
	for _, s := range statuses {
		n += by[s]
	}
	return n
}

// The buckets of an assignment.
const (
	BucketActive    = "active"
	BucketBlocked   = "blocked"
	BucketCompleted = "completed"
)

// Bucket sorts an assignment by whether somebody works on it.
func Bucket(a ledger.Assignment, now time.Time) string {
	switch a.Status {
	case ledger.Running, ledger.AwaitingReview:
		return BucketActive
	case ledger.Claimed:
		if a.Expired(now) {
			return BucketBlocked
		}
		return BucketActive
	case ledger.Completed:
		return BucketCompleted
	}
	return BucketBlocked
}

// ActivityItem is an assignment in a project's activity.
type ActivityItem struct {
	Bucket           string               `json:"bucket"`
	AssignmentID     string               `json:"assignment_id"`
	WorkItemID       string               `json:"work_item_id"`
	WorkItemTitle    string               `json:"work_item_title,omitempty"`
	RoleID           string               `json:"role_id"`
	RoleName         string               `json:"role_name,omitempty"`
	RootID           string               `json:"root_id,omitempty"`
	Status           string               `json:"status"`
	ExecutionMode    string               `json:"execution_mode"`
	DesiredAgentKind string               `json:"desired_agent_kind"`
	ExecutionRef     *ledger.ExecutionRef `json:"execution_ref,omitempty"`
	CreatedAt        time.Time            `json:"created_at,omitzero"`
	UpdatedAt        time.Time            `json:"updated_at,omitzero"`
}

// ActivityCounts are exact, whatever the lists show.
type ActivityCounts struct {
	Assignments      int `json:"assignments"`
	Queued           int `json:"queued"`
	Claimed          int `json:"claimed"`
	Running          int `json:"running"`
	AwaitingApproval int `json:"awaiting_approval"`
	AwaitingReview   int `json:"awaiting_review"`
	Completed        int `json:"completed"`
	Failed           int `json:"failed"`
	Cancelled        int `json:"cancelled"`
	Other            int `json:"other"`
	Active           int `json:"active"`
	Blocked          int `json:"blocked"`
}

// Buckets are the most recent assignments by bucket.
type Buckets struct {
	Active    []ActivityItem `json:"active"`
	Blocked   []ActivityItem `json:"blocked"`
	Completed []ActivityItem `json:"completed"`
	Other     []ActivityItem `json:"other"`
	Recent    []ActivityItem `json:"recent"`
}

// Activity is what goes on in a project. Lists hold the most recent assignments only.
type Activity struct {
	ProjectID string         `json:"project_id"`
	Counts    ActivityCounts `json:"counts"`
	Buckets   Buckets        `json:"buckets"`
	Items     []ActivityItem `json:"items"`
	// Omitted is how many assignments items leaves out.
	Omitted   int       `json:"omitted_item_count,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// CountActivity counts assignments; expired is how many claims have run out.
func CountActivity(t ProjectTally, expired int) ActivityCounts {
	c := ActivityCounts{Queued: t.All[ledger.Queued], Claimed: t.All[ledger.Claimed], Running: t.All[ledger.Running], AwaitingApproval: t.All[ledger.AwaitingApproval],
		AwaitingReview: t.All[ledger.AwaitingReview], Completed: t.All[ledger.Completed], Failed: t.All[ledger.Failed], Cancelled: t.All[ledger.Cancelled]}
	c.Assignments = sum(t.All, ledger.Statuses...)
	c.Active = c.Claimed - expired + c.Running + c.AwaitingReview
	c.Blocked = c.Queued + c.AwaitingApproval + c.Failed + c.Cancelled + expired
	return c
}

// BriefItem is one thing to know or to do.
type BriefItem struct {
	ID                string    `json:"id,omitempty"`
	Kind              string    `json:"kind"`
	Severity          string    `json:"severity"`
	Status            string    `json:"status,omitempty"`
	Title             string    `json:"title"`
	Detail            string    `json:"detail,omitempty"`
	ActionKind        string    `json:"action_kind,omitempty"`
	ActionLabel       string    `json:"action_label,omitempty"`
	WorkItemID        string    `json:"work_item_id,omitempty"`
	AssignmentID      string    `json:"assignment_id,omitempty"`
	ArtifactID        string    `json:"artifact_id,omitempty"`
	HandoffID         string    `json:"handoff_id,omitempty"`
	MemoryCandidateID string    `json:"memory_candidate_id,omitempty"`
	UpdatedAt         time.Time `json:"updated_at,omitzero"`
	rank              int
}

// BriefCounts are exact, whatever the list shows.
type BriefCounts struct {
	WorkItems               int `json:"work_items"`
	OpenWorkItems           int `json:"open_work_items"`
	Assignments             int `json:"assignments"`
	ActiveAssignments       int `json:"active_assignments"`
	BlockedAssignments      int `json:"blocked_assignments"`
	PendingMemoryCandidates int `json:"pending_memory_candidates"`
	ReviewFollowUps         int `json:"review_follow_ups"`
	MissingEvidence         int `json:"missing_evidence"`
	OpenHandoffs            int `json:"open_handoffs"`
	CloseoutReady           int `json:"closeout_ready"`
}

// Brief is what an operator looks at next. Items hold the most urgent things only.
type Brief struct {
	ProjectID string      `json:"project_id"`
	Status    string      `json:"status"`
	Title     string      `json:"title"`
	Detail    string      `json:"detail"`
	Counts    BriefCounts `json:"counts"`
	Next      *BriefItem  `json:"next,omitempty"`
	Items     []BriefItem `json:"items"`
	// Omitted is how many things items leaves out.
	Omitted   int       `json:"omitted_item_count,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// The statuses of assignments that a brief tells of beside claims. The end of a work item
// settles what was only queued and what failed; whatever else there is in it is told until
// it ends, because somebody may hold it or wait for it.
var (
	ToldAlways = []string{ledger.AwaitingApproval, ledger.Cancelled, ledger.Running, ledger.AwaitingReview}
	ToldOfOpen = []string{ledger.Queued, ledger.Failed}
)

// CountBrief counts what a brief tells of; expired is how many claims have run out.
func CountBrief(t ProjectTally, expired, pending int) BriefCounts {
	return BriefCounts{WorkItems: t.Items, OpenWorkItems: t.OpenItems, Assignments: sum(t.All, ledger.Statuses...),
		ActiveAssignments:  t.All[ledger.Claimed] - expired + t.All[ledger.Running] + t.All[ledger.AwaitingReview],
		BlockedAssignments: sum(t.Open, ToldOfOpen...) + t.All[ledger.AwaitingApproval] + t.All[ledger.Cancelled] + expired,
		ReviewFollowUps:    t.FollowUps, MissingEvidence: t.Missing, OpenHandoffs: t.Handoffs, CloseoutReady: t.Ready, PendingMemoryCandidates: pending}
}

// Things is how many items a brief would have without a bound.
func (c BriefCounts) Things(idle int) int {
	return c.ActiveAssignments + c.BlockedAssignments + c.PendingMemoryCandidates + c.ReviewFollowUps + c.MissingEvidence + c.OpenHandoffs + c.CloseoutReady + idle
}

// The actions that resolve an item.
const (
	ActionClaim     = "claim_assignment"
	ActionInspect   = "inspect_assignment"
	ActionResolve   = "resolve_assignment"
	ActionRecover   = "recover_assignment_claim"
	ActionEvidence  = "record_evidence"
	ActionHandoff   = "create_handoff"
	ActionAnswer    = "resolve_handoff"
	ActionReview    = "review_memory_candidate"
	ActionCloseout  = "closeout_work_item"
	ActionAssign    = "create_assignment"
	ActionSkills    = "update_skills"
	ActionSetUp     = "setup_project"
	ActionContext   = "manage_context"
	ActionRoles     = "manage_roles"
	ActionProject   = "update_project"
	ActionFirstWork = "create_work_item"
)

// AssignmentItem is the brief's word on an assignment; completed ones have none.
func AssignmentItem(a ledger.Assignment, title string, now time.Time) (BriefItem, bool) {
	i := BriefItem{Kind: "assignment", Severity: "blocked", rank: 10, Status: a.Status, WorkItemID: a.WorkItemID, AssignmentID: a.ID, UpdatedAt: a.UpdatedAt,
		Title: cmp.Or(title, a.WorkItemID)}
	say := func(kind, label, detail string) { i.ActionKind, i.ActionLabel, i.Detail = kind, label, detail }
	switch {
	case a.Status == ledger.Queued:
		say(ActionClaim, "Claim the assignment", "Queued and not claimed.")
	case a.Expired(now):
		say(ActionRecover, "Recover the claim", "The claim of "+ledger.Clip(a.ClaimedBy)+" expired before the work started.")
	case a.Status == ledger.AwaitingApproval:
		say(ActionInspect, "Look at the approval", "The host waits for an approval.")
	case a.Status == ledger.Failed || a.Status == ledger.Cancelled:
		say(ActionResolve, "Resolve the assignment", "The work ended as "+a.Status+".")
	case a.Status == ledger.Completed:
		return BriefItem{}, false
	default:
		i.Severity, i.rank = "active", 50
		say(ActionInspect, "Look at the work", "Held by "+ledger.Clip(a.ClaimedBy)+".")
	}
	return i, true
}

// MissingEvidenceItem is the brief's word on completed work without proof.
func MissingEvidenceItem(a ledger.Assignment, title string) BriefItem {
	return BriefItem{Kind: "missing_evidence", Severity: "blocked", rank: 20, Status: "missing", Title: cmp.Or(title, a.WorkItemID), Detail: "Completed without evidence.",
		ActionKind: ActionEvidence, ActionLabel: "Record evidence", WorkItemID: a.WorkItemID, AssignmentID: a.ID, UpdatedAt: a.UpdatedAt}
}

// FollowUpItem is the brief's word on a review that waits.
func FollowUpItem(r ledger.Review) BriefItem {
	return BriefItem{Kind: "review_follow_up", Severity: "blocked", rank: 30, Status: NeedsPath, Title: r.Title, Detail: "The verdict " + r.Verdict + " has no finished follow-up.",
		ActionKind: ActionHandoff, ActionLabel: "Hand the follow-up off", WorkItemID: r.WorkItemID, AssignmentID: r.AssignmentID, ArtifactID: r.ID, UpdatedAt: r.UpdatedAt}
}

// HandoffItem is the brief's word on an open handoff.
func HandoffItem(h ledger.Handoff) BriefItem {
	return BriefItem{Kind: "handoff", Severity: "blocked", rank: 35, Status: h.Status, Title: h.Title, Detail: ledger.Clip(h.RecommendedNextAction),
		ActionKind: ActionAnswer, ActionLabel: "Accept or dismiss the handoff", WorkItemID: h.WorkItemID, ArtifactID: h.ID, UpdatedAt: h.UpdatedAt}
}

// CandidateItem is the brief's word on memory that waits for a decision.
func CandidateItem(c ledger.MemoryCandidate) BriefItem {
	return BriefItem{Kind: "memory_candidate", Severity: "action", rank: 40, Status: c.Status, Title: c.Title, Detail: "Waits for a decision.",
		ActionKind: ActionReview, ActionLabel: "Promote or reject it", MemoryCandidateID: c.ID, UpdatedAt: c.UpdatedAt}
}

// ReadyItem is the brief's word on an item that can be closed.
func ReadyItem(id, title string, updated time.Time) BriefItem {
	return BriefItem{Kind: "closeout_ready", Severity: "ready", rank: 60, Status: "ready", Title: title, Detail: "Nothing blocks the closing.",
		ActionKind: ActionCloseout, ActionLabel: "Close the work item", WorkItemID: id, UpdatedAt: updated}
}

// IdleItem is the brief's word on an open item without assignments.
func IdleItem(id, title string, updated time.Time) BriefItem {
	return BriefItem{Kind: "work_item", Severity: "info", rank: 70, Status: "unassigned", Title: title, Detail: "Nobody is asked to do it.",
		ActionKind: ActionAssign, ActionLabel: "Queue an assignment", WorkItemID: id, UpdatedAt: updated}
}

// MakeBrief sorts the items and cuts them to most.
func MakeBrief(projectID string, c BriefCounts, idle int, items []BriefItem, most int, now time.Time) Brief {
	slices.SortStableFunc(items, func(a, b BriefItem) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.Title, b.Title)
	})
	if len(items) > most {
		items = items[:most]
	}
	b := Brief{ProjectID: projectID, Counts: c, Items: items, CreatedAt: now, Omitted: max(c.Things(idle)-len(items), 0),
		Status: "clear", Title: "Nothing waits", Detail: "Nothing needs the operator now."}
	if len(items) > 0 {
		b.Next = &items[0]
		b.Status, b.Title, b.Detail = "attention", "Something waits", items[0].Title
	}
	return b
}

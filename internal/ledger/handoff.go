package ledger

import (
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Handoff passes work on, to a role, an assignment or another work item.
type Handoff struct {
	ID                    string    `json:"id"`
	ProjectID             string    `json:"project_id"`
	WorkItemID            string    `json:"work_item_id"`
	SourceAssignmentID    string    `json:"source_assignment_id,omitempty"`
	SourceRunID           string    `json:"source_run_id,omitempty"`
	SourceChatSessionID   string    `json:"source_chat_session_id,omitempty"`
	SourceMessageID       string    `json:"source_message_id,omitempty"`
	FromRoleID            string    `json:"from_role_id,omitempty"`
	ToRoleID              string    `json:"to_role_id,omitempty"`
	TargetAssignmentID    string    `json:"target_assignment_id,omitempty"`
	TargetWorkItemID      string    `json:"target_work_item_id,omitempty"`
	Title                 string    `json:"title"`
	Body                  string    `json:"body"`
	RecommendedNextAction string    `json:"recommended_next_action,omitempty"`
	LinkedArtifactIDs     []string  `json:"linked_artifact_ids,omitempty"`
	LinkedMemoryIDs       []string  `json:"linked_memory_ids,omitempty"`
	ContextRefs           []string  `json:"context_refs,omitempty"`
	Status                string    `json:"status"`
	ProvenanceKind        string    `json:"provenance_kind,omitempty"`
	TrustLabel            string    `json:"trust_label,omitempty"`
	CreatedAt             time.Time `json:"created_at,omitzero"`
	UpdatedAt             time.Time `json:"updated_at,omitzero"`
	StatusChangedAt       time.Time `json:"status_changed_at,omitzero"`
}

// The statuses of a handoff. Any may follow any other.
const (
	HandoffOpen       = "open"
	HandoffAccepted   = "accepted"
	HandoffSuperseded = "superseded"
	HandoffDismissed  = "dismissed"
)

// HandoffStatuses are all of them.
var HandoffStatuses = []string{HandoffOpen, HandoffAccepted, HandoffSuperseded, HandoffDismissed}

// HandoffPatch is an edit; a nil field keeps.
type HandoffPatch struct {
	SourceAssignmentID    *string   `json:"source_assignment_id"`
	SourceRunID           *string   `json:"source_run_id"`
	SourceChatSessionID   *string   `json:"source_chat_session_id"`
	SourceMessageID       *string   `json:"source_message_id"`
	FromRoleID            *string   `json:"from_role_id"`
	ToRoleID              *string   `json:"to_role_id"`
	TargetAssignmentID    *string   `json:"target_assignment_id"`
	TargetWorkItemID      *string   `json:"target_work_item_id"`
	Title                 *string   `json:"title"`
	Body                  *string   `json:"body"`
	RecommendedNextAction *string   `json:"recommended_next_action"`
	LinkedArtifactIDs     *[]string `json:"linked_artifact_ids"`
	LinkedMemoryIDs       *[]string `json:"linked_memory_ids"`
	ContextRefs           *[]string `json:"context_refs"`
	Status                *string   `json:"status"`
	ProvenanceKind        *string   `json:"provenance_kind"`
	TrustLabel            *string   `json:"trust_label"`
}

// Apply lays the patch over a handoff.
func (p HandoffPatch) Apply(h Handoff) Handoff {
	set(&h.SourceAssignmentID, p.SourceAssignmentID)
	set(&h.SourceRunID, p.SourceRunID)
	set(&h.SourceChatSessionID, p.SourceChatSessionID)
	set(&h.SourceMessageID, p.SourceMessageID)
	set(&h.FromRoleID, p.FromRoleID)
	set(&h.ToRoleID, p.ToRoleID)
	set(&h.TargetAssignmentID, p.TargetAssignmentID)
	set(&h.TargetWorkItemID, p.TargetWorkItemID)
	set(&h.Title, p.Title)
	set(&h.Body, p.Body)
	set(&h.RecommendedNextAction, p.RecommendedNextAction)
	set(&h.Status, p.Status)
	set(&h.ProvenanceKind, p.ProvenanceKind)
	set(&h.TrustLabel, p.TrustLabel)
	setList(&h.LinkedArtifactIDs, p.LinkedArtifactIDs)
	setList(&h.LinkedMemoryIDs, p.LinkedMemoryIDs)
	setList(&h.ContextRefs, p.ContextRefs)
	return h
}

func setList(to *[]string, from *[]string) {
	if from != nil {
		*to = List(*from)
	}
}

// CleanHandoff makes a handoff canonical. References are the caller's to check.
func CleanHandoff(h Handoff) (Handoff, error) {
	for _, s := range []*string{&h.SourceAssignmentID, &h.SourceRunID, &h.SourceChatSessionID, &h.SourceMessageID, &h.FromRoleID, &h.ToRoleID,
		&h.TargetAssignmentID, &h.TargetWorkItemID, &h.Title, &h.Body, &h.RecommendedNextAction, &h.ProvenanceKind, &h.TrustLabel} {
		*s = Trim(*s)
	}
	h.Status = or(Trim(h.Status), HandoffOpen)
	h.LinkedArtifactIDs, h.LinkedMemoryIDs, h.ContextRefs = List(h.LinkedArtifactIDs), List(h.LinkedMemoryIDs), List(h.ContextRefs)
	if err := Required("title", h.Title); err != nil {
		return h, err
	}
	if err := Required("body", h.Body); err != nil {
		return h, err
	}
	if err := oneOf("status", h.Status, HandoffStatuses); err != nil {
		return h, err
	}
	for name, l := range map[string][]string{"linked_artifact_ids": h.LinkedArtifactIDs, "linked_memory_ids": h.LinkedMemoryIDs, "context_refs": h.ContextRefs} {
		if err := checkList(name, l); err != nil {
			return h, err
		}
	}
	return h, check(ref("id", h.ID), short("source_run_id", h.SourceRunID), short("source_chat_session_id", h.SourceChatSessionID),
		short("source_message_id", h.SourceMessageID), short("title", h.Title), body("body", h.Body),
		body("recommended_next_action", h.RecommendedNextAction), short("provenance_kind", h.ProvenanceKind), short("trust_label", h.TrustLabel))
}

// Edit gives a canonical handoff the place of an older one. Nothing changed keeps the
// revision; a changed status moves status_changed_at.
func (h Handoff) Edit(to Handoff, expected, now time.Time) (Handoff, error) {
	if err := CheckRevision("handoff", h.UpdatedAt, expected); err != nil {
		return h, err
	}
	to.ID, to.ProjectID, to.WorkItemID = h.ID, h.ProjectID, h.WorkItemID
	to.CreatedAt, to.UpdatedAt, to.StatusChangedAt = h.CreatedAt, h.UpdatedAt, h.StatusChangedAt
	if to.same(h) {
		return h, nil
	}
	to.UpdatedAt = Next(h.UpdatedAt, now)
	if to.Status != h.Status {
		to.StatusChangedAt = to.UpdatedAt
	}
	return to, nil
}

func (h Handoff) same(o Handoff) bool {
	flat := func(h Handoff) Handoff {
		h.LinkedArtifactIDs, h.LinkedMemoryIDs, h.ContextRefs = List(h.LinkedArtifactIDs), List(h.LinkedMemoryIDs), List(h.ContextRefs)
		return h
	}
	return reflect.DeepEqual(flat(h), flat(o))
}

// AcceptIntent is the one thing that an acceptance can mean.
const AcceptIntent = "accept_and_ensure_follow_up"

// Acceptance is an operator's decision to accept a handoff and to have it followed up.
type Acceptance struct {
	ProjectID, WorkItemID, HandoffID string
	ExpectedUpdatedAt                time.Time
	IdempotencyKey                   string
	Intent                           string
}

// The outcomes of an acceptance.
const (
	OutcomeCreated   = "created"
	OutcomeLinked    = "linked_existing"
	OutcomeSatisfied = "already_satisfied"
)

// MaxIdempotencyKey is in characters, not bytes.
const MaxIdempotencyKey = 128

// Clean makes the decision canonical.
func (a Acceptance) Clean() (Acceptance, error) {
	a.ProjectID, a.WorkItemID, a.HandoffID = Trim(a.ProjectID), Trim(a.WorkItemID), Trim(a.HandoffID)
	a.IdempotencyKey, a.Intent = Trim(a.IdempotencyKey), Trim(a.Intent)
	for _, f := range [][2]string{{"project_id", a.ProjectID}, {"work_item_id", a.WorkItemID}, {"handoff_id", a.HandoffID}, {"idempotency_key", a.IdempotencyKey}} {
		if err := Required(f[0], f[1]); err != nil {
			return a, err
		}
	}
	if a.ExpectedUpdatedAt.IsZero() {
		return a, invalid("expected_updated_at is required: repeat the updated_at that was read")
	}
	if utf8.RuneCountInString(a.IdempotencyKey) > MaxIdempotencyKey {
		return a, invalid("idempotency_key is longer than %d characters", MaxIdempotencyKey)
	}
	return a, oneOf("intent", a.Intent, []string{AcceptIntent})
}

// Acceptable refuses a handoff that cannot be accepted at this revision.
func (h Handoff) Acceptable(expected time.Time) error {
	if err := CheckRevision("handoff", h.UpdatedAt, expected); err != nil {
		return err
	}
	switch {
	case h.Status == HandoffDismissed || h.Status == HandoffSuperseded:
		return conflict("the handoff is %s", h.Status).WithHint("reopen it first if that was a mistake")
	case h.ToRoleID == "":
		return fault.New(fault.Invalid, "ledger", "the handoff names no to_role_id").WithHint("set the role that follows up, then accept")
	}
	return nil
}

// FollowUp is the assignment that an acceptance creates: queued, with the defaults of the
// role and the root of the item.
func (h Handoff) FollowUp(item WorkItem, role Role, id string, now time.Time) (Assignment, error) {
	kind := AgentAny
	mode := or(role.DefaultExecutionMode, ModePull)
	if mode == ModeManual {
		kind = AgentHuman
	}
	a, err := CleanAssignment(Assignment{ID: id, ProjectID: h.ProjectID, WorkItemID: item.ID, RoleID: role.ID, RootID: item.RootID,
		ExecutionMode: mode, DesiredAgent: DesiredAgent{kind, role.DefaultSkillIDs}})
	a.CreatedAt, a.UpdatedAt = now.UTC(), now.UTC()
	return a, err
}

// Fits refuses a linked assignment that is not for the handoff's role and target item.
func (h Handoff) Fits(a Assignment) error {
	if a.RoleID != h.ToRoleID {
		return conflict("the linked assignment is for another role than the handoff")
	}
	if h.TargetWorkItemID != "" && h.TargetWorkItemID != a.WorkItemID {
		return conflict("the linked assignment is of another work item than the handoff's target")
	}
	return nil
}

// Satisfied reports whether the handoff is already accepted and linked to a.
func (h Handoff) Satisfied(a Assignment) bool {
	return h.Status == HandoffAccepted && h.TargetAssignmentID == a.ID && h.TargetWorkItemID == a.WorkItemID
}

// Accept links the handoff to its follow-up.
func (h Handoff) Accept(a Assignment, now time.Time) Handoff {
	h.UpdatedAt = Next(h.UpdatedAt, now)
	if h.Status != HandoffAccepted {
		h.Status, h.StatusChangedAt = HandoffAccepted, h.UpdatedAt
	}
	h.TargetAssignmentID, h.TargetWorkItemID = a.ID, a.WorkItemID
	return h
}

// StillStands refuses the replay of an acceptance that a later decision undid.
func (h Handoff) StillStands(a Assignment) error {
	if h.Status != HandoffAccepted || h.TargetAssignmentID != a.ID || h.TargetWorkItemID != a.WorkItemID || h.ToRoleID != a.RoleID {
		return conflict("a later decision closed or relinked the handoff").WithHint("read the handoff and decide anew, with a new key")
	}
	return nil
}

package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// The statuses of an assignment.
const (
	Queued           = "queued"
	Claimed          = "claimed"
	Running          = "running"
	AwaitingApproval = "awaiting_approval"
	AwaitingReview   = "awaiting_review"
	Completed        = "completed"
	Failed           = "failed"
	Cancelled        = "cancelled"
)

// Statuses are all of them, in the order of a life.
var Statuses = []string{Queued, Claimed, Running, AwaitingApproval, AwaitingReview, Completed, Failed, Cancelled}

var (
	progress    = []string{Running, AwaitingApproval, AwaitingReview}
	completions = []string{Completed, Failed, Cancelled, AwaitingReview}
)

// Assignment is a work item, a role and the wish that it be carried out.
type Assignment struct {
	ID                string        `json:"id"`
	ProjectID         string        `json:"project_id"`
	WorkItemID        string        `json:"work_item_id"`
	RoleID            string        `json:"role_id"`
	RootID            string        `json:"root_id,omitempty"`
	ExecutionMode     string        `json:"execution_mode"`
	Status            string        `json:"status"`
	DesiredAgent      DesiredAgent  `json:"desired_agent"`
	ClaimedBy         string        `json:"claimed_by,omitempty"`
	Claim             *Claim        `json:"claim,omitempty"`
	ExecutionRef      *ExecutionRef `json:"execution_ref,omitempty"`
	ContextSnapshotID string        `json:"context_snapshot_id,omitempty"`
	CreatedAt         time.Time     `json:"created_at,omitzero"`
	UpdatedAt         time.Time     `json:"updated_at,omitzero"`
	StartedAt         time.Time     `json:"started_at,omitzero"`
	CompletedAt       time.Time     `json:"completed_at,omitzero"`
}

// DesiredAgent hints at who should claim.
type DesiredAgent struct {
	Kind     string   `json:"kind"`
	SkillIDs []string `json:"skill_ids,omitempty"`
}

// Claim is a reservation while it has an expiry, and the fence of later writes after.
// The id orders writers; it authenticates nobody.
type Claim struct {
	ID         string    `json:"id"`
	AcquiredAt time.Time `json:"acquired_at"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
}

// ExecutionRef names what a host runs. The ledger follows none of it.
type ExecutionRef struct {
	Kind             string `json:"kind,omitempty"`
	TaskID           string `json:"task_id,omitempty"`
	RunID            string `json:"run_id,omitempty"`
	SessionID        string `json:"session_id,omitempty"`
	TraceID          string `json:"trace_id,omitempty"`
	PendingApprovals int    `json:"pending_approvals,omitempty"`
}

// UnmarshalJSON takes an object only: the retired bare string is refused.
func (r *ExecutionRef) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if len(b) == 0 || b[0] != '{' {
		return invalid("execution_ref must be an object with kind, task_id, run_id, session_id, trace_id, pending_approvals; a bare string is not accepted")
	}
	type plain ExecutionRef
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return invalid("execution_ref must hold strings and a whole number pending_approvals")
	}
	*r = ExecutionRef(p)
	return nil
}

// CleanRef trims a reference; nil and an empty one mean "not given" and give nil.
func CleanRef(r *ExecutionRef) (*ExecutionRef, error) {
	if r == nil {
		return nil, nil
	}
	c := ExecutionRef{Trim(r.Kind), Trim(r.TaskID), Trim(r.RunID), Trim(r.SessionID), Trim(r.TraceID), max(r.PendingApprovals, 0)}
	if c == (ExecutionRef{}) {
		return nil, nil
	}
	return &c, check(short("execution_ref.kind", c.Kind), short("execution_ref.task_id", c.TaskID), short("execution_ref.run_id", c.RunID),
		short("execution_ref.session_id", c.SessionID), short("execution_ref.trace_id", c.TraceID))
}

// Terminal reports whether nothing may change any more.
func (a Assignment) Terminal() bool {
	return a.Status == Completed || a.Status == Failed || a.Status == Cancelled
}

// Expired reports whether the reservation has run out. At the instant of expiry it has.
func (a Assignment) Expired(now time.Time) bool {
	return a.Status == Claimed && a.Claim != nil && !a.Claim.ExpiresAt.After(now)
}

// CleanAssignment makes a new assignment canonical: queued, unclaimed. References are the
// caller's to check.
func CleanAssignment(a Assignment) (Assignment, error) {
	a.WorkItemID, a.RoleID, a.RootID = Trim(a.WorkItemID), Trim(a.RoleID), Trim(a.RootID)
	a.ExecutionMode = or(Trim(a.ExecutionMode), ModePull)
	a.DesiredAgent = a.DesiredAgent.clean()
	if err := Required("work_item_id", a.WorkItemID); err != nil {
		return a, err
	}
	if err := Required("role_id", a.RoleID); err != nil {
		return a, err
	}
	if err := oneOf("execution_mode", a.ExecutionMode, ExecutionModes); err != nil {
		return a, err
	}
	if err := checkList("skill_ids", a.DesiredAgent.SkillIDs); err != nil {
		return a, err
	}
	a.Status, a.Claim, a.ClaimedBy = Queued, nil, ""
	return a, check(ref("id", a.ID), ref("desired_agent_kind", a.DesiredAgent.Kind))
}

func (d DesiredAgent) clean() DesiredAgent {
	return DesiredAgent{or(Trim(d.Kind), AgentAny), List(d.SkillIDs)}
}

// Lease is the term of a claim: whole seconds, at least one. Nothing positive means the
// default of five minutes.
func Lease(ttl time.Duration) time.Duration {
	const most = time.Duration(1<<63-1) / time.Second * time.Second
	switch {
	case ttl <= 0:
		return DefaultLease
	case ttl > most-time.Second:
		return most
	}
	return (ttl + time.Second - 1) / time.Second * time.Second
}

// DefaultLease is the term of a claim without another wish.
const DefaultLease = 5 * time.Minute

func after(now time.Time, ttl time.Duration) time.Time {
	const far = 1 << 62 // nanoseconds since 1970 that a record may hold
	if now.UnixNano() > far-int64(ttl) || ttl > far {
		return time.Unix(0, far).UTC()
	}
	return now.Add(ttl).UTC()
}

// Acquire reserves a queued assignment for a worker.
func (a Assignment) Acquire(label, claimID string, now time.Time, ttl time.Duration) (Assignment, error) {
	label = Trim(label)
	if err := Required("claimed_by", label); err != nil {
		return a, err
	}
	if err := check(short("claimed_by", label)); err != nil {
		return a, err
	}
	if a.Status != Queued {
		return a, a.taken(now)
	}
	a.Status, a.ClaimedBy = Claimed, label
	a.UpdatedAt = Next(a.UpdatedAt, now)
	a.Claim = &Claim{ID: claimID, AcquiredAt: now.UTC(), ExpiresAt: after(now, ttl)}
	return a, nil
}

// taken says who holds an assignment and until when, so that a worker that lost can tell
// its own claim from another's.
func (a Assignment) taken(now time.Time) error {
	switch {
	case a.Status == Claimed && a.Claim == nil:
		return conflict("the assignment is held by %q for its host, without a lease", Clip(a.ClaimedBy)).WithHint("its host must release it")
	case a.Expired(now):
		return conflict("the assignment is held by %q whose claim %s expired at %s", Clip(a.ClaimedBy), a.Claim.ID, stamp(a.Claim.ExpiresAt)).
			WithHint("recover it with assignments.recover_claim once its resources are reconciled, then claim it")
	case a.Status == Claimed:
		return conflict("the assignment is claimed by %q until %s (claim %s)", Clip(a.ClaimedBy), stamp(a.Claim.ExpiresAt), a.Claim.ID).
			WithHint("take another one from assignments.next")
	case a.Terminal():
		return conflict("the assignment is %s since %s", a.Status, stamp(a.CompletedAt)).WithHint("take another one from assignments.next")
	}
	return conflict("the assignment is %s by %q", a.Status, Clip(a.ClaimedBy)).WithHint("take another one from assignments.next")
}

// fenced refuses a writer whose claim id is not the current one, or has expired.
func (a Assignment) fenced(claimID string, now time.Time) error {
	switch {
	case a.Terminal():
		return conflict("the assignment is %s since %s: the first end stands", a.Status, stamp(a.CompletedAt))
	case a.Status == Queued:
		return conflict("the assignment is queued: nobody holds it").WithHint("claim it with assignments.claim")
	case a.Claim == nil:
		return conflict("the assignment is held by %q for its host, without a lease", Clip(a.ClaimedBy)).WithHint("its host must release it")
	case a.Claim.ID != claimID:
		return conflict("this claim id is not the current one: %q holds the assignment", Clip(a.ClaimedBy)).WithHint("stop this work; read the assignment")
	case a.Expired(now):
		return conflict("the claim expired at %s", stamp(a.Claim.ExpiresAt)).WithHint("stop; an operator may recover it with assignments.recover_claim")
	}
	return nil
}

func (a Assignment) reserved(claimID string, now time.Time) error {
	if err := a.fenced(claimID, now); err != nil {
		return err
	}
	if a.Status != Claimed {
		return conflict("the assignment is %s: its reservation has ended with the start", a.Status)
	}
	return nil
}

// Renew moves the expiry of a live reservation, never backwards. It is no revision.
func (a Assignment) Renew(claimID string, now time.Time, ttl time.Duration) (Assignment, error) {
	if err := a.reserved(claimID, now); err != nil {
		return a, err
	}
	c := *a.Claim
	if until := after(now, ttl); until.After(c.ExpiresAt) {
		c.ExpiresAt = until
	}
	a.Claim = &c
	return a, nil
}

// Prepare records what a host made ready. It starts nothing.
func (a Assignment) Prepare(claimID string, r *ExecutionRef, contextID string, now time.Time) (Assignment, error) {
	r, contextID, err := preparation(r, contextID)
	if err != nil {
		return a, err
	}
	if err := a.reserved(claimID, now); err != nil {
		return a, err
	}
	return a.prepared(r, contextID, now), nil
}

func preparation(r *ExecutionRef, contextID string) (*ExecutionRef, string, error) {
	contextID = Trim(contextID)
	r, err := CleanRef(r)
	if err != nil {
		return nil, "", err
	}
	if r == nil && contextID == "" {
		return nil, "", invalid("prepare needs an execution_ref that is not empty, or a context_snapshot_id")
	}
	return r, contextID, check(short("context_snapshot_id", contextID))
}

func (a Assignment) prepared(r *ExecutionRef, contextID string, now time.Time) Assignment {
	if r != nil {
		a.ExecutionRef = r
	}
	if contextID != "" {
		a.ContextSnapshotID = contextID
	}
	a.UpdatedAt = Next(a.UpdatedAt, now)
	return a
}

// Release gives a reservation back: the assignment is as if nobody had claimed it.
func (a Assignment) Release(claimID string, now time.Time) (Assignment, error) {
	if err := a.reserved(claimID, now); err != nil {
		return a, err
	}
	return a.requeued(now), nil
}

func (a Assignment) requeued(now time.Time) Assignment {
	a.Status, a.ClaimedBy, a.Claim, a.ExecutionRef, a.ContextSnapshotID = Queued, "", nil, nil, ""
	a.StartedAt, a.CompletedAt = time.Time{}, time.Time{}
	a.UpdatedAt = Next(a.UpdatedAt, now)
	return a
}

// Recover gives back a reservation that has expired; work that started is out of reach.
func (a Assignment) Recover(claimID string, now time.Time) (Assignment, error) {
	switch {
	case a.Status != Claimed:
		return a, conflict("the assignment is %s: only an expired claim before the start can be recovered", a.Status)
	case a.Claim == nil:
		return a, conflict("the assignment is held by %q for its host, without a lease", Clip(a.ClaimedBy)).WithHint("its host must release it")
	case a.Claim.ID != claimID:
		return a, conflict("this claim id is not the current one").WithHint("read the assignment")
	case !a.Expired(now):
		return a, conflict("the claim of %q lasts until %s", Clip(a.ClaimedBy), stamp(a.Claim.ExpiresAt)).WithHint("wait until then")
	}
	return a.requeued(now), nil
}

// Progress moves work that was claimed to running, awaiting_approval or awaiting_review.
func (a Assignment) Progress(claimID, status string, r *ExecutionRef, now time.Time) (Assignment, error) {
	status, r, err := move(status, r, "", progress)
	if err != nil {
		return a, err
	}
	if err := a.fenced(claimID, now); err != nil {
		return a, err
	}
	return a.moved(status, r, now), nil
}

// Finish ends work that was claimed; awaiting_review is not an end.
func (a Assignment) Finish(claimID, status string, r *ExecutionRef, now time.Time) (Assignment, error) {
	status, r, err := move(status, r, Completed, completions)
	if err != nil {
		return a, err
	}
	if err := a.fenced(claimID, now); err != nil {
		return a, err
	}
	return a.moved(status, r, now), nil
}

func move(status string, r *ExecutionRef, fallback string, allowed []string) (string, *ExecutionRef, error) {
	status = or(Trim(status), fallback)
	if err := Required("status", status); err != nil {
		return "", nil, err
	}
	if err := oneOf("status", status, allowed); err != nil {
		return "", nil, err
	}
	r, err := CleanRef(r)
	return status, r, err
}

// moved leaves the reservation: its expiry goes, its id stays as the fence.
func (a Assignment) moved(status string, r *ExecutionRef, now time.Time) Assignment {
	a.UpdatedAt = Next(a.UpdatedAt, now)
	a.Status = status
	if a.StartedAt.IsZero() {
		a.StartedAt = a.UpdatedAt
	}
	if a.Terminal() {
		a.CompletedAt = a.UpdatedAt
	}
	if r != nil {
		a.ExecutionRef = r
	}
	if a.Claim != nil {
		c := *a.Claim
		c.ExpiresAt = time.Time{}
		a.Claim = &c
	}
	return a
}

// CheckClaim refuses a record whose claim contradicts its status; see the invariants of
// a stored claim. A claimed record without a claim is history of a host.
func (a Assignment) CheckClaim() error {
	if !slices.Contains(Statuses, a.Status) {
		return invalid("assignment %q has the unknown status %q", Clip(a.ID), Clip(a.Status))
	}
	c := a.Claim
	if c == nil {
		return nil
	}
	wrong := func(what string) error { return invalid("assignment %q: %s", Clip(a.ID), what) }
	switch {
	case a.Status == Queued:
		return wrong("a queued one has no claim")
	case c.ID == "" || c.AcquiredAt.IsZero():
		return wrong("a claim has an id and acquired_at")
	case Trim(a.ClaimedBy) == "":
		return wrong("a claim has a claimed_by")
	case Trim(c.ID) != c.ID || Trim(a.ClaimedBy) != a.ClaimedBy:
		return wrong("claim id and claimed_by have no blanks around them")
	case a.Status == Claimed && !c.ExpiresAt.After(c.AcquiredAt):
		return wrong("a claimed one expires after it was acquired")
	case a.Status != Claimed && !c.ExpiresAt.IsZero():
		return wrong("only a claimed one has an expiry")
	}
	return nil
}

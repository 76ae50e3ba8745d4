package ledgersql

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

// assignmentRow is a record with its claim and reference as flat columns.
type assignmentRow struct {
	ledger.Assignment
	claim  ledger.Claim
	ref    ledger.ExecutionRef
	demand int64
	open   bool
	rank   int
}

var assignments = table.New("ledger_assignment", []string{"project_id", "id"},
	[]string{"project_id", "id", "work_item_id", "role_id", "root_id", "execution_mode", "status", "agent_kind", "skill_ids", "claimed_by",
		"claim_id", "claim_acquired_at", "claim_expires_at", "ref_kind", "ref_task_id", "ref_run_id", "ref_session_id", "ref_trace_id", "ref_approvals",
		"context_snapshot_id", "created_at", "updated_at", "started_at", "completed_at", "demand", "is_open", "rank"},
	func(a *assignmentRow) []any {
		return []any{&a.ProjectID, &a.ID, &a.WorkItemID, &a.RoleID, &a.RootID, &a.ExecutionMode, &a.Status, &a.DesiredAgent.Kind, table.Pack(&a.DesiredAgent.SkillIDs), &a.ClaimedBy,
			&a.claim.ID, table.Nanos(&a.claim.AcquiredAt), table.Nanos(&a.claim.ExpiresAt), &a.ref.Kind, &a.ref.TaskID, &a.ref.RunID, &a.ref.SessionID, &a.ref.TraceID, &a.ref.PendingApprovals,
			&a.ContextSnapshotID, table.Nanos(&a.CreatedAt), table.Nanos(&a.UpdatedAt), table.Nanos(&a.StartedAt), table.Nanos(&a.CompletedAt), &a.demand, &a.open, &a.rank}
	})

// record puts the flat columns back into the record.
func (a assignmentRow) record() ledger.Assignment {
	if a.claim.ID != "" {
		c := a.claim
		a.Claim = &c
	}
	if a.ref != (ledger.ExecutionRef{}) {
		r := a.ref
		a.ExecutionRef = &r
	}
	return a.Assignment
}

func flat(a ledger.Assignment) assignmentRow {
	r := assignmentRow{Assignment: a}
	if a.Claim != nil {
		r.claim = *a.Claim
	}
	if a.ExecutionRef != nil {
		r.ref = *a.ExecutionRef
	}
	return r
}

func records(rows []assignmentRow, err error) ([]ledger.Assignment, error) {
	out := make([]ledger.Assignment, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out, err
}

// Assignment reads an assignment.
func Assignment(tx *store.Tx, project, id string) (ledger.Assignment, bool, error) {
	r, ok, err := assignments.Get(tx, project, id)
	return r.record(), ok, err
}

// AssignmentExists reports whether there is an assignment.
func AssignmentExists(tx *store.Tx, project, id string) (bool, error) {
	return exists(tx, "SELECT 1 FROM ledger_assignment WHERE project_id = ? AND id = ?", project, id)
}

// InsertAssignment adds an assignment. Its work item must exist.
func InsertAssignment(tx *store.Tx, a ledger.Assignment, item ledger.WorkItem) error {
	r := flat(a)
	r.open, r.rank = item.Open(), item.Rank()
	var err error
	if r.demand, err = demand(tx, a); err != nil {
		return err
	}
	return assignments.InsertDerived(tx, r, "proofs", "SELECT count(*) FROM ledger_evidence WHERE project_id = ? AND assignment_id = ? AND work_item_id = ?", a.ProjectID, a.ID, a.WorkItemID)
}

// UpdateAssignment writes a record that was read in the same transaction. When its
// coordination changed, use ReplaceAssignment.
func UpdateAssignment(tx *store.Tx, a ledger.Assignment) error {
	r := flat(a)
	_, err := tx.Exec(`UPDATE ledger_assignment SET status = ?, claimed_by = ?, claim_id = ?, claim_acquired_at = ?, claim_expires_at = ?,
		ref_kind = ?, ref_task_id = ?, ref_run_id = ?, ref_session_id = ?, ref_trace_id = ?, ref_approvals = ?, context_snapshot_id = ?,
		updated_at = ?, started_at = ?, completed_at = ? WHERE project_id = ? AND id = ?`,
		r.Status, r.ClaimedBy, r.claim.ID, table.NanosOf(r.claim.AcquiredAt), table.NanosOf(r.claim.ExpiresAt),
		r.ref.Kind, r.ref.TaskID, r.ref.RunID, r.ref.SessionID, r.ref.TraceID, r.ref.PendingApprovals, r.ContextSnapshotID,
		table.NanosOf(r.UpdatedAt), table.NanosOf(r.StartedAt), table.NanosOf(r.CompletedAt), r.ProjectID, r.ID)
	return err
}

// ReplaceAssignment writes every field of a record that exists.
func ReplaceAssignment(tx *store.Tx, a ledger.Assignment, item ledger.WorkItem) error {
	r := flat(a)
	r.open, r.rank = item.Open(), item.Rank()
	var err error
	if r.demand, err = demand(tx, a); err != nil {
		return err
	}
	_, err = assignments.Update(tx, r)
	return err
}

// DeleteAssignment removes an assignment with its artifacts and reviews. Evidence and
// handoffs stay and keep its id.
func DeleteAssignment(tx *store.Tx, project, id string) (bool, error) {
	for _, t := range []string{"ledger_artifact", "ledger_review"} {
		if _, err := tx.Exec("DELETE FROM "+t+" WHERE project_id = ? AND assignment_id = ?", project, id); err != nil {
			return false, err
		}
	}
	return assignments.Delete(tx, project, id)
}

// demand finds or makes the number of what a asks of a worker.
func demand(tx *store.Tx, a ledger.Assignment) (n int64, err error) {
	kind, skills := strings.ToLower(a.DesiredAgent.Kind), strings.Join(ledger.AskedSkills(a.DesiredAgent.SkillIDs), " ")
	err = tx.QueryRow("SELECT number FROM ledger_demand WHERE project_id = ? AND mode = ? AND agent_kind = ? AND skills = ?",
		a.ProjectID, a.ExecutionMode, kind, skills).Scan(&n)
	if !store.NotFound(err) {
		return n, err
	}
	r, err := tx.Exec("INSERT INTO ledger_demand (project_id, mode, agent_kind, skills) VALUES (?, ?, ?, ?)", a.ProjectID, a.ExecutionMode, kind, skills)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// AssignmentFilter narrows a list; empty fields do not.
type AssignmentFilter struct{ WorkItemID, Status, RoleID string }

// Assignments lists assignments, the most recently changed first.
func Assignments(tx *store.Tx, project string, f AssignmentFilter, page Page) ([]ledger.Assignment, error) {
	where, args := "WHERE project_id = ?", []any{project}
	for _, c := range [][2]string{{"work_item_id", f.WorkItemID}, {"status", f.Status}, {"role_id", f.RoleID}} {
		if c[1] != "" {
			where += " AND " + c[0] + " = ?"
			args = append(args, c[1])
		}
	}
	return records(assignments.List(tx, where+" ORDER BY updated_at DESC, id"+page.sql(), args...))
}

// ByStatus lists the most recent assignments of some statuses, of all items or of open
// ones only.
func ByStatus(tx *store.Tx, project string, statuses []string, openOnly bool, limit int) ([]ledger.Assignment, error) {
	var out []ledger.Assignment
	for _, s := range statuses {
		for _, open := range []int{1, 0} {
			if openOnly && open == 0 {
				continue
			}
			got, err := records(assignments.List(tx, "WHERE project_id = ? AND status = ? AND is_open = ? ORDER BY updated_at DESC, id LIMIT ?", project, s, open, limit))
			if err != nil {
				return nil, err
			}
			out = append(out, got...)
		}
	}
	return out, nil
}

// Expired lists claims that have run out, Held claimed work whose claim has not: each for
// itself, because many of the one kind must not push the other out of a bounded list.
func Expired(tx *store.Tx, project string, now time.Time, limit int) ([]ledger.Assignment, error) {
	return records(assignments.List(tx, `INDEXED BY ledger_assignment_expiry WHERE project_id = ? AND status = 'claimed' AND claim_id <> '' AND claim_expires_at <= ?
		ORDER BY updated_at DESC, id LIMIT ?`, project, table.NanosOf(now), limit))
}

// Held: see Expired. Work without a claim is its host's and never runs out.
func Held(tx *store.Tx, project string, now time.Time, limit int) ([]ledger.Assignment, error) {
	var out []ledger.Assignment
	for _, open := range []int{1, 0} {
		got, err := records(assignments.List(tx, `INDEXED BY ledger_assignment_status WHERE project_id = ? AND status = 'claimed' AND is_open = ?
			AND (claim_id = '' OR claim_expires_at > ?) ORDER BY updated_at DESC, id LIMIT ?`, project, open, table.NanosOf(now), limit))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// CountExpired counts claims that have run out.
func CountExpired(tx *store.Tx, project string, now time.Time) (n int, err error) {
	return n, tx.QueryRow("SELECT count(*) FROM ledger_assignment WHERE project_id = ? AND status = 'claimed' AND claim_id <> '' AND claim_expires_at <= ?",
		project, table.NanosOf(now)).Scan(&n)
}

// UnprovedAssignments lists completed assignments of open items that lack evidence.
func UnprovedAssignments(tx *store.Tx, project string, limit int) ([]ledger.Assignment, error) {
	return records(assignments.List(tx, `WHERE project_id = ? AND status = 'completed' AND proofs = 0 AND is_open = 1
		AND (SELECT loose FROM ledger_item_tally t WHERE t.project_id = ledger_assignment.project_id AND t.work_item_id = ledger_assignment.work_item_id) = 0
		ORDER BY updated_at DESC, id LIMIT ?`, project, limit))
}

// Offer is a search for compatible work.
type Offer struct {
	Match  func(mode, agentKind string, skills []string) bool
	Status string
	Limit  int // 0 means all
}

// Next lists work that matches. Queued work of open items comes by priority, then age;
// other statuses by the latest change.
func Next(tx *store.Tx, project string, o Offer) ([]ledger.Assignment, error) {
	rows, err := tx.Query("SELECT number, mode, agent_kind, skills FROM ledger_demand WHERE project_id = ? AND uses > 0", project)
	if err != nil {
		return nil, err
	}
	type demandRow struct {
		number             int64
		mode, kind, skills string
	}
	all, err := table.Collect(rows, func(d *demandRow) []any { return []any{&d.number, &d.mode, &d.kind, &d.skills} })
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, d := range all {
		if o.Match(d.mode, d.kind, strings.Fields(d.skills)) {
			numbers = append(numbers, d.number)
		}
	}
	if len(numbers) == 0 {
		return []ledger.Assignment{}, nil
	}
	if o.Status == ledger.Queued {
		return nextQueued(tx, numbers, o.Limit)
	}
	return nextOther(tx, project, numbers, o)
}

// nextOther reads other statuses than queued, by their index.
func nextOther(tx *store.Tx, project string, numbers []int64, o Offer) ([]ledger.Assignment, error) {
	wanted, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	var out []ledger.Assignment
	for _, open := range []int{1, 0} {
		got, err := records(assignments.List(tx, `INDEXED BY ledger_assignment_status WHERE project_id = ? AND status = ? AND is_open = ?
			AND demand IN (SELECT value FROM json_each(?)) ORDER BY updated_at DESC, id`+Page{Limit: o.Limit}.sql(), project, o.Status, open, string(wanted)))
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	slices.SortFunc(out, func(a, b ledger.Assignment) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	if o.Limit > 0 && len(out) > o.Limit {
		out = out[:o.Limit]
	}
	return out, nil
}

// nextQueued merges the heads of the matching queues: each is read in order from its
// index, so that a search for one costs the same however much is queued.
func nextQueued(tx *store.Tx, numbers []int64, limit int) ([]ledger.Assignment, error) {
	var rows []assignmentRow
	for _, n := range numbers {
		got, err := assignments.List(tx, "WHERE demand = ? AND status = 'queued' AND is_open = 1 ORDER BY rank, created_at, id"+Page{Limit: limit}.sql(), n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	slices.SortFunc(rows, func(a, b assignmentRow) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return records(rows, nil)
}

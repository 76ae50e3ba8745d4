package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

type itemRow struct {
	ledger.WorkItem
	open bool
	rank int
}

var items = table.New("ledger_work_item", []string{"project_id", "id"},
	[]string{"project_id", "id", "title", "brief", "status", "priority", "owner_role_id", "reviewer_role_ids", "root_id", "created_at", "updated_at", "is_open", "rank"},
	func(w *itemRow) []any {
		return []any{&w.ProjectID, &w.ID, &w.Title, &w.Brief, &w.Status, &w.Priority, &w.OwnerRoleID, table.Pack(&w.ReviewerRoleIDs), &w.RootID,
			table.Nanos(&w.CreatedAt), table.Nanos(&w.UpdatedAt), &w.open, &w.rank}
	})

func plainItems(rows []itemRow) []ledger.WorkItem {
	out := make([]ledger.WorkItem, len(rows))
	for i, r := range rows {
		out[i] = r.WorkItem
	}
	return out
}

// WorkItem reads a work item.
func WorkItem(tx *store.Tx, project, id string) (ledger.WorkItem, bool, error) {
	r, ok, err := items.Get(tx, project, id)
	return r.WorkItem, ok, err
}

// WorkItems lists work items, the most recently changed first.
func WorkItems(tx *store.Tx, project string, page Page) ([]ledger.WorkItem, error) {
	rows, err := items.List(tx, "WHERE project_id = ? ORDER BY updated_at DESC, id"+page.sql(), project)
	return plainItems(rows), err
}

// PutWorkItem inserts or replaces a work item.
func PutWorkItem(tx *store.Tx, w ledger.WorkItem) error {
	return items.Put(tx, itemRow{w, w.Open(), w.Rank()})
}

// handoffsOfItem are the ids of the handoffs that go with a work item: those on it, those
// towards it, and those towards an assignment of it. ?1 is the project, ?2 the item. Each
// part has an index of its own.
const handoffsOfItem = `(SELECT id FROM ledger_handoff WHERE project_id = ?1 AND work_item_id = ?2
	UNION ALL SELECT id FROM ledger_handoff WHERE project_id = ?1 AND target_work_item_id = ?2 AND target_work_item_id <> ''
	UNION ALL SELECT h.id FROM ledger_assignment a CROSS JOIN ledger_handoff h ON h.project_id = ?1 AND h.target_assignment_id = a.id AND h.target_assignment_id <> ''
		WHERE a.project_id = ?1 AND a.work_item_id = ?2)`

// DeleteWorkItem removes a work item with everything under it and the handoffs that lead
// to it, and finds out anew which reviews of other items these resolved.
func DeleteWorkItem(tx *store.Tx, project, id string) (bool, error) {
	rows, err := tx.Query("SELECT DISTINCT artifact_id FROM ledger_handoff_link INDEXED BY ledger_handoff_link_handoff WHERE project_id = ?1 AND handoff_id IN "+handoffsOfItem, project, id)
	if err != nil {
		return false, err
	}
	reviews, err := table.Collect(rows, func(s *string) []any { return []any{s} })
	if err != nil {
		return false, err
	}
	there, err := deleteItem(tx, project, id)
	if err != nil || !there {
		return false, err
	}
	return true, RefreshFollowUps(tx, project, reviews)
}

func deleteItem(tx *store.Tx, project, id string) (bool, error) {
	if _, err := tx.Exec("DELETE FROM ledger_handoff WHERE project_id = ?1 AND id IN "+handoffsOfItem, project, id); err != nil {
		return false, err
	}
	if _, err := tx.Exec("DELETE FROM ledger_item_tally WHERE project_id = ? AND work_item_id = ?", project, id); err != nil {
		return false, err
	}
	return items.Delete(tx, project, id)
}

// Tally reads the counters of a work item.
func Tally(tx *store.Tx, project, item string) (overview.Tally, error) {
	t := overview.Tally{Status: map[string]int{}}
	n := make([]int, len(ledger.Statuses))
	into := make([]any, 0, len(n)+4)
	for i := range n {
		into = append(into, &n[i])
	}
	into = append(into, &t.Unproved, &t.Loose, &t.Handoffs, &t.FollowUps)
	err := tx.QueryRow(`SELECT queued, claimed, running, awaiting_approval, awaiting_review, completed, failed, cancelled,
		unproved, loose, handoffs, followups FROM ledger_item_tally WHERE project_id = ? AND work_item_id = ?`, project, item).Scan(into...)
	for i, s := range ledger.Statuses {
		t.Status[s] = n[i]
	}
	return t, err
}

// Unfinished reads the names behind a tally, at most limit of each kind.
func Unfinished(tx *store.Tx, project, item string, limit int) (u overview.Unfinished, err error) {
	text := func(s *string) []any { return []any{s} }
	rows, err := tx.Query("SELECT id FROM ledger_assignment WHERE project_id = ? AND work_item_id = ? AND status = 'completed' AND proofs = 0 ORDER BY updated_at DESC, id LIMIT ?",
		project, item, limit)
	if err != nil {
		return u, err
	}
	if u.Assignments, err = table.Collect(rows, text); err != nil {
		return u, err
	}
	if rows, err = tx.Query("SELECT id FROM ledger_handoff WHERE project_id = ? AND work_item_id = ? AND status = 'open' ORDER BY updated_at DESC, id LIMIT ?",
		project, item, limit); err != nil {
		return u, err
	}
	if u.Handoffs, err = table.Collect(rows, text); err != nil {
		return u, err
	}
	u.Reviews, err = plainReviews(reviews.List(tx, "WHERE project_id = ? AND work_item_id = ? AND unresolved = 1 ORDER BY updated_at DESC, id LIMIT ?", project, item, limit))
	return u, err
}

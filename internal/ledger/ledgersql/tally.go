package ledgersql

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

// ProjectTally reads the counters of a project.
func ProjectTally(tx *store.Tx, project string) (overview.ProjectTally, error) {
	t := overview.ProjectTally{All: map[string]int{}, Open: map[string]int{}}
	all, open := make([]int, len(ledger.Statuses)), make([]int, len(ledger.Statuses))
	into := []any{&t.Items, &t.OpenItems, &t.Missing, &t.Handoffs, &t.FollowUps, &t.Ready, &t.Idle}
	for i := range all {
		into = append(into, &all[i])
	}
	for i := range open {
		into = append(into, &open[i])
	}
	err := tx.QueryRow(`SELECT items, open_items, missing, handoffs, followups, ready, idle,
		all_queued, all_claimed, all_running, all_awaiting_approval, all_awaiting_review, all_completed, all_failed, all_cancelled,
		queued, claimed, running, awaiting_approval, awaiting_review, completed, failed, cancelled
		FROM ledger_project_tally WHERE project_id = ?`, project).Scan(into...)
	for i, s := range ledger.Statuses {
		t.All[s], t.Open[s] = all[i], open[i]
	}
	return t, err
}

// ItemNote is a work item as a summary needs it.
type ItemNote struct {
	ID, Title string
	UpdatedAt time.Time
}

// ReadyItems lists open items that are ready to close, IdleItems open ones without any
// assignment, the most recently changed first.
func ReadyItems(tx *store.Tx, project string, limit int) ([]ItemNote, error) {
	return notes(tx, "t.ready = 1", project, limit)
}

// IdleItems: see ReadyItems.
func IdleItems(tx *store.Tx, project string, limit int) ([]ItemNote, error) {
	return notes(tx, "t.idle = 1", project, limit)
}

func notes(tx *store.Tx, which, project string, limit int) ([]ItemNote, error) {
	rows, err := tx.Query(`SELECT w.id, w.title, w.updated_at FROM ledger_item_tally t JOIN ledger_work_item w ON w.project_id = t.project_id AND w.id = t.work_item_id
		WHERE t.project_id = ? AND `+which+` ORDER BY t.touched DESC, t.work_item_id LIMIT ?`, project, limit)
	if err != nil {
		return nil, err
	}
	return table.Collect(rows, func(n *ItemNote) []any { return []any{&n.ID, &n.Title, table.Nanos(&n.UpdatedAt)} })
}

// Titles reads the titles of work items and the names of roles, those that exist.
func Titles(tx *store.Tx, project string, items, roles []string) (titles, names map[string]string, err error) {
	read := func(query string, ids []string) (map[string]string, error) {
		out := make(map[string]string, len(ids))
		for _, id := range ids {
			if _, known := out[id]; known || id == "" {
				continue
			}
			var text string
			if err := tx.QueryRow(query, project, id).Scan(&text); err != nil && !store.NotFound(err) {
				return nil, err
			}
			out[id] = text
		}
		return out, nil
	}
	if titles, err = read("SELECT title FROM ledger_work_item WHERE project_id = ? AND id = ?", items); err != nil {
		return nil, nil, err
	}
	names, err = read("SELECT name FROM ledger_role WHERE project_id = ? AND id = ?", roles)
	return titles, names, err
}

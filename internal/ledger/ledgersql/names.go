package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

// Name is a record as a directory shows it.
type Name struct{ ProjectID, ID, Title string }

// Kinds are the records that have a name, in the order of a directory.
var Kinds = []string{"project", "work_item", "assignment", "memory_candidate"}

var nameQueries = map[string]string{
	"project":          "SELECT id, id, name FROM ledger_project ORDER BY id",
	"work_item":        "SELECT project_id, id, title FROM ledger_work_item ORDER BY project_id, id",
	"assignment":       "SELECT project_id, id, '' FROM ledger_assignment ORDER BY project_id, id",
	"memory_candidate": "SELECT project_id, id, title FROM ledger_candidate ORDER BY project_id, id",
}

// Names lists the records of a kind, of all projects.
func Names(tx *store.Tx, kind string, page Page) ([]Name, error) {
	rows, err := tx.Query(nameQueries[kind] + page.sql())
	if err != nil {
		return nil, err
	}
	return table.Collect(rows, func(n *Name) []any { return []any{&n.ProjectID, &n.ID, &n.Title} })
}

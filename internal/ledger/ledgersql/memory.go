package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var memories = table.New("ledger_memory", key,
	[]string{"project_id", "id", "title", "body", "trust_label", "source_kind", "source_id", "enabled", "created_at", "updated_at"},
	func(m *ledger.MemoryEntry) []any {
		return []any{&m.ProjectID, &m.ID, &m.Title, &m.Body, &m.TrustLabel, &m.SourceKind, &m.SourceID, &m.Enabled, table.Nanos(&m.CreatedAt), table.Nanos(&m.UpdatedAt)}
	})

// Memory reads an accepted entry.
func Memory(tx *store.Tx, project, id string) (ledger.MemoryEntry, bool, error) {
	return memories.Get(tx, project, id)
}

// Memories lists entries, enabled ones first, then the most recently changed.
func Memories(tx *store.Tx, project string, disabledToo bool, page Page) ([]ledger.MemoryEntry, error) {
	tail := "WHERE project_id = ?"
	if !disabledToo {
		tail += " AND enabled = 1"
	}
	return memories.List(tx, tail+" ORDER BY enabled DESC, updated_at DESC, title, id"+page.sql(), project)
}

// PutMemory inserts or replaces an entry.
func PutMemory(tx *store.Tx, m ledger.MemoryEntry) error { return memories.Put(tx, m) }

// DeleteMemory removes an entry.
func DeleteMemory(tx *store.Tx, project, id string) (bool, error) {
	return memories.Delete(tx, project, id)
}

// CountMemory counts entries.
func CountMemory(tx *store.Tx, project string) (saved, enabled int, err error) {
	err = tx.QueryRow("SELECT count(*), coalesce(sum(enabled), 0) FROM ledger_memory WHERE project_id = ?", project).Scan(&saved, &enabled)
	return saved, enabled, err
}

var candidates = table.New("ledger_candidate", key,
	[]string{"project_id", "id", "title", "body", "suggested_kind", "suggested_trust_label", "suggested_source_kind", "suggested_source_id", "source_refs", "status",
		"status_reason", "promoted_memory_id", "created_at", "updated_at"},
	func(c *ledger.MemoryCandidate) []any {
		return []any{&c.ProjectID, &c.ID, &c.Title, &c.Body, &c.SuggestedKind, &c.SuggestedTrustLabel, &c.SuggestedSourceKind, &c.SuggestedSourceID, table.Pack(&c.SourceRefs),
			&c.Status, &c.StatusReason, &c.PromotedMemoryID, table.Nanos(&c.CreatedAt), table.Nanos(&c.UpdatedAt)}
	})

// Candidate reads a memory candidate.
func Candidate(tx *store.Tx, project, id string) (ledger.MemoryCandidate, bool, error) {
	return candidates.Get(tx, project, id)
}

// Candidates lists candidates, of one status or of all: pending, promoted, rejected, then
// the most recently changed.
func Candidates(tx *store.Tx, project, status string, page Page) ([]ledger.MemoryCandidate, error) {
	tail, args := "WHERE project_id = ?", []any{project}
	if status != "" {
		tail += " AND status = ?"
		args = append(args, status)
	}
	return candidates.List(tx, tail+" ORDER BY status, updated_at DESC, title, id"+page.sql(), args...)
}

// PutCandidate inserts or replaces a candidate.
func PutCandidate(tx *store.Tx, c ledger.MemoryCandidate) error { return candidates.Put(tx, c) }

// DeleteCandidate removes a candidate.
func DeleteCandidate(tx *store.Tx, project, id string) (bool, error) {
	return candidates.Delete(tx, project, id)
}

// CountCandidates counts candidates by status.
func CountCandidates(tx *store.Tx, project string) (map[string]int, error) {
	return countBy(tx, "SELECT status, count(*) FROM ledger_candidate WHERE project_id = ? GROUP BY status", project)
}

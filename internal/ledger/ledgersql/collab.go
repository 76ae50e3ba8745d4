package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var key = []string{"project_id", "id"}

var artifacts = table.New("ledger_artifact", key,
	[]string{"project_id", "id", "work_item_id", "assignment_id", "kind", "title", "body", "author_role_id", "provenance_kind", "trust_label", "created_at", "updated_at"},
	func(a *ledger.Artifact) []any {
		return []any{&a.ProjectID, &a.ID, &a.WorkItemID, &a.AssignmentID, &a.Kind, &a.Title, &a.Body, &a.AuthorRoleID, &a.ProvenanceKind, &a.TrustLabel,
			table.Nanos(&a.CreatedAt), table.Nanos(&a.UpdatedAt)}
	})

// InsertArtifact adds an artifact.
func InsertArtifact(tx *store.Tx, a ledger.Artifact) error { return artifacts.Insert(tx, a) }

// Artifact reads an artifact of a work item.
func Artifact(tx *store.Tx, project, item, id string) (ledger.Artifact, bool, error) {
	return artifacts.First(tx, "WHERE project_id = ? AND id = ? AND work_item_id = ?", project, id, item)
}

// Artifacts lists the artifacts of a work item, the oldest first.
func Artifacts(tx *store.Tx, project, item string, page Page) ([]ledger.Artifact, error) {
	return artifacts.List(tx, "WHERE project_id = ? AND work_item_id = ? ORDER BY created_at, id"+page.sql(), project, item)
}

var evidence = table.New("ledger_evidence", key,
	[]string{"project_id", "id", "work_item_id", "assignment_id", "title", "body", "locator", "source_kind", "external_id", "provider", "trust_label", "created_at", "updated_at"},
	func(e *ledger.Evidence) []any {
		return []any{&e.ProjectID, &e.ID, &e.WorkItemID, &e.AssignmentID, &e.Title, &e.Body, &e.Locator, &e.SourceKind, &e.ExternalID, &e.Provider, &e.TrustLabel,
			table.Nanos(&e.CreatedAt), table.Nanos(&e.UpdatedAt)}
	})

// InsertEvidence adds evidence.
func InsertEvidence(tx *store.Tx, e ledger.Evidence) error { return evidence.Insert(tx, e) }

// Evidence reads a piece of evidence of a work item.
func Evidence(tx *store.Tx, project, item, id string) (ledger.Evidence, bool, error) {
	return evidence.First(tx, "WHERE project_id = ? AND id = ? AND work_item_id = ?", project, id, item)
}

// EvidenceOf lists the evidence of a work item, the newest first.
func EvidenceOf(tx *store.Tx, project, item string, page Page) ([]ledger.Evidence, error) {
	return evidence.List(tx, "WHERE project_id = ? AND work_item_id = ? ORDER BY updated_at DESC, id"+page.sql(), project, item)
}

type reviewRow struct {
	ledger.Review
	unresolved bool
}

var reviews = table.New("ledger_review", key,
	[]string{"project_id", "id", "work_item_id", "assignment_id", "reviewer_role_id", "title", "body", "verdict", "risk", "status", "created_at", "updated_at", "unresolved"},
	func(r *reviewRow) []any {
		return []any{&r.ProjectID, &r.ID, &r.WorkItemID, &r.AssignmentID, &r.ReviewerRoleID, &r.Title, &r.Body, &r.Verdict, &r.Risk, &r.Status,
			table.Nanos(&r.CreatedAt), table.Nanos(&r.UpdatedAt), &r.unresolved}
	})

func plainReviews(rows []reviewRow, err error) ([]ledger.Review, error) {
	out := make([]ledger.Review, len(rows))
	for i, r := range rows {
		out[i] = r.Review
	}
	return out, err
}

// InsertReview adds a review; follow-up that it asks for counts as unresolved until
// RefreshFollowUps finds it finished.
func InsertReview(tx *store.Tx, r ledger.Review) error {
	if err := reviews.Insert(tx, reviewRow{r, r.AsksFollowUp()}); err != nil || !r.AsksFollowUp() {
		return err
	}
	return RefreshFollowUps(tx, r.ProjectID, []string{r.ID})
}

// Review reads a review of a work item.
func Review(tx *store.Tx, project, item, id string) (ledger.Review, bool, error) {
	r, ok, err := reviews.First(tx, "WHERE project_id = ? AND id = ? AND work_item_id = ?", project, id, item)
	return r.Review, ok, err
}

// Reviews lists the reviews of a work item, the newest first.
func Reviews(tx *store.Tx, project, item string, page Page) ([]ledger.Review, error) {
	return plainReviews(reviews.List(tx, "WHERE project_id = ? AND work_item_id = ? ORDER BY updated_at DESC, id"+page.sql(), project, item))
}

// UnresolvedReviews lists reviews of open items that wait for follow-up.
func UnresolvedReviews(tx *store.Tx, project string, limit int) ([]ledger.Review, error) {
	return plainReviews(reviews.List(tx, "WHERE project_id = ? AND unresolved = 1 AND "+ofOpenItem("ledger_review")+" ORDER BY updated_at DESC, id LIMIT ?", project, limit))
}

func ofOpenItem(table string) string {
	return "(SELECT is_open FROM ledger_item_tally t WHERE t.project_id = " + table + ".project_id AND t.work_item_id = " + table + ".work_item_id) = 1"
}

// RefreshFollowUps finds out anew whether reviews are unresolved. One is resolved when a
// linked handoff's target assignment is completed, wherever that is, or when no linked
// handoff has a target and one of them was dismissed or superseded.
func RefreshFollowUps(tx *store.Tx, project string, ids []string) error {
	for _, id := range ids {
		if _, err := tx.Exec(`UPDATE ledger_review SET unresolved = CASE
			WHEN verdict NOT IN ('changes_requested', 'blocked') THEN 0
			WHEN EXISTS (SELECT 1 FROM ledger_handoff_link l
				JOIN ledger_handoff h ON h.project_id = l.project_id AND h.id = l.handoff_id
				JOIN ledger_assignment a ON a.project_id = h.project_id AND a.id = h.target_assignment_id
				WHERE l.project_id = ?1 AND l.artifact_id = ?2 AND a.status = 'completed') THEN 0
			WHEN EXISTS (SELECT 1 FROM ledger_handoff_link l JOIN ledger_handoff h ON h.project_id = l.project_id AND h.id = l.handoff_id
				WHERE l.project_id = ?1 AND l.artifact_id = ?2 AND h.target_assignment_id <> '') THEN 1
			WHEN EXISTS (SELECT 1 FROM ledger_handoff_link l JOIN ledger_handoff h ON h.project_id = l.project_id AND h.id = l.handoff_id
				WHERE l.project_id = ?1 AND l.artifact_id = ?2 AND h.status IN ('dismissed', 'superseded')) THEN 0
			ELSE 1 END
			WHERE project_id = ?1 AND id = ?2`, project, id); err != nil {
			return err
		}
	}
	return nil
}

// FollowedUpBy lists the reviews whose follow-up an assignment is.
func FollowedUpBy(tx *store.Tx, project, assignment string) ([]string, error) {
	rows, err := tx.Query(`SELECT DISTINCT l.artifact_id FROM ledger_handoff h JOIN ledger_handoff_link l ON l.project_id = h.project_id AND l.handoff_id = h.id
		WHERE h.project_id = ? AND h.target_assignment_id = ?`, project, assignment)
	if err != nil {
		return nil, err
	}
	return table.Collect(rows, func(s *string) []any { return []any{s} })
}

// CountReviews counts the reviews of a project by verdict.
func CountReviews(tx *store.Tx, project string) (map[string]int, error) {
	return countBy(tx, "SELECT verdict, count(*) FROM ledger_review WHERE project_id = ? GROUP BY verdict", project)
}

func countBy(tx *store.Tx, query string, args ...any) (map[string]int, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	type pair struct {
		name string
		n    int
	}
	all, err := table.Collect(rows, func(p *pair) []any { return []any{&p.name, &p.n} })
	out := make(map[string]int, len(all))
	for _, p := range all {
		out[p.name] = p.n
	}
	return out, err
}

var handoffs = table.New("ledger_handoff", key,
	[]string{"project_id", "id", "work_item_id", "source_assignment_id", "source_run_id", "source_chat_session_id", "source_message_id", "from_role_id", "to_role_id",
		"target_assignment_id", "target_work_item_id", "title", "body", "recommended_next_action", "linked_artifact_ids", "linked_memory_ids", "context_refs",
		"status", "provenance_kind", "trust_label", "created_at", "updated_at", "status_changed_at"},
	func(h *ledger.Handoff) []any {
		return []any{&h.ProjectID, &h.ID, &h.WorkItemID, &h.SourceAssignmentID, &h.SourceRunID, &h.SourceChatSessionID, &h.SourceMessageID, &h.FromRoleID, &h.ToRoleID,
			&h.TargetAssignmentID, &h.TargetWorkItemID, &h.Title, &h.Body, &h.RecommendedNextAction, table.Pack(&h.LinkedArtifactIDs), table.Pack(&h.LinkedMemoryIDs), table.Pack(&h.ContextRefs),
			&h.Status, &h.ProvenanceKind, &h.TrustLabel, table.Nanos(&h.CreatedAt), table.Nanos(&h.UpdatedAt), table.Nanos(&h.StatusChangedAt)}
	})

// Handoff reads a handoff of a work item.
func Handoff(tx *store.Tx, project, item, id string) (ledger.Handoff, bool, error) {
	return handoffs.First(tx, "WHERE project_id = ? AND id = ? AND work_item_id = ?", project, id, item)
}

// HandoffByID reads a handoff of any work item.
func HandoffByID(tx *store.Tx, project, id string) (ledger.Handoff, bool, error) {
	return handoffs.Get(tx, project, id)
}

// Handoffs lists the handoffs of a work item, the most recently changed first.
func Handoffs(tx *store.Tx, project, item string, page Page) ([]ledger.Handoff, error) {
	return handoffs.List(tx, "WHERE project_id = ? AND work_item_id = ? ORDER BY updated_at DESC, id"+page.sql(), project, item)
}

// OpenHandoffs lists open handoffs of open items.
func OpenHandoffs(tx *store.Tx, project string, limit int) ([]ledger.Handoff, error) {
	return handoffs.List(tx, "WHERE project_id = ? AND status = 'open' AND "+ofOpenItem("ledger_handoff")+" ORDER BY updated_at DESC, id LIMIT ?", project, limit)
}

// CountHandoffs counts the handoffs of a project by status.
func CountHandoffs(tx *store.Tx, project string) (map[string]int, error) {
	return countBy(tx, "SELECT status, count(*) FROM ledger_handoff WHERE project_id = ? GROUP BY status", project)
}

// PutHandoff inserts or replaces a handoff and finds out anew which reviews it resolves.
func PutHandoff(tx *store.Tx, h ledger.Handoff) error {
	before, there, err := handoffs.Get(tx, h.ProjectID, h.ID)
	if err != nil {
		return err
	}
	if err := handoffs.Put(tx, h); err != nil {
		return err
	}
	if there {
		if _, err := tx.Exec("DELETE FROM ledger_handoff_link WHERE project_id = ? AND handoff_id = ?", h.ProjectID, h.ID); err != nil {
			return err
		}
	}
	for _, id := range h.LinkedArtifactIDs {
		if _, err := tx.Exec("INSERT INTO ledger_handoff_link (project_id, artifact_id, handoff_id) VALUES (?, ?, ?)", h.ProjectID, id, h.ID); err != nil {
			return err
		}
	}
	return RefreshFollowUps(tx, h.ProjectID, ledger.List(append(append([]string{}, before.LinkedArtifactIDs...), h.LinkedArtifactIDs...)))
}

// DeleteHandoff removes a handoff.
func DeleteHandoff(tx *store.Tx, h ledger.Handoff) error {
	if _, err := handoffs.Delete(tx, h.ProjectID, h.ID); err != nil {
		return err
	}
	return RefreshFollowUps(tx, h.ProjectID, h.LinkedArtifactIDs)
}

var receipts = table.New("ledger_receipt", []string{"project_id", "operation", "idempotency_key"},
	[]string{"project_id", "operation", "idempotency_key", "fingerprint", "outcome", "handoff_id", "assignment_id", "created_at"},
	func(r *ledger.Receipt) []any {
		return []any{&r.ProjectID, &r.Operation, &r.IdempotencyKey, &r.Fingerprint, &r.Outcome, &r.HandoffID, &r.AssignmentID, table.Nanos(&r.CreatedAt)}
	})

// FindReceipt looks for the answer to a command.
func FindReceipt(tx *store.Tx, project, operation, key string) (ledger.Receipt, bool, error) {
	return receipts.Get(tx, project, operation, key)
}

// InsertReceipt keeps the answer to a command.
func InsertReceipt(tx *store.Tx, r ledger.Receipt) error { return receipts.Insert(tx, r) }

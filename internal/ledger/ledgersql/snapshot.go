package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

const byKey = "ORDER BY project_id, id"

// Dump reads every record, in the order of their ids.
func Dump(tx *store.Tx) (s ledger.Snapshot, err error) {
	if s.Projects, err = projects.List(tx, "ORDER BY id"); err != nil {
		return s, err
	}
	for i := range s.Projects {
		if err := fill(tx, &s.Projects[i]); err != nil {
			return s, err
		}
	}
	if s.ProjectSkills, err = skills.List(tx, byKey); err != nil {
		return s, err
	}
	if s.Roles, err = roles.List(tx, byKey); err != nil {
		return s, err
	}
	all, err := items.List(tx, byKey)
	if err != nil {
		return s, err
	}
	s.WorkItems = plainItems(all)
	if s.Assignments, err = records(assignments.List(tx, byKey)); err != nil {
		return s, err
	}
	if s.Artifacts, err = artifacts.List(tx, byKey); err != nil {
		return s, err
	}
	if s.Evidence, err = evidence.List(tx, byKey); err != nil {
		return s, err
	}
	if s.Reviews, err = plainReviews(reviews.List(tx, byKey)); err != nil {
		return s, err
	}
	if s.Handoffs, err = handoffs.List(tx, byKey); err != nil {
		return s, err
	}
	if s.MemoryEntries, err = memories.List(tx, byKey); err != nil {
		return s, err
	}
	if s.MemoryCandidates, err = candidates.List(tx, byKey); err != nil {
		return s, err
	}
	if s.CommandReceipts, err = receipts.List(tx, "ORDER BY project_id, operation, idempotency_key"); err != nil {
		return s, err
	}
	if s.AssistantProposals, err = proposals.List(tx, "ORDER BY id"); err != nil {
		return s, err
	}
	for i := range s.AssistantProposals {
		if err := withAttempts(tx, &s.AssistantProposals[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// each runs put for every record until one fails.
func each[T any](list []T, put func(T) error) error {
	for _, v := range list {
		if err := put(v); err != nil {
			return err
		}
	}
	return nil
}

// Restore inserts or replaces the records of a snapshot that was checked. Artifacts,
// evidence and reviews that exist stay as they are; nothing is deleted.
func Restore(tx *store.Tx, s ledger.Snapshot) error {
	steps := []func() error{
		func() error { return each(s.Projects, func(v ledger.Project) error { return PutProject(tx, v) }) },
		func() error { return each(s.ProjectSkills, func(v ledger.Skill) error { return PutSkill(tx, v) }) },
		func() error { return each(s.Roles, func(v ledger.Role) error { return PutRole(tx, v) }) },
		func() error { return each(s.WorkItems, func(v ledger.WorkItem) error { return PutWorkItem(tx, v) }) },
		func() error {
			return each(s.Assignments, func(v ledger.Assignment) error { return putAssignment(tx, v) })
		},
		func() error {
			return each(s.Artifacts, func(v ledger.Artifact) error { return addRow(tx, artifacts, v, v.ProjectID, v.ID) })
		},
		func() error {
			return each(s.Evidence, func(v ledger.Evidence) error { return addRow(tx, evidence, v, v.ProjectID, v.ID) })
		},
		func() error {
			return each(s.Reviews, func(v ledger.Review) error {
				return addRow(tx, reviews, reviewRow{v, v.AsksFollowUp()}, v.ProjectID, v.ID)
			})
		},
		func() error { return each(s.Handoffs, func(v ledger.Handoff) error { return PutHandoff(tx, v) }) },
		func() error {
			return each(s.MemoryEntries, func(v ledger.MemoryEntry) error { return PutMemory(tx, v) })
		},
		func() error {
			return each(s.MemoryCandidates, func(v ledger.MemoryCandidate) error { return PutCandidate(tx, v) })
		},
		func() error {
			return each(s.AssistantProposals, func(v ledger.ProposalRecord) error { return PutProposal(tx, v) })
		},
		func() error {
			return each(s.CommandReceipts, func(v ledger.Receipt) error { return receipts.Put(tx, v) })
		},
		func() error {
			return each(s.Reviews, func(v ledger.Review) error { return RefreshFollowUps(tx, v.ProjectID, []string{v.ID}) })
		},
	}
	return each(steps, func(step func() error) error { return step() })
}

// addRow inserts unless the key is taken.
func addRow[T any](tx *store.Tx, t table.Table[T], v T, key ...any) error {
	_, there, err := t.Get(tx, key...)
	if err != nil || there {
		return err
	}
	return t.Insert(tx, v)
}

func putAssignment(tx *store.Tx, a ledger.Assignment) error {
	w, _, err := WorkItem(tx, a.ProjectID, a.WorkItemID)
	if err != nil {
		return err
	}
	there, err := AssignmentExists(tx, a.ProjectID, a.ID)
	if err != nil {
		return err
	}
	if !there {
		return InsertAssignment(tx, a, w)
	}
	if err := ReplaceAssignment(tx, a, w); err != nil {
		return err
	}
	reviews, err := FollowedUpBy(tx, a.ProjectID, a.ID)
	if err != nil {
		return err
	}
	return RefreshFollowUps(tx, a.ProjectID, reviews)
}

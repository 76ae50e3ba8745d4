package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// packetMost bounds each list of a packet; the newest are kept.
const packetMost = 500

// AssignmentContext reads what an assignment is about.
func (s *Service) AssignmentContext(ctx context.Context, projectID, assignmentID string) (c ledger.Context, err error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &assignmentID); err != nil {
		return c, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { c, err = assignmentContext(tx, projectID, assignmentID, s.now()); return err })
	return c, err
}

func assignmentContext(tx *store.Tx, projectID, assignmentID string, now time.Time) (c ledger.Context, err error) {
	if c.Assignment, err = assignment(tx, projectID, assignmentID); err != nil {
		return c, err
	}
	if c.Project, err = project(tx, projectID); err != nil {
		return c, err
	}
	if c.WorkItem, err = item(tx, projectID, c.Assignment.WorkItemID); err != nil {
		return c, err
	}
	r, ok, err := ledgersql.Role(tx, projectID, c.Assignment.RoleID)
	if err != nil {
		return c, err
	}
	if ok {
		c.Role = &r
	}
	if c.Memory, err = ledgersql.Memories(tx, projectID, false, ledgersql.Page{Limit: packetMost}); err != nil {
		return c, err
	}
	c.ID, c.CreatedAt = ledger.NewID(ledger.KindContext), now
	c.Warnings = ledger.ReferenceWarnings(c.Project, c.Role, c.Assignment, c.WorkItem)
	return c, nil
}

// LaunchPacket reads everything that a host needs to prepare a run.
func (s *Service) LaunchPacket(ctx context.Context, projectID, assignmentID string) (p ledger.Packet, err error) {
	if err := requireIDs("project_id", &projectID, "assignment_id", &assignmentID); err != nil {
		return p, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { p, err = packet(tx, projectID, assignmentID, s.now()); return err })
	return p, err
}

func packet(tx *store.Tx, projectID, assignmentID string, now time.Time) (p ledger.Packet, err error) {
	c, err := assignmentContext(tx, projectID, assignmentID, now)
	if err != nil {
		return p, err
	}
	p = ledger.Packet{ID: ledger.NewID(ledger.KindLaunch), Kind: ledger.PacketKind, Project: c.Project, WorkItem: c.WorkItem, Role: c.Role, Assignment: c.Assignment,
		Memory: c.Memory, Warnings: c.Warnings, CreatedAt: now}
	known, err := ledgersql.Skills(tx, projectID, ledgersql.Page{})
	if err != nil {
		return p, err
	}
	var warnings []string
	p.Skills, warnings = ledger.ResolveSkills(c.Role, c.Assignment, known)
	p.Warnings = append(p.Warnings, warnings...)
	most, w := ledgersql.Page{Limit: packetMost}, c.WorkItem.ID
	if p.Artifacts, err = ledgersql.Artifacts(tx, projectID, w, most); err != nil {
		return p, err
	}
	if p.Evidence, err = ledgersql.EvidenceOf(tx, projectID, w, most); err != nil {
		return p, err
	}
	if p.Reviews, err = ledgersql.Reviews(tx, projectID, w, most); err != nil {
		return p, err
	}
	if p.Handoffs, err = ledgersql.Handoffs(tx, projectID, w, most); err != nil {
		return p, err
	}
	p.MemoryCandidates, err = ledgersql.Candidates(tx, projectID, ledger.Pending, most)
	return p, err
}

package ledgertools

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
)

func briefLine(i overview.BriefItem) string {
	out := fmt.Sprintf("- %s %s: %s", i.Severity, i.Kind, oneLine(i.Title))
	for _, f := range [][2]string{{"work", i.WorkItemID}, {"assignment", i.AssignmentID}, {"artifact", i.ArtifactID}, {"handoff", i.HandoffID}, {"candidate", i.MemoryCandidateID}, {"action", i.ActionKind}} {
		if f[1] != "" {
			out += " " + f[0] + "=" + f[1]
		}
	}
	return out
}

func addSummaries() {
	tool("projects.activity", func(ctx context.Context, s *coord.Service, in inProject) (Outcome, error) {
		a, err := s.Activity(ctx, in.ProjectID)
		return record(a, err, func(a overview.Activity) string {
			var b strings.Builder
			fmt.Fprintf(&b, "%s: %d assignments, %d active, %d blocked, %d completed", a.ProjectID, a.Counts.Assignments, a.Counts.Active, a.Counts.Blocked, a.Counts.Completed)
			for _, i := range a.Items {
				fmt.Fprintf(&b, "\n%s %s %s work=%s role=%s %s", i.AssignmentID, i.Bucket, i.Status, i.WorkItemID, i.RoleID, oneLine(i.WorkItemTitle))
			}
			if a.Omitted > 0 {
				fmt.Fprintf(&b, "\n%d older ones are left out: use assignments.list", a.Omitted)
			}
			return b.String()
		})
	})
	tool("projects.operations_brief", func(ctx context.Context, s *coord.Service, in inProject) (Outcome, error) {
		v, err := s.OperationsBrief(ctx, in.ProjectID)
		return record(v, err, func(v overview.Brief) string {
			var b strings.Builder
			fmt.Fprintf(&b, "%s %s: %s", v.ProjectID, v.Status, oneLine(v.Detail))
			for _, i := range v.Items {
				b.WriteString("\n" + briefLine(i))
			}
			if v.Omitted > 0 {
				fmt.Fprintf(&b, "\n%d less urgent ones are left out", v.Omitted)
			}
			return b.String()
		})
	})
	tool("projects.health", func(ctx context.Context, s *coord.Service, in inProject) (Outcome, error) {
		v, err := s.Health(ctx, in.ProjectID)
		return record(v, err, func(v overview.Health) string {
			var b strings.Builder
			fmt.Fprintf(&b, "%s %s: %s", v.ProjectID, v.Status, oneLine(v.Detail))
			for _, i := range v.Attention {
				b.WriteString("\n" + briefLine(i.BriefItem))
			}
			if v.Summary.OmittedAttentionCount > 0 {
				fmt.Fprintf(&b, "\n%d more: use projects.operations_brief", v.Summary.OmittedAttentionCount)
			}
			return b.String()
		})
	})
	tool("projects.setup_readiness", func(ctx context.Context, s *coord.Service, in inProject) (Outcome, error) {
		v, err := s.SetupReadiness(ctx, in.ProjectID)
		return record(v, err, func(v overview.Setup) string {
			var b strings.Builder
			b.WriteString(v.ProjectID)
			for _, c := range v.Checks {
				fmt.Fprintf(&b, "\n- %s %s: %s", c.Status, c.ID, c.Detail)
			}
			return b.String()
		})
	})
	tool("assignments.context", func(ctx context.Context, s *coord.Service, in inAssignment) (Outcome, error) {
		c, err := s.AssignmentContext(ctx, in.ProjectID, in.AssignmentID)
		return record(c, err, func(c ledger.Context) string {
			return prose(c.ID, c.Project, c.WorkItem, c.Role, c.Assignment, c.Memory, c.Warnings)
		})
	})
	tool("assignments.launch_packet", func(ctx context.Context, s *coord.Service, in inAssignment) (Outcome, error) {
		p, err := s.LaunchPacket(ctx, in.ProjectID, in.AssignmentID)
		return record(p, err, func(p ledger.Packet) string {
			out := prose(p.ID, p.Project, p.WorkItem, p.Role, p.Assignment, p.Memory, p.Warnings)
			return out + fmt.Sprintf("\n%d skills, %d artifacts, %d evidence, %d reviews, %d handoffs, %d memory candidates", len(p.Skills), len(p.Artifacts), len(p.Evidence), len(p.Reviews), len(p.Handoffs), len(p.MemoryCandidates))
		})
	})
}

func prose(id string, p ledger.Project, w ledger.WorkItem, r *ledger.Role, a ledger.Assignment, memory []ledger.MemoryEntry, warnings []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nproject %s\nwork item %s", id, projectLine(p), itemLine(w))
	if w.Brief != "" {
		b.WriteString("\n" + w.Brief)
	}
	if r != nil {
		fmt.Fprintf(&b, "\nrole %s", roleLine(*r))
		if r.Instructions != "" {
			b.WriteString("\n" + r.Instructions)
		}
	}
	fmt.Fprintf(&b, "\nassignment %s", assignmentLine(a))
	for _, m := range memory {
		fmt.Fprintf(&b, "\nmemory %s: %s", memoryLine(m), oneLine(m.Body))
	}
	for _, w := range warnings {
		b.WriteString("\nwarning: " + w)
	}
	return b.String()
}

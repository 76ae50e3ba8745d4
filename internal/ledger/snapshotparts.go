package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Clean returns the snapshot with what peers write and a ledger does not hold put right,
// without a loss: a state that is not said is the first one, what a list names twice it
// names once, and of roots or sources with one id the later ones get an id of their own,
// always the same one.
func (s Snapshot) Clean() Snapshot {
	s.Projects, s.Handoffs, s.MemoryCandidates = slices.Clone(s.Projects), slices.Clone(s.Handoffs), slices.Clone(s.MemoryCandidates)
	s.ProjectSkills, s.AssistantProposals = slices.Clone(s.ProjectSkills), slices.Clone(s.AssistantProposals)
	for i := range s.ProjectSkills {
		s.ProjectSkills[i].Status = or(s.ProjectSkills[i].Status, SkillAvailable)
	}
	for i := range s.AssistantProposals {
		s.AssistantProposals[i].Status = or(s.AssistantProposals[i].Status, Proposed)
	}
	for i := range s.Projects {
		p := &s.Projects[i]
		p.Roots, p.ContextSources = slices.Clone(p.Roots), slices.Clone(p.ContextSources)
		distinct(p.Roots, func(r *Root) *string { return &r.ID })
		distinct(p.ContextSources, func(c *Source) *string { return &c.ID })
	}
	for i := range s.Handoffs {
		h := &s.Handoffs[i]
		h.Status = or(h.Status, HandoffOpen)
		h.LinkedArtifactIDs, h.LinkedMemoryIDs, h.ContextRefs = List(h.LinkedArtifactIDs), List(h.LinkedMemoryIDs), List(h.ContextRefs)
	}
	for i := range s.MemoryCandidates {
		c := &s.MemoryCandidates[i]
		if c.Status == "" || c.Status == "proposed" { // as older releases of peers wrote it
			c.Status = Pending
		}
	}
	return s
}

// distinct gives the second one with an id the first free one of id-2, id-3 and so on.
func distinct[T any](list []T, id func(*T) *string) {
	taken := map[string]bool{}
	for i := range list {
		taken[*id(&list[i])] = true
	}
	seen := map[string]bool{}
	for i := range list {
		at := id(&list[i])
		if given := *at; seen[given] {
			for n := 2; taken[*at]; n++ {
				*at = fmt.Sprintf("%s-%d", given, n)
			}
			taken[*at] = true
		}
		seen[*at] = true
	}
}

// checkStates refuses records in a state that no rule knows: whatever reads them would
// take them for something else.
func (s Snapshot) checkStates() error {
	var err error
	known := func(kind, id, name, value string, allowed []string) {
		if err == nil && !slices.Contains(allowed, value) {
			err = invalid("%s %q has the unknown %s %q", kind, Clip(id), name, Clip(value))
		}
	}
	for _, v := range s.ProjectSkills {
		known("skill", v.ID, "status", v.Status, skillStatuses)
	}
	for _, v := range s.Roles {
		known("role", v.ID, "default_execution_mode", or(v.DefaultExecutionMode, ModePull), ExecutionModes)
	}
	for _, v := range s.Reviews {
		known("review", v.ID, "verdict", v.Verdict, verdicts)
		known("review", v.ID, "risk", or(v.Risk, "unknown"), risks)
	}
	for _, v := range s.Handoffs {
		known("handoff", v.ID, "status", v.Status, HandoffStatuses)
	}
	for _, v := range s.MemoryCandidates {
		known("memory candidate", v.ID, "status", v.Status, CandidateStates)
	}
	for _, v := range s.AssistantProposals {
		known("proposal", v.ID, "status", v.Status, proposalStatuses)
	}
	return err
}

// The times that a ledger can hold: nanoseconds in 64 bits, from 1677 to 2262.
var (
	firstTime = time.Unix(0, math.MinInt64)
	lastTime  = time.Unix(0, math.MaxInt64)
)

// checkTimes refuses times that would come back as others.
func (s Snapshot) checkTimes() error {
	var err error
	held := func(kind, id string, times ...time.Time) {
		for _, t := range times {
			if err == nil && !t.IsZero() && (t.Before(firstTime) || t.After(lastTime)) {
				err = invalid("%s %q has the time %s; a ledger holds times from 1677 to 2262", kind, Clip(id), stamp(t))
			}
		}
	}
	for _, v := range s.Projects {
		held("project", v.ID, v.CreatedAt, v.UpdatedAt)
		for _, c := range v.ContextSources {
			held("context source", c.ID, c.CreatedAt, c.UpdatedAt)
		}
	}
	for _, v := range s.ProjectSkills {
		held("skill", v.ID, v.DiscoveredAt, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.WorkItems {
		held("work item", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.Assignments {
		held("assignment", v.ID, v.CreatedAt, v.UpdatedAt, v.StartedAt, v.CompletedAt)
		if v.Claim != nil {
			held("the claim of assignment", v.ID, v.Claim.AcquiredAt, v.Claim.ExpiresAt)
		}
	}
	for _, v := range s.Artifacts {
		held("artifact", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.Evidence {
		held("evidence", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.Reviews {
		held("review", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.Handoffs {
		held("handoff", v.ID, v.CreatedAt, v.UpdatedAt, v.StatusChangedAt)
	}
	for _, v := range s.MemoryEntries {
		held("memory entry", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.MemoryCandidates {
		held("memory candidate", v.ID, v.CreatedAt, v.UpdatedAt)
	}
	for _, v := range s.CommandReceipts {
		held("receipt", v.IdempotencyKey, v.CreatedAt)
	}
	for _, v := range s.AssistantProposals {
		held("proposal", v.ID, v.CreatedAt, v.UpdatedAt, v.AppliedAt)
		for _, a := range v.ApplyAttempts {
			held("an attempt of proposal", v.ID, a.CreatedAt)
		}
	}
	return err
}

package ledgerserver_test

import (
	"strings"
	"testing"
	"time"
)

var fencedTools = []string{"assignments.renew_claim", "assignments.prepare", "assignments.release", "assignments.update_status", "assignments.complete"}

func (d *desk) fencedArgs(claim any) args {
	a := d.on("context_snapshot_id", "c1", "status", "awaiting_review")
	if claim != nil {
		a["claim_id"] = claim
	}
	return a
}

// Cases 12, 13: no fence is invalid, a wrong one conflicts, and nothing changes.
// H6 3, 4: every fenced tool, with the fence of before and with none.
func TestWorkersWithoutTheCurrentFenceAreRefused(t *testing.T) {
	d := newDesk(t)
	for _, tool := range fencedTools { // before existence is looked at
		d.fails("invalid", tool, args{"project_id": d.project, "assignment_id": "asgn_none", "status": "running", "context_snapshot_id": "c"})
		d.fails("invalid", tool, d.fencedArgs("  "))
		d.fails("not_found", tool, args{"project_id": d.project, "assignment_id": "asgn_none", "claim_id": "x", "status": "awaiting_review", "context_snapshot_id": "c"})
	}
	old := d.claim()
	d.ok("assignments.release", d.on("claim_id", old))
	d.claim()
	before := d.ok("assignments.get", d.on())
	for _, tool := range fencedTools {
		d.fails("conflict", tool, d.fencedArgs(old))
		d.fails("conflict", tool, d.fencedArgs("claim_x"))
	}
	if after := d.ok("assignments.get", d.on()); after.text != before.text || after.str("updated_at") != before.str("updated_at") {
		t.Errorf("from %s to %s", before.text, after.text)
	}
	d.fails("invalid", "assignments.prepare", d.on("claim_id", before.str("claim.id")))                                // case 37
	d.fails("invalid", "assignments.prepare", d.on("claim_id", before.str("claim.id"), "execution_ref", args{"x": 1})) // an empty reference does not count
}

// Cases 14, 15, 16.
func TestAnExpiredClaimStaysUntilItIsRecovered(t *testing.T) {
	d := newDesk(t)
	old := d.claim()
	d.ok("assignments.prepare", d.on("claim_id", old, "context_snapshot_id", "c1", "execution_ref", args{"run_id": "r"}))
	d.fails("conflict", "assignments.recover_claim", d.on("expected_claim_id", old)) // too early
	d.clock.pass(5*time.Minute - time.Nanosecond)
	d.fails("conflict", "assignments.recover_claim", d.on("expected_claim_id", old))
	d.clock.pass(time.Nanosecond) // at the instant of expiry it is expired
	for _, tool := range fencedTools {
		d.fails("conflict", tool, d.fencedArgs(old))
	}
	d.ok("assignments.next", d.with()).is("items", 0)
	lost := d.fails("conflict", "assignments.claim", d.on("claimed_by", "other"))
	if !strings.Contains(lost.text, "recover_claim") || !strings.Contains(lost.text, `"w"`) {
		t.Error("the loser does not learn who holds it and what to do:", lost.text)
	}
	d.ok("projects.operations_brief", d.with()).is("next.action_kind", "recover_assignment_claim", "next.severity", "blocked", "counts.blocked_assignments", 1)
	d.ok("projects.health", d.with()).is("attention.0.action_kind", "recover_assignment_claim")
	d.ok("projects.activity", d.with()).is("counts.claimed", 1, "counts.blocked", 1, "counts.active", 0, "buckets.blocked", 1)
	d.fails("invalid", "assignments.recover_claim", d.on())
	d.fails("conflict", "assignments.recover_claim", d.on("expected_claim_id", "claim_x"))
	got := d.ok("assignments.recover_claim", d.on("expected_claim_id", old))
	got.is("status", "queued", "claim", nil, "claimed_by", nil, "execution_ref", nil, "context_snapshot_id", nil)
	d.fails("conflict", "assignments.recover_claim", d.on("expected_claim_id", old))
	fresh := d.claim()
	d.fails("conflict", "assignments.complete", d.on("claim_id", old))
	d.ok("assignments.update_status", d.on("claim_id", fresh, "status", "running"))
	d.fails("conflict", "assignments.complete", d.on("claim_id", old))
	d.clock.pass(time.Hour) // case 19: started work outlives its lease
	d.fails("conflict", "assignments.recover_claim", d.on("expected_claim_id", fresh))
	d.ok("assignments.complete", d.on("claim_id", fresh)).is("status", "completed")
}

// Case 11.
func TestARenewalOnlyEverProlongs(t *testing.T) {
	d := newDesk(t)
	first := d.ok("assignments.claim", d.on("claimed_by", "w"))
	claim := first.str("claim.id")
	same := d.ok("assignments.renew_claim", d.on("claim_id", claim))
	same.is("claim.expires_at", first.str("claim.expires_at"), "updated_at", first.str("updated_at"), "claim.acquired_at", first.str("claim.acquired_at"))
	d.clock.pass(-time.Minute) // a clock that goes back takes nothing away
	d.ok("assignments.renew_claim", d.on("claim_id", claim)).is("claim.expires_at", first.str("claim.expires_at"))
	d.clock.pass(2 * time.Minute)
	later := d.ok("assignments.renew_claim", d.on("claim_id", claim))
	if !later.time("claim.expires_at").After(first.time("claim.expires_at")) {
		t.Error("the renewal did not prolong")
	}
}

// Cases 17, 18, 34, 35, 36.
func TestTheFirstEndStandsAndReferencesReplaceWhole(t *testing.T) {
	d := newDesk(t)
	claim := d.claim()
	for _, bad := range []any{"run-1", []any{1}, args{"run_id": 5}, args{"pending_approvals": "1"}, args{"pending_approvals": 1.5}, 7} {
		d.fails("invalid", "assignments.update_status", d.on("claim_id", claim, "status", "running", "execution_ref", bad))
		d.fails("invalid", "assignments.prepare", d.on("claim_id", claim, "execution_ref", bad))
	}
	d.ok("assignments.get", d.on()).is("status", "claimed", "execution_ref", nil)
	run := d.ok("assignments.update_status", d.on("claim_id", claim, "status", "awaiting_approval", "execution_ref", args{"kind": "k", "run_id": "r", "pending_approvals": 2, "odd": 1}))
	run.is("execution_ref.pending_approvals", 2, "execution_ref.odd", nil, "claim.expires_at", nil)
	started := run.str("started_at")
	for _, keep := range []any{nil, args{}} {
		d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running", "execution_ref", keep)).is("execution_ref.run_id", "r")
	}
	d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running", "execution_ref", args{"task_id": "t", "pending_approvals": -3})).
		is("execution_ref.task_id", "t", "execution_ref.run_id", nil, "execution_ref.pending_approvals", nil)
	d.clock.pass(time.Second)
	end := d.ok("assignments.complete", d.on("claim_id", claim, "status", "failed")).is("started_at", started)
	for _, tool := range fencedTools {
		d.fails("conflict", tool, d.fencedArgs(claim))
	}
	d.fails("conflict", "assignments.complete", d.on("claim_id", claim, "status", "failed")) // even the same again
	d.ok("assignments.get", d.on()).is("completed_at", end.str("completed_at"), "status", "failed", "claim.id", claim)
}

// Case 42 and D10: by priority, then age; closed work is not offered.
func TestTheMostUrgentAndThenTheOldestWorkIsOffered(t *testing.T) {
	d := newDesk(t)
	first := d.asgn
	d.clock.pass(time.Second)
	urgentWork := d.ok("work_items.create", d.with("title", "U", "priority", "urgent")).id()
	urgent := d.ok("assignments.create", d.with("work_item_id", urgentWork, "role_id", d.role, "skill_ids", []string{"Code Review"})).id()
	d.clock.pass(time.Second)
	last := d.queue()
	d.ok("assignments.next", d.with()).is("items.0.id", urgent, "items.1.id", first, "items.2.id", last)
	d.ok("assignments.next", d.with("limit", 1, "skill_ids", []string{})).is("items", 1, "items.0.id", first)
	d.ok("assignments.next", d.with("skill_ids", []string{"code-review"}, "limit", 1)).is("items.0.id", urgent)
	d.ok("work_items.update", d.with("id", urgentWork, "priority", "low"))
	d.ok("assignments.next", d.with()).is("items.2.id", urgent)
	d.ok("work_items.update", d.with("id", urgentWork, "status", "done"))
	d.ok("assignments.next", d.with()).is("items", 2)
	d.ok("work_items.update", d.with("id", urgentWork, "status", "ready"))
	d.ok("assignments.next", d.with()).is("items", 3)
	for _, limit := range []int{0, -1} {
		d.fails("invalid", "assignments.next", d.with("limit", limit))
	}
}

// Cases 20, 21, 22, 23.
func TestQueuedWorkIsEditedOnlyAsItWasRead(t *testing.T) {
	d := newDesk(t)
	read := d.ok("assignments.get", d.on())
	snapshot := args{"work_item_id": d.work, "role_id": d.role, "execution_mode": "mcp_pull", "desired_agent": args{"kind": "any"}}
	to := args{"work_item_id": d.work, "role_id": d.role, "execution_mode": "manual", "desired_agent": args{"kind": "human", "skill_ids": []string{"a", "b"}}}
	edit := func(expected, replacement any, revision string) args {
		return d.on("expected", expected, "expected_updated_at", revision, "replacement", replacement)
	}
	rev := read.str("updated_at")
	d.fails("invalid", "assignments.update", d.on("expected", snapshot, "replacement", to))
	d.fails("invalid", "assignments.update", edit(args{"work_item_id": d.work}, to, rev))
	d.fails("invalid", "assignments.update", edit(snapshot, args{"work_item_id": d.work, "role_id": d.role, "execution_mode": "warp"}, rev))
	d.fails("not_found", "assignments.update", edit(snapshot, args{"work_item_id": "work_none", "role_id": d.role, "execution_mode": "manual"}, rev))
	d.fails("conflict", "assignments.update", edit(to, to, rev))
	done := d.ok("assignments.update", edit(snapshot, to, rev)).is("execution_mode", "manual", "desired_agent.skill_ids.1", "b", "status", "queued")
	d.fails("conflict", "assignments.update", edit(snapshot, to, rev))
	other := args{"work_item_id": d.work, "role_id": d.role, "execution_mode": "manual", "desired_agent": args{"kind": "human", "skill_ids": []string{"b", "a"}}}
	d.fails("conflict", "assignments.update", edit(other, snapshot, done.str("updated_at"))) // the order of skills matters
	zone := strings.Replace(done.str("updated_at"), "Z", "+00:00", 1)                        // the same instant in other words
	again := d.ok("assignments.update", edit(to, snapshot, zone))
	claim := d.claim()
	d.fails("conflict", "assignments.update", edit(snapshot, to, again.str("updated_at")))
	d.fails("conflict", "assignments.update", edit(snapshot, to, d.ok("assignments.get", d.on()).str("updated_at")))
	d.ok("assignments.release", d.on("claim_id", claim))
	d.ok("assignments.update", edit(snapshot, to, d.ok("assignments.get", d.on()).str("updated_at")))
}

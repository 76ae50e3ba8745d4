package ledgerserver_test

import (
	"strings"
	"testing"
	"time"
)

func (d *desk) handoff(pairs ...any) answer {
	d.t.Helper()
	a := d.item(pairs...)
	a["title"], a["body"] = "H", "B"
	return d.ok("handoffs.create", a)
}

func (d *desk) accept(h answer, key string) args {
	return d.item("handoff_id", h.id(), "expected_updated_at", h.str("updated_at"), "idempotency_key", key, "intent", "accept_and_ensure_follow_up")
}

// Cases 28, 29, 30.
func TestAcceptingAHandoffMakesOneFollowUpHoweverOftenItIsAsked(t *testing.T) {
	d := newDesk(t)
	manual := d.ok("roles.create", d.with("name", "Human", "default_execution_mode", "manual", "default_skill_ids", []string{"s1"})).id()
	h := d.handoff("to_role_id", manual)
	got := d.ok("handoffs.accept_with_follow_up", d.accept(h, "k"))
	got.is("outcome", "created", "replayed", false, "handoff.status", "accepted", "assignment.status", "queued", "assignment.execution_mode", "manual",
		"assignment.desired_agent.kind", "human", "assignment.desired_agent.skill_ids.0", "s1", "assignment.root_id", nil, "handoff.target_assignment_id", got.str("assignment.id"))
	follow := got.str("assignment.id")
	d.done(follow)
	d.ok("handoffs.accept_with_follow_up", d.accept(h, " k ")).is("outcome", "created", "replayed", true, "assignment.id", follow, "assignment.status", "completed")
	d.fails("conflict", "handoffs.accept_with_follow_up", d.accept(h, "other key, old revision"))
	other := d.accept(h, "k")
	other["expected_updated_at"] = got.str("handoff.updated_at")
	d.fails("conflict", "handoffs.accept_with_follow_up", other) // the key with another request
	current := d.ok("handoffs.get", d.item("handoff_id", h.id()))
	same := d.ok("handoffs.accept_with_follow_up", d.accept(current, "k2")).is("outcome", "already_satisfied", "assignment.id", follow)
	same.is("handoff.updated_at", current.str("updated_at"))
	d.ok("handoffs.update_status", d.item("handoff_id", h.id(), "expected_updated_at", current.str("updated_at"), "status", "dismissed"))
	d.fails("conflict", "handoffs.accept_with_follow_up", d.accept(h, "k")) // a later decision undid it
	d.ok("assignments.list", d.with()).is("items", 2)
}

// Cases 31, 32, 33.
func TestWhatAHandoffNeedsToBeAccepted(t *testing.T) {
	d := newDesk(t)
	linked := d.handoff("to_role_id", d.role, "target_assignment_id", d.asgn)
	d.ok("handoffs.accept_with_follow_up", d.accept(linked, "a")).is("outcome", "linked_existing", "assignment.id", d.asgn, "handoff.target_work_item_id", d.work)
	d.fails("invalid", "handoffs.accept_with_follow_up", d.accept(d.handoff(), "b"))
	for _, status := range []string{"dismissed", "superseded"} {
		d.fails("conflict", "handoffs.accept_with_follow_up", d.accept(d.handoff("to_role_id", d.role, "status", status), "c"))
	}
	other := d.ok("roles.create", d.with("name", "Other")).id()
	d.fails("conflict", "handoffs.accept_with_follow_up", d.accept(d.handoff("to_role_id", other, "target_assignment_id", d.asgn), "d"))
	for key, code := range map[string]string{strings.Repeat("é", 129): "invalid", "  ": "invalid"} {
		d.fails(code, "handoffs.accept_with_follow_up", d.accept(d.handoff("to_role_id", d.role), key))
	}
	d.ok("handoffs.accept_with_follow_up", d.accept(d.handoff("to_role_id", d.role), strings.Repeat("é", 128)))
	wrong := d.accept(d.handoff("to_role_id", d.role), "e")
	wrong["intent"] = "launch"
	d.fails("invalid", "handoffs.accept_with_follow_up", wrong)
	d.fails("not_found", "handoffs.accept_with_follow_up", d.with("work_item_id", d.work, "handoff_id", "handoff_none", "expected_updated_at", "2026-01-01T00:00:00Z", "idempotency_key", "f", "intent", "accept_and_ensure_follow_up"))
}

// Case 50 and D9: follow-up that another work item finished resolves the review.
func TestFollowUpFinishedElsewhereResolvesAReview(t *testing.T) {
	d := newDesk(t)
	d.done(d.asgn)
	d.ok("evidence.record", d.item("title", "E", "body", "b", "assignment_id", d.asgn))
	review := d.ok("reviews.record", d.item("body", "redo", "verdict", "changes_requested")).id()
	ready := func(status string, followUps int) {
		t.Helper()
		d.ok("work_items.closeout_readiness", d.item()).is("status", status, "review_follow_up_count", followUps)
		d.ok("projects.operations_brief", d.with()).is("counts.review_follow_ups", followUps)
		d.ok("projects.health", d.with()).is("summary.review_follow_up_count", followUps, "summary.changes_requested_review_count", 1)
	}
	ready("blocked", 1)
	elsewhere := d.ok("work_items.create", d.with("title", "Elsewhere")).id()
	h := d.handoff("to_role_id", d.role, "target_work_item_id", elsewhere, "linked_artifact_ids", []string{review})
	follow := d.ok("handoffs.accept_with_follow_up", d.accept(h, "k")).is("assignment.work_item_id", elsewhere).str("assignment.id")
	ready("blocked", 1)
	d.done(follow)
	ready("ready", 0)
	d.ok("assignments.delete", d.with("assignment_id", follow)) // the work that resolved it is gone
	ready("blocked", 1)
}

// Case 51.
func TestSummariesCountAndRank(t *testing.T) {
	d := newDesk(t)
	d.ok("projects.setup_readiness", d.with()).is("show_onboarding", false, "setup_started", true, "summary.role_count", 1, "checks", 5)
	bare := d.ok("projects.create", args{"name": "Bare"}).id()
	d.ok("projects.health", args{"project_id": bare}).is("attention.0.action_kind", "setup_project", "status", "attention", "summary.setup_todo_count", 4)
	running := d.asgn
	claim := d.claim()
	d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running"))
	finished := d.queue()
	d.done(finished)
	for range 4 {
		d.queue()
	}
	d.ok("memory_candidates.create", d.with("title", "C", "body", "b"))
	idle := d.ok("work_items.create", d.with("title", "Idle")).id()
	d.handoff()
	b := d.ok("projects.operations_brief", d.with())
	b.is("counts.assignments", 6, "counts.active_assignments", 1, "counts.blocked_assignments", 4, "counts.missing_evidence", 1, "counts.open_handoffs", 1,
		"counts.pending_memory_candidates", 1, "counts.work_items", 2, "counts.closeout_ready", 0, "items", 9, "next.kind", "assignment", "next.severity", "blocked",
		"items.4.kind", "missing_evidence", "items.5.kind", "handoff", "items.6.kind", "memory_candidate", "items.7.assignment_id", running, "items.8.work_item_id", idle)
	h := d.ok("projects.health", d.with())
	h.is("attention", 5, "summary.attention_count", 5, "summary.attention_limit", 5, "summary.available_attention_count", 11, "summary.omitted_attention_count", 6,
		"summary.blocked_assignment_count", 4, "summary.project_skill_issue_count", 1)
	d.ok("projects.activity", d.with()).is("counts.assignments", 6, "counts.active", 1, "counts.blocked", 4, "counts.completed", 1, "buckets.active", 1, "buckets.blocked", 4, "items", 6)
	d.ok("work_items.update", d.with("id", d.work, "status", "cancelled")) // D9: this settles what is queued, not what runs
	d.ok("projects.operations_brief", d.with()).is("counts.blocked_assignments", 0, "counts.active_assignments", 1, "counts.missing_evidence", 0, "items", 3, "items.1.assignment_id", running)
}

// Case 54 and D9: what is deleted leaves nothing stuck.
func TestDeletesLeaveNothingStuck(t *testing.T) {
	d := newDesk(t)
	ev := d.ok("evidence.record", d.item("title", "E", "body", "b", "assignment_id", d.asgn)).id()
	rv := d.ok("reviews.record", d.item("body", "b", "verdict", "approved", "assignment_id", d.asgn)).id()
	art := d.ok("artifacts.create", d.item("kind", "k", "body", "b", "assignment_id", d.asgn)).id()
	h := d.handoff("source_assignment_id", d.asgn, "to_role_id", d.role)
	claim := d.claim()
	d.ok("assignments.delete", d.on())
	d.fails("not_found", "assignments.complete", d.on("claim_id", claim))
	d.ok("evidence.get", d.item("evidence_id", ev))
	d.fails("not_found", "reviews.get", d.item("review_id", rv))
	d.fails("not_found", "artifacts.get", d.item("artifact_id", art))
	d.asgn = d.queue()
	d.ok("roles.delete", d.with("id", d.role))
	got := d.ok("assignments.context", d.on())
	got.is("role", nil, "warnings", 1)
	d.claim()
	d.ok("handoffs.update", d.item("handoff_id", h.id(), "expected_updated_at", h.str("updated_at"), "title", "still editable"))
	toward := d.ok("work_items.create", d.with("title", "Toward")).id()
	led := d.handoff("target_work_item_id", toward)
	d.ok("work_items.delete", d.with("id", toward))
	d.fails("not_found", "handoffs.get", d.item("handoff_id", led.id()))
	d.ok("assistant.propose", d.with("title", "T", "actions", []args{{"kind": "create_role", "role": args{"project_id": d.project, "name": "x"}}}))
	d.ok("projects.delete", args{"id": d.project})
	for tool, a := range map[string]args{"work_items.list": d.with(), "assignments.next": d.with(), "assignments.get": d.on(), "projects.health": d.with()} {
		d.fails("not_found", tool, a)
	}
	d.ok("assistant.proposals.list", nil).is("items", 0)
}

// Case 44 and D4: all actions of a proposal happen, once, or none does.
func TestAProposalIsAppliedWholeAndOnce(t *testing.T) {
	d := newDesk(t)
	half := d.ok("assistant.propose", args{"title": "Half", "actions": []args{
		{"kind": "create_work_item", "work_item": args{"project_id": d.project, "title": "first"}},
		{"kind": "create_work_item", "work_item": args{"project_id": d.project, "title": "second", "owner_role_id": "role_late"}}}}).is("project_id", d.project).id()
	for range 2 {
		d.fails("not_found", "assistant.apply", args{"proposal_id": half, "confirm": true}).is("status", "rejected", "applied", false, "applied_action_count", 0, "failed_action_index", 1)
		d.ok("work_items.list", d.with()).is("items", 1)
	}
	d.ok("assistant.apply", args{"confirm": true, "proposal": args{"title": "inline", "actions": []args{{"kind": "create_role", "role": args{"id": "role_late", "project_id": d.project, "name": "Late"}}}}})
	d.ok("assistant.apply", args{"proposal_id": half, "confirm": true}).is("status", "applied", "applied_action_count", 2)
	d.fails("conflict", "assistant.apply", args{"proposal_id": half, "confirm": true}).is("applied", true)
	d.ok("work_items.list", d.with()).is("items", 3)
	forged := d.ok("assistant.propose", args{"title": "Forged", "actions": []args{{"kind": "create_assignment", "assignment": args{"id": "asgn_chosen", "project_id": d.project,
		"work_item_id": d.work, "role_id": d.role, "started_at": "2020-01-01T00:00:00Z", "completed_at": "2020-01-02T00:00:00Z", "created_at": "2020-01-01T00:00:00Z"}}}}).id()
	d.ok("assistant.apply", args{"proposal_id": forged, "confirm": true})
	got := d.ok("assignments.get", d.with("assignment_id", "asgn_chosen")).is("started_at", nil, "completed_at", nil, "status", "queued")
	if strings.HasPrefix(got.str("created_at"), "2020") {
		t.Error("a payload forged a time")
	}
	d.fails("already_exists", "assistant.propose", args{"id": forged, "title": "again", "actions": []args{{"kind": "create_project", "project": args{"name": "x"}}}})
}

// Case 45: disabled memory never reaches work.
func TestOnlyAcceptedAndEnabledMemoryReachesWork(t *testing.T) {
	d := newDesk(t)
	cand := d.ok("memory_candidates.create", d.with("title", "C", "body", "b")).id()
	d.ok("assignments.context", d.on()).is("memory", 0)
	promoted := d.ok("memory_candidates.promote", d.with("candidate_id", cand, "enabled", false))
	d.ok("assignments.context", d.on()).is("memory", 0)
	d.ok("memory_entries.update", d.with("memory_id", promoted.str("promoted_memory_id"), "enabled", true))
	d.ok("assignments.launch_packet", d.on()).is("memory", 1, "memory_candidates", 0)
	d.fails("conflict", "memory_candidates.reject", d.with("candidate_id", cand))
}

// D11: half a second is older than a second, whatever their digits look like.
func TestListsAreSortedByTimeNotByItsDigits(t *testing.T) {
	d := newDesk(t)
	d.clock.pass(500 * time.Millisecond)
	half := d.ok("work_items.create", d.with("title", "half")).id()
	d.clock.pass(500 * time.Millisecond)
	whole := d.ok("work_items.create", d.with("title", "whole")).id()
	d.ok("work_items.list", d.with()).is("items.0.id", whole, "items.1.id", half, "items.2.id", d.work)
	page := d.ok("work_items.list", d.with("limit", 2)).is("items", 2)
	d.ok("work_items.list", d.with("limit", 2, "cursor", page.str("next_cursor"))).is("items", 1, "items.0.id", d.work, "next_cursor", nil)
}

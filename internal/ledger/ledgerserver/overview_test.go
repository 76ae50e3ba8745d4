package ledgerserver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// ids lists the assignments that a list of an answer names.
func (a answer) ids(path string) (out []string) {
	list, _ := a.at(path).([]any)
	for _, i := range list {
		id, _ := i.(map[string]any)["assignment_id"].(string)
		out = append(out, id)
	}
	return out
}

// hold makes n claimed assignments, each a second younger than the one before.
func (d *desk) hold(n int) (ids []string) {
	d.t.Helper()
	for range n {
		d.clock.pass(time.Second)
		id := d.queue()
		d.ok("assignments.claim", d.with("assignment_id", id, "claimed_by", "w"))
		ids = append(ids, id)
	}
	return ids
}

// Case 51: of many claims that ran out, health shows those that the brief puts first.
func TestHealthShowsTheFirstItemsOfTheBrief(t *testing.T) {
	d := newDesk(t)
	d.ok("assignments.delete", d.on())
	ids := d.hold(8)
	d.clock.pass(time.Second)
	d.ok("assignments.prepare", d.with("assignment_id", ids[2], "claim_id", d.ok("assignments.get", d.with("assignment_id", ids[2])).str("claim.id"), "context_snapshot_id", "c"))
	d.clock.pass(time.Hour)
	want := []string{ids[2], ids[7], ids[6], ids[5], ids[4]}
	if got := d.ok("projects.operations_brief", d.with()).ids("items")[:5]; !slices.Equal(got, want) {
		t.Errorf("the brief shows %v, want %v", got, want)
	}
	if got := d.ok("projects.health", d.with()).ids("attention"); !slices.Equal(got, want) {
		t.Errorf("health shows %v, want %v", got, want)
	}
}

// Claims that ran out do not push out the live ones, however many and however recently
// changed they are: renewed claims stay live without being changed.
func TestExpiredClaimsPushNoLiveOnesOut(t *testing.T) {
	d := newDesk(t)
	d.ok("assignments.delete", d.on())
	live := d.hold(3)
	claims := map[string]string{}
	for _, id := range live {
		claims[id] = d.ok("assignments.get", d.with("assignment_id", id)).str("claim.id")
	}
	d.hold(110)
	d.clock.pass(2 * time.Minute)
	for id, c := range claims {
		d.ok("assignments.renew_claim", d.with("assignment_id", id, "claim_id", c))
	}
	d.clock.pass(4 * time.Minute)
	slices.Reverse(live)
	a := d.ok("projects.activity", d.with()).is("counts.active", 3, "counts.blocked", 110)
	if got := a.ids("buckets.active"); !slices.Equal(got, live) {
		t.Errorf("active are %v, want %v", got, live)
	}
	if n := a.n("buckets.blocked"); n != 50 {
		t.Errorf("%d are blocked in the bucket", n)
	}
	d.ok("projects.operations_brief", d.with()).is("items", 100, "omitted_item_count", 13, "items.99.action_kind", "recover_assignment_claim")
	for _, id := range d.ok("projects.activity", d.with()).ids("buckets.blocked") {
		if slices.Contains(live, id) {
			t.Errorf("%s is live and blocked", id)
		}
	}
}

// D9: the end of a work item settles what is queued and what failed. What somebody holds,
// waits for or gave up is still to be told.
func TestWorkOfAClosedItemThatSomebodyHoldsIsTold(t *testing.T) {
	d := newDesk(t) // has one queued
	at := map[string]string{}
	for _, status := range []string{"running", "awaiting_approval", "awaiting_review", "failed", "cancelled", "completed", "claimed"} {
		d.clock.pass(time.Second)
		id := d.queue()
		at[id] = status
		claim := d.ok("assignments.claim", d.with("assignment_id", id, "claimed_by", "w")).str("claim.id")
		tool := "assignments.complete"
		if status == "running" || status == "awaiting_approval" {
			tool = "assignments.update_status"
		}
		if status != "claimed" {
			d.ok(tool, d.with("assignment_id", id, "claim_id", claim, "status", status))
		}
	}
	d.ok("work_items.update", d.with("id", d.work, "status", "done"))
	told := func(brief answer, path string) (out []string) {
		for _, id := range brief.ids(path) {
			out = append(out, at[id])
		}
		return out
	}
	b := d.ok("projects.operations_brief", d.with()).is("counts.active_assignments", 3, "counts.blocked_assignments", 2, "counts.missing_evidence", 0, "omitted_item_count", nil)
	if got, want := told(b, "items"), []string{"cancelled", "awaiting_approval", "claimed", "awaiting_review", "running"}; !slices.Equal(got, want) {
		t.Errorf("the brief tells %v, want %v", got, want)
	}
	d.clock.pass(time.Hour)
	b = d.ok("projects.operations_brief", d.with()).is("counts.active_assignments", 2, "counts.blocked_assignments", 3, "next.action_kind", "recover_assignment_claim")
	if got, want := told(b, "items"), []string{"claimed", "cancelled", "awaiting_approval", "awaiting_review", "running"}; !slices.Equal(got, want) {
		t.Errorf("after the hour the brief tells %v, want %v", got, want)
	}
	h := d.ok("projects.health", d.with()).is("summary.active_assignment_count", 2, "summary.blocked_assignment_count", 3, "status", "attention")
	if got, want := told(h, "attention"), told(b, "items"); !slices.Equal(got, want) {
		t.Errorf("health tells %v, want %v", got, want)
	}
	if next := d.ok("assignments.next", d.with()); next.n("items") != 0 {
		t.Errorf("work of a closed item is offered: %v", next.value)
	}
}

// §11: the id of an item joins the project, its kind and its records.
func TestTheIdsOfAttentionJoinKindAndRecords(t *testing.T) {
	c := newClient(t)
	p := c.ok("projects.create", args{"name": "P"}).id()
	health := func() answer { return c.ok("projects.health", args{"project_id": p}) }
	health().is("attention.0.id", p+":project_setup", "attention.0.action_kind", "setup_project")
	role := c.ok("roles.create", args{"project_id": p, "name": "R", "default_skill_ids": []string{"none"}}).id()
	health().is("attention.0.id", p+":skill", "attention.1.id", p+":project_setup", "attention.1.action_kind", "manage_context")
	item := c.ok("work_items.create", args{"project_id": p, "title": "W"}).id()
	c.ok("assignments.create", args{"project_id": p, "work_item_id": item, "role_id": role})
	got := health()
	got.is("attention.0.id", fmt.Sprintf("%s:assignment:%s:%s", p, item, got.str("attention.0.assignment_id")))
	seen := map[string]bool{}
	for _, i := range got.at("attention").([]any) {
		id := i.(map[string]any)["id"].(string)
		if seen[id] {
			t.Errorf("the id %s comes twice", id)
		}
		seen[id] = true
	}
}

package ledgerserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Cases 8, 9: clients that read only text learn the fence too.
func TestTheTextOfAnAssignmentTellsItsFence(t *testing.T) {
	d := newDesk(t)
	claim := d.claim()
	for _, got := range []answer{d.ok("assignments.get", d.on()), d.ok("assignments.list", d.with())} {
		if !strings.Contains(got.text, "claim_id="+claim) || !strings.Contains(got.text, "claim_expires_at=") || !strings.Contains(got.text, "claimed_by=w") {
			t.Error(got.text)
		}
	}
	d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running"))
	if got := d.ok("assignments.get", d.on()); !strings.Contains(got.text, "claim_fence="+claim) || strings.Contains(got.text, "claim_expires_at") {
		t.Error(got.text)
	}
}

// Cases 24, 25, 27.
func TestAHandoffIsEditedOnlyAsItWasRead(t *testing.T) {
	d := newDesk(t)
	h := d.handoff("context_refs", []string{"a", "b"})
	edit := func(rev any, pairs ...any) args {
		a := d.item(pairs...)
		a["handoff_id"] = h.id()
		if rev != nil {
			a["expected_updated_at"] = rev
		}
		return a
	}
	for _, tool := range []string{"handoffs.update", "handoffs.update_status", "handoffs.delete"} {
		d.fails("invalid", tool, edit(nil, "status", "accepted"))
		d.fails("invalid", tool, edit("tomorrow", "status", "accepted"))
		d.fails("conflict", tool, edit("2020-01-01T00:00:00Z", "status", "accepted"))
	}
	rev := h.str("updated_at")
	d.ok("handoffs.update", edit(rev, "title", "H", "body", nil)).is("updated_at", rev)
	moved := d.ok("handoffs.update", edit(rev, "title", "other", "context_refs", []string{})).is("context_refs", nil, "body", "B", "status_changed_at", h.str("status_changed_at"))
	if !moved.time("updated_at").After(h.time("updated_at")) {
		t.Error("the clock stands still, and so does the revision")
	}
	d.fails("invalid", "handoffs.update", edit(moved.str("updated_at"), "title", " "))
	d.fails("invalid", "handoffs.update_status", edit(moved.str("updated_at"), "status", "maybe"))
	d.fails("not_found", "handoffs.update", edit(moved.str("updated_at"), "to_role_id", "role_none"))
	closed := d.ok("handoffs.update_status", edit(moved.str("updated_at"), "status", "dismissed"))
	closed.is("status_changed_at", closed.str("updated_at"))
	d.ok("handoffs.delete", edit(closed.str("updated_at")))
	d.fails("not_found", "handoffs.delete", edit(closed.str("updated_at")))
}

// Case 38: what is not there is not_found, also under another project.
func TestMissingRecordsAreNotFound(t *testing.T) {
	d := newDesk(t)
	other := d.ok("projects.create", args{"name": "Other"}).id()
	d.fails("not_found", "assignments.get", args{"project_id": other, "assignment_id": d.asgn})
	d.fails("not_found", "work_items.get", args{"project_id": other, "id": d.work})
	for _, c := range []struct {
		tool string
		a    args
	}{
		{"projects.get", args{"id": "x' OR '1'='1"}},
		{"projects.update", args{"id": d.project, "default_root_id": "none"}},
		{"roots.update", d.with("root_id", "none", "path", "/x")},
		{"roots.delete", d.with("root_id", "none")},
		{"context_sources.delete", d.with("source_id", "none")},
		{"skills.update", d.with("id", "none", "title", "x")},
		{"roles.update", d.with("id", "none", "name", "x")},
		{"roles.delete", d.with("id", "none")},
		{"work_items.create", d.with("title", "x", "owner_role_id", "none")},
		{"work_items.create", d.with("title", "x", "reviewer_role_ids", []string{"none"})},
		{"work_items.create", d.with("title", "x", "root_id", "none")},
		{"work_items.delete", d.with("id", "none")},
		{"assignments.create", d.item("role_id", "none")},
		{"assignments.create", d.with("work_item_id", "none", "role_id", d.role)},
		{"assignments.create", d.item("role_id", d.role, "root_id", "none")},
		{"assignments.claim", d.with("assignment_id", "none", "claimed_by", "w")},
		{"assignments.delete", d.with("assignment_id", "none")},
		{"artifacts.create", d.item("kind", "k", "body", "b", "author_role_id", "none")},
		{"evidence.record", d.item("title", "t", "body", "b", "assignment_id", "none")},
		{"reviews.record", d.item("body", "b", "verdict", "approved", "reviewer_role_id", "none")},
		{"handoffs.create", d.item("title", "t", "body", "b", "target_assignment_id", "none")},
		{"handoffs.create", d.item("title", "t", "body", "b", "target_work_item_id", "none")},
		{"memory_entries.get", d.with("memory_id", "none")},
		{"memory_entries.delete", d.with("memory_id", "none")},
		{"memory_candidates.promote", d.with("candidate_id", "none")},
		{"memory_candidates.delete", d.with("candidate_id", "none")},
		{"assistant.proposals.get", args{"id": "none"}},
		{"assistant.apply", args{"proposal_id": "none", "confirm": true}},
		{"projects.health", args{"project_id": "none"}},
	} {
		d.fails("not_found", c.tool, c.a)
	}
}

// Case 39: every tool with required arguments refuses a call without them.
func TestMissingArgumentsAreInvalid(t *testing.T) {
	d := newDesk(t)
	for _, raw := range d.message("tools/list", nil)["result"].(map[string]any)["tools"].([]any) {
		tool := raw.(map[string]any)
		required, _ := tool["inputSchema"].(map[string]any)["required"].([]any)
		for _, left := range required {
			a := args{}
			for _, name := range required {
				if name != left {
					a[name.(string)] = map[string]any{"project_id": d.project, "work_item_id": d.work, "role_id": d.role, "assignment_id": d.asgn,
						"expected_updated_at": "2026-01-01T00:00:00Z", "verdict": "approved", "intent": "accept_and_ensure_follow_up", "status": "running",
						"actions": []args{{"kind": "create_project", "project": args{"name": "x"}}}, "expected": args{}, "replacement": args{}}[name.(string)]
					if a[name.(string)] == nil {
						a[name.(string)] = "x"
					}
				}
			}
			d.fails("invalid", tool["name"].(string), a)
		}
	}
}

// Case 46: a project without roots is whole, and a root is never looked for.
func TestAProjectNeedsNoRoot(t *testing.T) {
	d := newDesk(t)
	d.ok("assignments.context", d.on()).is("warnings", 0, "assignment.root_id", nil)
	p := d.ok("projects.create", args{"name": "Rooted", "roots": []args{{"id": "main", "path": " /none/./here/ "}, {"path": "/b", "active": false}, {"path": " "}}})
	p.is("roots", 2, "roots.0.path", "/none/here", "roots.0.active", true, "roots.1.active", false, "default_root_id", "main")
	d.ok("roots.delete", args{"project_id": p.id(), "root_id": "main"})
	d.ok("projects.get", args{"id": p.id()}).is("default_root_id", p.str("roots.1.id"))
	d.ok("projects.update", args{"id": p.id(), "roots": []args{}}).is("roots", nil, "default_root_id", nil, "name", "Rooted")
}

// Case 56.
func TestAPatchKeepsWhatItDoesNotName(t *testing.T) {
	d := newDesk(t)
	d.ok("work_items.update", d.with("id", d.work, "brief", " b ", "priority", "high", "reviewer_role_ids", []string{d.role, " " + d.role, ""})).
		is("brief", "b", "title", "W", "reviewer_role_ids", 1)
	d.ok("work_items.update", d.with("id", d.work, "priority", "", "brief", "")).is("priority", "normal", "brief", nil, "reviewer_role_ids", 1)
	d.ok("roles.update", d.with("id", d.role, "description", "D")).is("instructions", "Do it", "default_skill_ids.0", "review", "name", "Worker")
	d.fails("invalid", "roles.update", d.with("id", d.role, "default_execution_mode", "warp"))
}

// Case 53: claims, fences and receipts survive a restart.
func TestARestartForgetsNothing(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	restart := func() func() {
		db, err := store.OpenFile(t.Context(), file, store.Options{Relaxed: true, Sets: []store.Set{ledgersql.Tables()}})
		if err != nil {
			t.Fatal(err)
		}
		d.server = ledgerserver.New(coord.New(db, coord.WithClock(d.clock)), "1.0.0")
		return func() { db.Close() }
	}
	stop := restart()
	d.project = d.ok("projects.create", args{"name": "P"}).id()
	d.role = d.ok("roles.create", d.with("name", "R")).id()
	d.work = d.ok("work_items.create", d.with("title", "W")).id()
	d.asgn = d.queue()
	claim := d.claim()
	before := d.ok("assignments.get", d.on())
	accept := d.accept(d.handoff("to_role_id", d.role), "k")
	follow := d.ok("handoffs.accept_with_follow_up", accept).str("assignment.id")
	stop()
	stop = restart()
	if after := d.ok("assignments.get", d.on()); after.text != before.text || after.str("updated_at") != before.str("updated_at") {
		t.Errorf("from %s to %s", before.text, after.text)
	}
	d.ok("handoffs.accept_with_follow_up", accept).is("replayed", true, "assignment.id", follow)
	d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running"))
	stop()
	defer restart()()
	d.fails("conflict", "assignments.complete", d.on("claim_id", "claim_x"))
	d.ok("assignments.complete", d.on("claim_id", claim))
}

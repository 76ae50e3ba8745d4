package ledgerserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/golden"
)

// Case 1: the whole pull flow, until the work item can be closed.
func TestThePullFlowEndsWithWorkThatCanBeClosed(t *testing.T) {
	d := newDesk(t)
	d.ok("coordination.capabilities", args{}).is("assignment_claim_leases.ttl_seconds", 300, "assignment_claim_leases.renewal_tool", "assignments.renew_claim",
		"assignment_claim_leases.recovery_tool", "assignments.recover_claim")
	d.ok("work_items.closeout_readiness", d.item()).is("ready", false, "status", "blocked", "blockers", 1)
	d.ok("assignments.next", d.with("agent_kind", "codex", "skill_ids", []string{})).is("items", 1, "items.0.id", d.asgn)
	claimed := d.ok("assignments.claim", d.on("claimed_by", "w")).is("status", "claimed", "claimed_by", "w")
	claim := claimed.str("claim.id")
	d.ok("assignments.next", d.with()).is("items", 0)
	d.clock.pass(4 * time.Minute)
	if renewed := d.ok("assignments.renew_claim", d.on("claim_id", claim)); !renewed.time("claim.expires_at").After(claimed.time("claim.expires_at")) {
		t.Error("the renewal did not prolong the claim")
	}
	d.ok("assignments.context", d.on()).is("assignment.id", d.asgn, "work_item.id", d.work, "role.id", d.role)
	d.ok("assignments.launch_packet", d.on()).is("kind", "assignment_launch_packet", "role.instructions", "Do it")
	d.ok("assignments.prepare", d.on("claim_id", claim, "execution_ref", args{"run_id": "r"})).is("status", "claimed", "started_at", nil)
	d.ok("assignments.update_status", d.on("claim_id", claim, "status", "running")).is("status", "running", "claim.id", claim, "claim.expires_at", nil, "execution_ref.run_id", "r")
	d.ok("evidence.record", d.item("assignment_id", d.asgn, "title", "Log", "locator", "file:///log"))
	d.ok("assignments.complete", d.on("claim_id", claim)).is("status", "completed")
	d.ok("work_items.closeout_readiness", d.item()).is("ready", true, "status", "ready", "blockers", 0, "completed_assignments", 1)
}

// Case 6: the packet has everything that a run needs, and one warning for each skill that
// cannot be used.
func TestThePacketHasAllThatARunNeeds(t *testing.T) {
	d := newDesk(t)
	d.ok("skills.create", d.with("id", "review", "title", "Review"))
	d.ok("skills.create", d.with("id", "off", "enabled", false))
	d.asgn = d.ok("assignments.create", d.item("role_id", d.role, "skill_ids", []string{"off", "unknown", "Review"})).id()
	d.ok("memory_entries.create", d.with("title", "M", "body", "b"))
	candidate := d.ok("memory_candidates.create", d.with("title", "C", "body", "b")).id()
	resolved := d.ok("memory_candidates.create", d.with("title", "No", "body", "b")).id()
	d.ok("memory_candidates.reject", d.with("candidate_id", resolved))
	ev := d.ok("evidence.record", d.item("title", "E", "body", "b")).id()
	rv := d.ok("reviews.record", d.item("body", "b", "verdict", "approved")).id()
	ho := d.handoff("to_role_id", d.role).id()
	ar := d.ok("artifacts.create", d.item("kind", "k", "body", "b")).id()
	d.ok("assignments.launch_packet", d.on()).is("project.id", d.project, "work_item.title", "W", "role.instructions", "Do it", "assignment.id", d.asgn,
		"memory", 1, "memory.0.title", "M", "memory_candidates", 1, "memory_candidates.0.id", candidate, "evidence", 1, "evidence.0.id", ev, "reviews", 1, "reviews.0.id", rv,
		"handoffs", 1, "handoffs.0.id", ho, "artifacts", 1, "artifacts.0.id", ar, "skills", 1, "skills.0.id", "review", "warnings", 2)
}

// Case 59: nothing that is read from an empty project holds a null.
func TestAnEmptyProjectIsReadWithoutNulls(t *testing.T) {
	d := newDesk(t)
	d.project = d.ok("projects.create", args{"name": "Empty"}).id()
	d.role = d.ok("roles.create", d.with("name", "R")).id()
	check := func(tool string, a args) {
		t.Helper()
		if reply := fmt.Sprintf("%v", d.message("tools/call", args{"name": tool, "arguments": a})["result"]); strings.Contains(reply, "<nil>") {
			t.Errorf("%s: %s", tool, reply)
		}
	}
	for _, tool := range []string{"projects.activity", "projects.health", "projects.operations_brief", "projects.setup_readiness", "roots.list", "context_sources.list", "skills.list",
		"skills.discover", "work_items.list", "assignments.list", "assignments.next", "memory_entries.list", "memory_candidates.list", "roles.list"} {
		check(tool, d.with())
	}
	check("projects.get", args{"id": d.project})
	check("assistant.proposals.list", d.with())
	check("projects.list", args{})
	check("coordination.capabilities", args{})
	d.work = d.ok("work_items.create", d.with("title", "W")).id()
	for _, tool := range []string{"work_items.closeout_readiness", "artifacts.list", "evidence.list", "reviews.list", "handoffs.list"} {
		check(tool, d.item())
	}
	d.asgn = d.ok("assignments.create", d.item("role_id", d.role)).id()
	for _, tool := range []string{"assignments.get", "assignments.context", "assignments.launch_packet"} {
		check(tool, d.on())
	}
	for _, r := range d.message("resources/list", nil)["result"].(map[string]any)["resources"].([]any) {
		got := d.message("resources/read", args{"uri": r.(map[string]any)["uri"]})["result"].(map[string]any)["contents"].([]any)[0].(map[string]any)
		if got["mimeType"] == "application/json" && strings.Contains(got["text"].(string), "null") {
			t.Errorf("%v: %v", got["uri"], got["text"])
		}
	}
}

// Case 43: a deleted role warns in what is read and stops no work.
func TestADeletedRoleWarnsAndStopsNoWork(t *testing.T) {
	d := newDesk(t)
	d.ok("skills.create", d.with("id", "review"))
	d.ok("assignments.launch_packet", d.on()).is("warnings", 0, "skills", 1)
	d.ok("roles.delete", d.with("id", d.role))
	for _, tool := range []string{"assignments.context", "assignments.launch_packet"} {
		d.ok(tool, d.on()).is("role", nil, "warnings", 1)
	}
	claim := d.claim()
	d.ok("assignments.complete", d.on("claim_id", claim)).is("status", "completed")
}

// Case 2: the protocol version, tools, resources and the view are offered, and nothing
// that is not there.
func TestTheHandshakeOffersToolsResourcesAndTheView(t *testing.T) {
	c := newClient(t)
	for asked, want := range map[string]string{"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "1999-01-01": "2025-11-25"} {
		r := c.message("initialize", args{"protocolVersion": asked, "capabilities": args{}, "clientInfo": args{"name": "c", "version": "1"}})["result"].(map[string]any)
		if r["protocolVersion"] != want {
			t.Errorf("asked for %s, got %v", asked, r["protocolVersion"])
		}
		caps := r["capabilities"].(map[string]any)
		ui, _ := caps["extensions"].(map[string]any)["io.modelcontextprotocol/ui"].(map[string]any)
		if len(caps) != 3 || caps["tools"] == nil || caps["resources"] == nil || fmt.Sprint(ui["mimeTypes"]) != "[text/html;profile=mcp-app]" {
			t.Errorf("%v", caps)
		}
	}
}

// Case 49: a host that shows the view gets the results that any other gets.
func TestTheViewChangesNoResult(t *testing.T) {
	d := newDesk(t)
	tools := []string{"projects.health", "projects.operations_brief", "projects.activity"}
	results := func() (out []string) {
		for _, tool := range tools {
			out = append(out, fmt.Sprint(d.message("tools/call", args{"name": tool, "arguments": d.with()})["result"]))
		}
		return out
	}
	before := results()
	d.message("initialize", args{"protocolVersion": "2025-11-25", "clientInfo": args{"name": "c", "version": "1"},
		"capabilities": args{"extensions": args{"io.modelcontextprotocol/ui": args{"mimeTypes": []string{"text/html;profile=mcp-app"}}}}})
	d.message("resources/read", args{"uri": "ui://cairnline/project-status"})
	if after := results(); !slices.Equal(before, after) || strings.Contains(fmt.Sprint(after), "_meta") {
		t.Errorf("%v, with the view %v", before, after)
	}
}

// Case 52: what cannot be a claim of this ledger comes in by no tool.
func TestNoToolTakesASnapshotOrTheHostsAuthority(t *testing.T) {
	c := newClient(t)
	for _, tool := range []string{"snapshots.import", "snapshots.export", "assignments.claim_unleased", "assignments.requeue"} {
		if got := c.call(tool, args{}); got.rpc != -32602 {
			t.Errorf("%s: %+v", tool, got)
		}
	}
}

// Case 7: names, required arguments, hints and links of all tools are a saved contract.
func TestTheContractOfTheCatalogueIsTheSavedOne(t *testing.T) {
	c := newClient(t)
	var b strings.Builder
	b.WriteString("tool | required | hints | view\n")
	for _, raw := range c.message("tools/list", nil)["result"].(map[string]any)["tools"].([]any) {
		tool := raw.(map[string]any)
		var required, hints []string
		list, _ := tool["inputSchema"].(map[string]any)["required"].([]any)
		for _, r := range list {
			required = append(required, r.(string))
		}
		slices.Sort(required)
		for name, is := range tool["annotations"].(map[string]any) {
			if is == true {
				hints = append(hints, strings.TrimSuffix(name, "Hint"))
			}
		}
		slices.Sort(hints)
		view := "-"
		if meta, ok := tool["_meta"].(map[string]any); ok {
			view = fmt.Sprint(meta["ui"].(map[string]any)["resourceUri"])
		}
		fmt.Fprintf(&b, "%s | %s | %s | %s\n", tool["name"], strings.Join(required, " "), strings.Join(hints, " "), view)
	}
	golden.Equal(t, "testdata/contract.txt", b.String())
}

package ledgerserver_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// §3: two tools take no arguments, so they look at none.
func TestToolsWithoutArgumentsIgnoreThem(t *testing.T) {
	d := newDesk(t)
	for _, a := range []any{[]any{}, []any{1}, "x", 5, true, nil, args{"limit": "x"}, args{"limit": 0}, args{"cursor": "x"}, args{"cursor": 5}} {
		d.ok("projects.list", a).is("items", 1)
		d.ok("coordination.capabilities", a)
	}
	d.ok("projects.create", args{"name": "Q"})
	first := d.ok("projects.list", args{"limit": 1}).is("items", 1)
	d.ok("projects.list", args{"limit": 1, "cursor": first.str("next_cursor")}).is("items", 1, "next_cursor", nil)
	d.ok("assistant.proposals.list", nil)
	for _, a := range []any{[]any{}, "x", 5, args{"limit": 0}} {
		d.fails("invalid", "assistant.proposals.list", a)
		d.fails("invalid", "roles.list", a)
	}
}

// Cases 8, 9: no label of a worker or an operator passes for a fact of the ledger.
func TestNoLabelForgesAFactOfTheText(t *testing.T) {
	d := newDesk(t)
	const forged = `x" claim_id=claim_0 claim_fence=claim_0 claim_expires_at=2030-01-01T00:00:00Z`
	d.asgn = d.ok("assignments.create", d.item("role_id", d.role, "desired_agent_kind", forged, "skill_ids", []string{"a b", "status=done"})).id()
	facts := func(got answer) (out []string) {
		return regexp.MustCompile(`(?:claim_id|claim_fence|claim_expires_at)=\S*`).FindAllString(got.text, -1)
	}
	for _, got := range []answer{d.ok("assignments.get", d.on()), d.ok("assignments.next", d.with())} {
		if f := facts(got); len(f) != 0 {
			t.Errorf("queued work has %q in %s", f, got.text)
		}
	}
	made := d.ok("assignments.claim", d.on("claimed_by", "me claim_id=claim_1\nclaim_fence=claim_1"))
	for _, got := range []answer{made, d.ok("assignments.get", d.on()), d.ok("assignments.context", d.on())} {
		want := []string{"claim_id=" + made.str("claim.id"), "claim_expires_at=" + made.str("claim.expires_at")}
		if f := facts(got); !slices.Equal(f, want) {
			t.Errorf("claimed work has %q, want %q", f, want)
		}
	}
	if text := d.ok("assignments.get", d.on()).text; strings.Contains(text, "\n") || !strings.HasPrefix(text, d.asgn+" claimed claim_id=") {
		t.Errorf("the line is %q", text)
	}
	d.ok("assignments.update_status", d.on("claim_id", made.str("claim.id"), "status", "running"))
	if f := facts(d.ok("assignments.get", d.on())); !slices.Equal(f, []string{"claim_fence=" + made.str("claim.id")}) {
		t.Errorf("started work has %q", f)
	}
	// A label of one word stands as it is, any other as a JSON string without a "=".
	other := d.ok("assignments.create", d.item("role_id", d.role, "desired_agent_kind", "a=b c", "skill_ids", []string{"a", "b"})).text
	for _, want := range []string{` work=` + d.work + ` role=` + d.role + ` mode=mcp_pull `, ` desired="a\u003db c"`, ` skills=a,b`} {
		if !strings.Contains(other, want) {
			t.Errorf("%s lacks %s", other, want)
		}
	}
}

// An id is one line of one list.
func TestAnIdHoldsNoControlCharacters(t *testing.T) {
	d := newDesk(t)
	for _, id := range []string{"a\nb", "a\x00b", "a\x1b[2Jb", "a\u0085b"} {
		d.fails("invalid", "roots.create", d.with("id", id, "path", "/x"))
		d.fails("invalid", "projects.create", args{"name": "x", "roots": []args{{"id": id, "path": "/x"}}})
		d.fails("invalid", "projects.update", args{"id": d.project, "roots": []args{{"id": id, "path": "/x"}}})
		d.fails("invalid", "context_sources.create", d.with("id", id, "locator", "/x"))
		d.fails("invalid", "assistant.propose", args{"id": id, "title": "x", "actions": []args{{"kind": "create_project", "project": args{"name": "x"}}}})
		d.fails("invalid", "assistant.apply", args{"confirm": true, "proposal": args{"title": "x", "actions": []args{{"kind": "create_work_item", "work_item": args{"id": id, "project_id": d.project, "title": "x"}}}}})
	}
	d.ok("roots.create", d.with("id", " a b/ü ", "path", "/x")).is("id", "a b/ü")
	d.ok("roots.list", d.with()).is("items", 1)
}

// §6: work that asks for a skill which nobody can name is offered to nobody who names his.
func TestWorkThatNeedsAnUnnamableSkillIsNotOffered(t *testing.T) {
	d := newDesk(t)
	odd := d.ok("assignments.create", d.item("role_id", d.role, "skill_ids", []string{"!!!"})).id()
	half := d.ok("assignments.create", d.item("role_id", d.role, "skill_ids", []string{"go", "???"})).id()
	named := d.ok("assignments.create", d.item("role_id", d.role, "skill_ids", []string{"Go"})).id()
	for _, c := range []struct {
		skills any
		want   []string
	}{{[]string{}, []string{d.asgn}}, {[]string{"!!!", "!"}, []string{d.asgn}}, {[]string{"go", "!!!"}, []string{d.asgn, named}},
		{nil, []string{d.asgn, odd, half, named}}} {
		got := []string{}
		for _, i := range d.ok("assignments.next", d.with("skill_ids", c.skills)).at("items").([]any) {
			got = append(got, i.(map[string]any)["id"].(string))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("with the skills %v: %v, want %v", c.skills, got, c.want)
		}
	}
	d.ok("assignments.get", d.with("assignment_id", odd)).is("desired_agent.skill_ids.0", "!!!")
	if w := d.ok("assignments.launch_packet", d.with("assignment_id", odd)); !strings.Contains(fmt.Sprint(w.at("warnings")), "!!!") {
		t.Errorf("nothing warns of it: %v", w.at("warnings"))
	}
	d.ok("projects.health", d.with()).is("summary.project_skill_issue_count", 3) // review of the role, go, and what cannot be named
}

// Case 57: text that is no Unicode is refused, never changed on the way in.
func TestTextThatIsNoUnicodeIsRefused(t *testing.T) {
	d := newDesk(t)
	call := func(name string) map[string]any {
		raw, ok := d.server.HandleMessage(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"projects.create","arguments":{"name":"`+name+`"}}}`))
		var out struct {
			Result struct{ StructuredContent map[string]any }
		}
		if err := json.Unmarshal(raw, &out); err != nil || !ok {
			t.Fatal(err)
		}
		return out.Result.StructuredContent
	}
	for _, bad := range []string{"a\xffb", "a\xed\xa0\x80b", `a\ud800b`, `a\udc00b`, `\ud83d`, `\ud83d\ud83d\ude00`, `\uD83Dx`, `\\\ud800`, `a\ud83d\n`} {
		if e, ok := call(bad)["error"].(map[string]any); !ok || e["code"] != "invalid" {
			t.Errorf("%q: %v", bad, e)
		}
	}
	for in, want := range map[string]string{`\ud83d\ude00`: "😀", `\\ud800`: `\ud800`, `\\\ud83d\ude00`: `\😀`, `\u00e9\uFFFD`: "é\uFFFD", "😀": "😀"} {
		if got := call(in)["name"]; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := d.ok("projects.list", nil).n("items"); got != 6 {
		t.Errorf("%d projects", got)
	}
}

// §7: what a replacement refers to is looked for before the record is compared, also where
// the expectation names the same that is not there.
func TestAReplacementNeedsItsReferencesFirst(t *testing.T) {
	d := newDesk(t)
	a := d.ok("assignments.get", d.on())
	shape := func(pairs ...any) args {
		out := args{"work_item_id": d.work, "role_id": d.role, "execution_mode": "mcp_pull", "desired_agent": args{"kind": "any"}}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	for _, field := range []string{"role_id", "root_id", "work_item_id"} {
		d.fails("not_found", "assignments.update", d.on("expected", shape(field, "none"), "expected_updated_at", a.str("updated_at"), "replacement", shape(field, "none")))
	}
	// A role and a root that it has may be gone by now; that keeps it editable.
	d.ok("roots.create", d.with("id", "r", "path", "/x"))
	a = d.ok("assignments.update", d.on("expected", shape(), "expected_updated_at", a.str("updated_at"), "replacement", shape("root_id", "r")))
	d.ok("roots.delete", d.with("root_id", "r"))
	d.ok("roles.delete", d.with("id", d.role))
	d.ok("assignments.update", d.on("expected", shape("root_id", "r"), "expected_updated_at", a.str("updated_at"), "replacement", shape("root_id", "r", "execution_mode", "manual")))
}

// §5: what is left out is named whole.
func TestSkillsRefuseAndWarnInFull(t *testing.T) {
	d := newDesk(t)
	d.fails("invalid", "skills.update", d.with("id", "!!!", "title", "x"))
	d.fails("invalid", "skills.update", d.with("id", " ", "title", "x"))
	d.fails("not_found", "skills.update", d.with("id", "none", "title", "x"))
	var tools []string
	for i := range 40 {
		tools = append(tools, fmt.Sprintf("a-tool-with-a-rather-long-name-%02d", i))
	}
	got := d.ok("skills.create", d.with("id", "many", "suggested_tools", tools)).is("suggested_tools", 16, "warnings", 1).str("warnings.0")
	for _, tool := range tools[16:] {
		if !strings.Contains(got, tool) {
			t.Errorf("%q does not name %s", got, tool)
		}
	}
	huge := d.ok("skills.create", d.with("id", "huge", "suggested_tools", append(tools, strings.Repeat("z", 200<<10)))).str("warnings.0")
	if len(huge) > 8<<10 || !strings.HasSuffix(huge, "…") {
		t.Errorf("the warning has %d bytes", len(huge))
	}
}

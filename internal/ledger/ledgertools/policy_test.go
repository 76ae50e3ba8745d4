package ledgertools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
)

// harmless are the tools that change nothing, by hand: an annotation that changes must be
// looked at here, because read-only mode rests on it.
var harmless = strings.Fields(`
	coordination.capabilities
	projects.list projects.get projects.activity projects.health projects.operations_brief projects.setup_readiness
	roots.list context_sources.list skills.list roles.list
	work_items.list work_items.get work_items.closeout_readiness
	assignments.list assignments.get assignments.next assignments.context assignments.launch_packet
	artifacts.list artifacts.get evidence.list evidence.get reviews.list reviews.get handoffs.list handoffs.get
	memory_entries.list memory_entries.get memory_candidates.list memory_candidates.get
	assistant.proposals.list assistant.proposals.get`)

func everyTool(t *testing.T) (out []string) {
	t.Helper()
	all, err := ledgertools.Declarations()
	if err != nil || len(all) != 78 {
		t.Fatalf("%d tools, %v", len(all), err)
	}
	for _, d := range all {
		out = append(out, d.Name)
	}
	return out
}

// left are the tools that a policy leaves, as tools/list would show them; Has must agree for
// every tool there is.
func left(t *testing.T, p ledgertools.Policy) (out []string) {
	t.Helper()
	o, err := p.Offer()
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	var listed []struct{ Name string }
	if err := json.Unmarshal(o.Catalogue(), &listed); err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		out = append(out, l.Name)
	}
	for _, name := range everyTool(t) {
		if o.Has(name) != slices.Contains(out, name) {
			t.Errorf("%+v: %s is listed: %v, and called: %v", p, name, !o.Has(name), o.Has(name))
		}
	}
	if o.Has("no.tool") {
		t.Errorf("%+v leaves a tool that is not there", p)
	}
	return out
}

func TestAPolicyLeavesExactlyTheseOfAllTools(t *testing.T) {
	all := everyTool(t)
	of := func(keep func(name string) bool) (out []string) {
		for _, name := range all {
			if keep(name) {
				out = append(out, name)
			}
		}
		return out
	}
	type policy = ledgertools.Policy
	readOnly := func(name string) bool { return slices.Contains(harmless, name) }
	for name, c := range map[string]struct {
		policy policy
		want   []string
	}{
		"everything":      {policy{}, all},
		"read only":       {policy{ReadOnly: true}, of(readOnly)},
		"no view":         {policy{NoView: true}, all},
		"no discovery":    {policy{NoDiscovery: true}, of(func(n string) bool { return n != "skills.discover" })},
		"a family":        {policy{Only: []string{"assistant.*"}}, []string{"assistant.propose", "assistant.proposals.list", "assistant.proposals.get", "assistant.apply"}},
		"part of one":     {policy{Only: []string{"assistant.proposals.*"}}, []string{"assistant.proposals.list", "assistant.proposals.get"}},
		"its order":       {policy{Only: []string{"roles.list", "projects.get", "roles.*", "roles.list"}}, []string{"projects.get", "roles.list", "roles.create", "roles.update", "roles.delete"}},
		"a read family":   {policy{ReadOnly: true, Only: []string{"roots.*", "roles.create"}}, []string{"roots.list"}},
		"no reading":      {policy{NoDiscovery: true, Only: []string{"skills.*"}}, []string{"skills.list", "skills.create", "skills.update"}},
		"all of it":       {policy{ReadOnly: true, NoDiscovery: true, NoView: true}, of(readOnly)},
		"a list of every": {policy{Only: all}, all},
	} {
		if diff := cmp.Diff(c.want, left(t, c.policy)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range all { // each one alone
		if got := left(t, policy{Only: []string{name}}); len(got) != 1 || got[0] != name {
			t.Errorf("%s leaves %v", name, got)
		}
	}
}

// A list that names nothing real is a mistake: to go on would leave an agent without the tool
// that was meant, or with more than was meant.
func TestAPolicyThatNamesNoToolIsRefused(t *testing.T) {
	for _, entry := range []string{"assignment.claim", "assignment.*", "Projects.get", "", "*", ".*", "*.get", "projects*", "projects.", "projects.get.*", "assistant.prop*", "assistant.propos.*"} {
		o, err := ledgertools.Policy{Only: []string{"projects.get", entry}}.Offer()
		if _, msg, _ := fault.Public(err); o != nil || !fault.Is(err, fault.Invalid) || !strings.Contains(msg, `"`+entry+`"`) {
			t.Errorf("%q: %v", entry, err)
		}
	}
	for _, p := range []ledgertools.Policy{{Only: []string{}}, {Only: []string{"roles.create"}, ReadOnly: true}, {Only: []string{"skills.discover"}, NoDiscovery: true}} {
		o, err := p.Offer()
		if _, msg, _ := fault.Public(err); o != nil || !fault.Is(err, fault.Invalid) || !strings.Contains(msg, "leave no tool") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// What no switch touches is the catalogue as it is, and without the view only its links go.
func TestAPolicyChangesNothingOfWhatItLeaves(t *testing.T) {
	for _, p := range []ledgertools.Policy{{}, {Only: everyTool(t)}} {
		if o, err := p.Offer(); err != nil || string(o.Catalogue()) != string(ledgertools.Catalogue()) || !o.View() {
			t.Errorf("%+v changed the catalogue, %v", p, err)
		}
	}
	o, err := ledgertools.Policy{NoView: true}.Offer()
	if err != nil {
		t.Fatal(err)
	}
	var with, without []map[string]any
	if err := json.Unmarshal(ledgertools.Catalogue(), &with); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(o.Catalogue(), &without); err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, tool := range with {
		if _, ok := tool["_meta"]; ok {
			links++
			delete(tool, "_meta")
		}
	}
	if diff := cmp.Diff(with, without); diff != "" || links != 3 || o.View() {
		t.Errorf("%d links; %s", links, diff)
	}
}

package hosttools_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/catalogue/hosttools"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// registry is the table as it is published. Its handlers are never called, so no use case
// stands behind them.
func registry(t *testing.T, extended bool) *toolkit.Registry {
	t.Helper()
	r := toolkit.New()
	if err := hosttools.Register(r, hosttools.Services{}, extended); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheCatalogueIsExactlyTheseToolsInThisOrder(t *testing.T) { // spec case 16
	want := []string{"list", "watch", "unwatch", "list_resumable_threads", "native_inspect", "model_options", "set_model", "new_thread", "reconcile_binding",
		"resume_thread", "status", "send", "respond", "respond_interaction", "approve", "renew", "retry_callback", "cancel", "close"}
	more := []string{"repair_model_control", "identify_foreground", "identify_and_send", "permission_options", "set_permissions"}
	for i := range want {
		want[i] = "agent_knock_knock_" + want[i]
	}
	for i := range more {
		more[i] = "agent_knock_knock_" + more[i]
	}
	if diff := cmp.Diff(want, registry(t, false).Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append(want, more...), registry(t, true).Names()); diff != "" {
		t.Error(diff)
	}
}

// The annotations are read by Hosts that ask a person first: each must be true.
func TestTheAnnotationsTellTheTruth(t *testing.T) {
	readOnly := []string{"list", "status", "list_resumable_threads"}
	destructive := []string{"approve", "cancel", "close", "set_permissions"} // may end, discard or overwrite something
	for _, tool := range registry(t, true).Tools() {
		name, a := strings.TrimPrefix(tool.Name, catalogue.Prefix), tool.Annotations()
		if a.ReadOnly != slices.Contains(readOnly, name) {
			t.Errorf("%s says readOnly %v", name, a.ReadOnly)
		}
		if slices.Contains(destructive, name) && !a.Destructive {
			t.Errorf("%s does not say that it is destructive", name)
		}
		if a.ReadOnly && a.Destructive {
			t.Errorf("%s is both", name)
		}
	}
}

func TestEveryToolHasItsSchemasAndNoSchemaIsWithoutATool(t *testing.T) {
	var files []string
	err := fs.WalkDir(os.DirFS("../../../schemas/tools"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == "harness" {
			return fs.SkipDir // another command's tools
		}
		if err == nil && !d.IsDir() {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range catalogue.Order() {
		want = append(want, name+".input.schema.json", name+".output.schema.json")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
}

// A description is for a model: when to use the tool, and what to do on each outcome. One
// that is too short says neither, one that is too long is not read.
func TestDescriptionsAreForAModel(t *testing.T) {
	total := 0
	for _, tool := range registry(t, false).Tools() {
		total += len(tool.Description)
		if n := len(tool.Description); n < 150 || n > 2000 {
			t.Errorf("%s: %d bytes", tool.Name, n)
		}
		if tool.Title == "" || len(tool.Output) == 0 {
			t.Errorf("%s has no title or no output schema", tool.Name)
		}
	}
	if total > 24<<10 {
		t.Errorf("all descriptions together have %d bytes", total)
	}
}

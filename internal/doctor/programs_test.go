package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/version"
)

// A program that an install may leave out is a note when it is not there, and as wrong as
// any other when it is there and of another release.
func TestAMissingSiblingIsANoteOnlyWhereAnInstallMayLeaveItOut(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		p    Program
		want Status
		says string
	}{
		"there":                 {Program{Path: script("akk-a", "echo akk-a "+version.Version)}, OK, version.Version},
		"missing":               {Program{Path: filepath.Join(dir, "akk-b")}, Failed, "missing"},
		"missing, optional":     {Program{Path: filepath.Join(dir, "akk-b"), Without: "no traces"}, OK, "no traces"},
		"of another release":    {Program{Path: script("akk-c", "echo akk-c 0.0.1")}, Failed, "0.0.1"},
		"optional and of older": {Program{Path: script("akk-c", "echo akk-c 0.0.1"), Without: "no traces"}, Failed, "0.0.1"},
		"optional and broken":   {Program{Path: script("akk-d", "exit 3"), Without: "no traces"}, Failed, "exit status 3"},
		"another program":       {Program{Path: script("akk-e", "echo hello world")}, Failed, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			r := MachineReport{OK: true}
			Machine{Programs: []Program{tc.p}}.programs(t.Context(), &r)
			if len(r.Checks) != 1 || r.Checks[0].Status != tc.want || !strings.Contains(r.Checks[0].Detail, tc.says) || (tc.want == Failed) != (r.Checks[0].Hint != "") || r.OK != (tc.want == OK) {
				t.Errorf("%+v", r)
			}
		})
	}
}

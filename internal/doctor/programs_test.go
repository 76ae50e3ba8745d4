package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/version"
)

// nothing is a PATH on which nothing is.
func nothing(string) (string, error) { return "", errors.New("not found") }

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
			m := Machine{Programs: []Program{tc.p}, LookPath: nothing}
			m.programs(&r, m.versions(t.Context()))
			if len(r.Checks) != 1 || r.Checks[0].Status != tc.want || !strings.Contains(r.Checks[0].Detail, tc.says) || (tc.want == Failed) != (r.Checks[0].Hint != "") || r.OK != (tc.want == OK) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The agents are shown with their versions. One that hangs, and what it started, costs its
// own bound, however many others hang beside it.
func TestAgentsAreShownWithTheirVersionsAndOneThatHangsDelaysNobody(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"codex": "echo codex-cli 1.2.3; echo more", "claude": "sleep 60", "akk-a": "sleep 60 & wait"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := Machine{Programs: []Program{{Path: filepath.Join(dir, "akk-a")}}, LookPath: func(name string) (string, error) { return filepath.Join(dir, name), nil }}
	start := time.Now()
	said := m.versions(t.Context())
	if took := time.Since(start); took > 2*programLimit-killGrace { // one after the other would take longer
		t.Errorf("it took %s", took)
	}
	r := MachineReport{OK: true}
	m.agents(&r, said)
	m.programs(&r, said)
	if len(r.Checks) != 3 {
		t.Fatalf("%+v", r.Checks)
	}
	codex, claude, sibling := r.Checks[0], r.Checks[1], r.Checks[2]
	if codex.Status != OK || codex.Path != filepath.Join(dir, "codex") || codex.Version != "codex-cli 1.2.3" || codex.Detail != codex.Path+": codex-cli 1.2.3" {
		t.Errorf("%+v", codex)
	}
	if sibling.Status != Unchecked { // slow is not broken
		t.Errorf("%+v", sibling)
	}
	for _, c := range []Check{claude, sibling} {
		if c.Status == OK || c.Hint == "" || !strings.HasSuffix(c.Detail, "does not say its version within 2s") {
			t.Errorf("%+v", c)
		}
	}
}

// Output of any length, or held open by what a program left behind, is no delay.
func TestOfAnAnswerOnlyTheBeginningIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "akk-a")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 60 &\nhead -c 1000000 /dev/zero | tr '\\0' x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if s := ask(t.Context(), path); s.err != nil || s.text != strings.Repeat("x", maxSaying) {
		t.Errorf("%d bytes, %v", len(s.text), s.err)
	}
	if took := time.Since(start); took > programLimit {
		t.Errorf("it took %s", took)
	}
}

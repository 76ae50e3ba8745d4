package skillfind_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/skillfind"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, dir string, sources ...ledger.Source) map[string]ledger.FoundSkill {
	t.Helper()
	all, err := skillfind.Finder{}.Find(t.Context(), ledger.Project{Roots: []ledger.Root{{ID: "r", Path: dir, Active: true}}, ContextSources: sources})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ledger.FoundSkill{}
	for _, s := range all {
		out[s.ID] = s
	}
	return out
}

// Case 55.
func TestSkillsAreFoundInTheirFoldersAndWhereGuidesPoint(t *testing.T) {
	dir := t.TempDir()
	for i, base := range ledger.SkillBases {
		write(t, dir, base+"/skill-"+string(rune('a'+i))+"/SKILL.md", "# Heading\nbody\n")
	}
	write(t, dir, ".agents/skills/Code Review/SKILL.md", "---\nname: \"Review\"\ndescription: D\nhecate:\n  suggested_tools:\n    - grep\n    - 'read'\n  required_permissions:\n    tools: yes\n    network: off\n    odd: true\n---\nsecret body\n")
	write(t, dir, "docs/tools/skills/lint/SKILL.md", "---\ntitle: Lint\n---\n")
	write(t, dir, "docs/AGENTS.md", "Use (tools/skills/*/SKILL.md), https://x.test/skills/y, /etc/skills, ../../up/skills.")
	write(t, dir, "big/skills/no/SKILL.md", "# No\n")
	write(t, dir, "GEMINI.md", "big/skills\n"+strings.Repeat("x", ledger.MaxSkillFile))
	got := find(t, dir, ledger.Source{ID: "g", Locator: "docs/AGENTS.md", Enabled: true}, ledger.Source{ID: "big", Locator: "GEMINI.md", Enabled: true},
		ledger.Source{ID: "off", Locator: "docs/AGENTS.md"}, ledger.Source{ID: "up", Locator: "../AGENTS.md", Enabled: true})
	if len(got) != len(ledger.SkillBases)+2 {
		t.Errorf("found %v", got)
	}
	r := got["code-review"]
	if r.Title != "Review" || r.Description != "D" || strings.Join(r.SuggestedTools, ",") != "grep,read" || r.RequiredPermissions.Writes != nil ||
		r.RequiredPermissions.Tools == nil || !*r.RequiredPermissions.Tools || r.RequiredPermissions.Network == nil || *r.RequiredPermissions.Network {
		t.Errorf("%+v", r)
	}
	if l := got["lint"]; l.Title != "Lint" || l.Path != "docs/tools/skills/lint/SKILL.md" || strings.Join(l.SourceRefs, ",") != "g" || l.RootID != "r" {
		t.Errorf("%+v", l)
	}
	if got["skill-a"].Title != "Heading" {
		t.Errorf("%+v", got["skill-a"])
	}
}

// A link never leads out of the root, and what is no file is not waited for.
func TestNothingOutsideARootIsRead(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, "secret/SKILL.md", "# The secret of another file\n")
	write(t, outside, "passwd", "# root of all\n")
	write(t, dir, ".agents/skills/inner/SKILL.md", "# Inner\n")
	for link, to := range map[string]string{
		".agents/skills/folder": filepath.Join(outside, "secret"),
		".claude/skills":        outside,
		".agents/skills/loop":   filepath.Join(dir, ".agents/skills/loop"),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".agents/skills/file"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "passwd"), filepath.Join(dir, ".agents/skills/file/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".agents/skills/pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".agents/skills/pipe/SKILL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find(t, dir); len(got) != 1 || got["inner"].Title != "Inner" {
		t.Errorf("found %v", got)
	}
}

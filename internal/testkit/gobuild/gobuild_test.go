package gobuild

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const pkg = "github.com/agent-knock-knock/akk/internal/testkit/standin/cmd/standin"

func TestALinkIsTheProgramUnderAnotherName(t *testing.T) {
	codex := Link(t, pkg, "codex")
	if filepath.Base(codex) != "codex" {
		t.Fatal(codex)
	}
	out, err := exec.Command(codex, "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "codex-cli ") {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestABrokenPackageIsNamedInTheFailure(t *testing.T) {
	_, err := compiled("github.com/agent-knock-knock/akk/internal/testkit/nothing-here", nil)
	if err == nil || !strings.Contains(err.Error(), "nothing-here") {
		t.Fatal(err)
	}
}

//go:build e2e

package e2e

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

//go:embed mcpclient/package.json
var mcpClientJSON []byte

//go:embed mcpclient/package-lock.json
var mcpClientLock []byte

//go:embed mcpclient/walk.mjs
var walk []byte

// The official TypeScript client, which checks every result, walks the whole pull flow
// (case 1, D3): on the ledger's own server, and on a Bridge that serves both toolsets.
func TestRealTheOfficialTypeScriptClientWalksThePullFlow(t *testing.T) {
	t.Parallel()
	bin := realagent.Packages{JSON: mcpClientJSON, Lock: mcpClientLock}.Need(t)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Dir(bin), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "walk.mjs")
	if err := os.WriteFile(script, walk, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	for name, server := range map[string][]string{
		"78": {w.bin, "coordination", "mcp", "--db", filepath.Join(dir, "ledger.db")},
		"97": append(w.commandLine(), "--toolsets", "terminal,coordination"),
	} {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{script, name}, server...)...)
		cmd.Env = append(os.Environ(), w.host.Env...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ok ") {
			t.Errorf("%s tools: %v\n%s", name, err, out)
		}
	}
}

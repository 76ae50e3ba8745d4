//go:build e2e

package ledgerserver_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sdk is the official TypeScript SDK of MCP, at a version whose client checks results.
const sdk = "@modelcontextprotocol/sdk@1.32.2"

// Case 1 and D3: the official TypeScript client, which checks every result, walks the
// whole pull flow. npm fetches the client; AKK_MCP_SDK names a directory that has it.
func TestRealTheOfficialTypeScriptClientWalksThePullFlow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	dir := os.Getenv("AKK_MCP_SDK")
	if dir == "" {
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
			t.Fatal(err)
		}
		run(dir, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", sdk)
	}
	work := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/walk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "walk.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(work, "agent-knock-knock")
	run(".", "go", "build", "-o", server, "github.com/agent-knock-knock/akk/bridge")
	out := run(work, "node", "walk.mjs", server, "coordination", "mcp", "--db", filepath.Join(work, "ledger.db"))
	if !strings.HasPrefix(out, "ok ") {
		t.Error(out)
	}
}

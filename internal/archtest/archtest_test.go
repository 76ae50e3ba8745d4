// Package archtest holds the house rules of this repository as a test: who may import
// whom, which library may be used where, how long a file may be. A rule that is not
// checked here is a wish.
package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module  = "github.com/agent-knock-knock/akk"
	maxFile = 500 // lines: a longer file has found a second subject
)

// floors orders the house, lowest first. A package imports its own floor or lower ones.
var floors = [][]string{
	{"internal/fault", "internal/ids", "internal/clock", "internal/strictjson", "internal/redact", "internal/lifecycle", "internal/version", "internal/pattern", "internal/crashpoint", "schemas", "examples/host-profiles"},
	{"internal/turn", "internal/outbox", "internal/profile", "internal/watch", "internal/native", "internal/policy", "internal/offer", "internal/ledger", "internal/ledger/overview", "internal/harness", "internal/harness/config", "internal/telemetry"},
	{"internal/store", "internal/store/table", "internal/turn/turnsql", "internal/outbox/outboxsql", "internal/watch/watchsql", "internal/native/nativesql", "internal/ledger/ledgersql", "internal/harness/harnesssql"},
	{"internal/procinfo", "internal/tmux", "internal/agent", "internal/agent/logend", "internal/agent/codex", "internal/agent/codex/known", "internal/agent/codex/rollout", "internal/agent/codex/screen", "internal/agent/codex/appserver", "internal/agent/codex/panel", "internal/agent/claude/panel", "internal/agent/claude", "internal/agent/claude/known", "internal/agent/claude/screen", "internal/agent/claude/transcript", "internal/proc", "internal/observe", "internal/callbackexec", "internal/discover", "internal/keyboard", "internal/harness/acp", "internal/harness/quirks", "internal/harness/launch", "internal/harness/client", "internal/harness/logkeeper"},
	{"proto/akk/monitor/v1", "proto/akk/callback/v1", "proto/akk/handoff/v1", "proto/akk/control/v1", "internal/wire", "internal/supervise", "internal/control"},
	{"internal/turn/dispatch", "internal/outbox/delivery", "internal/reconcile", "internal/retention", "internal/doctor", "internal/pane", "internal/watch/watcher", "internal/native/threads", "internal/native/panels", "internal/ledger/coord", "internal/ledger/skillfind", "internal/harness/sessions", "internal/harness/autostart", "internal/telemetry/feed"},
	{"internal/toolkit", "internal/mcpserver", "internal/turn/turntools", "internal/watch/watchtools", "internal/native/nativetools", "internal/ledger/ledgertools", "internal/ledger/ledgerserver", "internal/harness/harnessserver", "internal/harness/harnesstools", "internal/catalogue", "internal/catalogue/hosttools", "internal/top", "internal/top/live", "internal/telemetry/export", "internal/cli"},
	{"bridge", "bridge/coordination", "monitor", "worker", "internal/dist", "internal/top/akktop", "internal/telemetry/akktelemetry", "examples/host", "examples/ledger-embed"},
}

// allowed names the only places that may import a library.
var allowed = map[string][]string{
	"database/sql":                            {"internal/store", "internal/store/table", "internal/turn/turnsql", "internal/outbox/outboxsql", "internal/watch/watchsql", "internal/native/nativesql", "internal/ledger/ledgersql", "internal/harness/harnesssql"},
	"modernc.org/sqlite":                      {"internal/store"},
	"github.com/modelcontextprotocol/go-sdk/": {"internal/toolkit", "internal/mcpserver", "examples/host"},
	"github.com/hashicorp/go-plugin":          {"internal/wire", "internal/supervise"},
	"google.golang.org/grpc":                  {"internal/wire", "internal/supervise", "internal/control", "proto/akk/control/v1", "proto/akk/monitor/v1", "proto/akk/callback/v1", "proto/akk/handoff/v1"},
	"github.com/charmbracelet/bubbletea":      {"internal/top/live"},
	"go.opentelemetry.io/otel":                {"internal/telemetry/export"},
	"github.com/spf13/cobra":                  {"internal/cli", "internal/dist"},
}

// pure packages hold rules: values in, values out.
var pure = []string{"internal/turn", "internal/outbox", "internal/fault", "internal/watch", "internal/native", "internal/policy", "internal/ledger", "internal/ledger/overview", "internal/harness", "internal/telemetry"}

type file struct {
	path  string // relative to the repository
	dir   string
	test  bool
	lines int
	ast   *ast.File
}

func TestHouseRules(t *testing.T) {
	files := load(t)
	level := map[string]int{}
	for i, floor := range floors {
		for _, p := range floor {
			level[p] = i
		}
	}
	documented := map[string]bool{}
	for _, f := range files {
		generated := strings.HasSuffix(f.path, ".pb.go")
		if f.ast.Doc != nil {
			documented[f.dir] = true
		}
		if f.lines > maxFile && !generated {
			t.Errorf("%s has %d lines, the limit is %d", f.path, f.lines, maxFile)
		}
		testOnly := f.test || strings.HasPrefix(f.dir, "internal/testkit")
		own, known := level[f.dir]
		if !testOnly && !known {
			t.Errorf("%s: package %s has no floor; add it to this test", f.path, f.dir)
		}
		for _, spec := range f.ast.Imports {
			checkImport(t, f, strings.Trim(spec.Path.Value, `"`), testOnly, own, level)
		}
		if !testOnly {
			checkCalls(t, f)
		}
	}
	for _, f := range files {
		if !f.test && !documented[f.dir] && !strings.HasPrefix(f.dir, "proto/") { // generated: the .proto is the text
			documented[f.dir] = true // once
			t.Errorf("package %s has no package comment", f.dir)
		}
	}
}

func checkImport(t *testing.T, f file, imp string, testOnly bool, own int, level map[string]int) {
	t.Helper()
	if rest, ours := strings.CutPrefix(imp, module+"/"); ours {
		if testOnly {
			return
		}
		if strings.HasPrefix(rest, "internal/testkit") {
			t.Errorf("%s imports %s: the test kit is for tests", f.path, rest)
		} else if to, ok := level[rest]; ok && to > own {
			t.Errorf("%s imports %s, which is on a higher floor", f.path, rest)
		}
		return
	}
	if testOnly {
		return
	}
	for lib, places := range allowed {
		if (imp == strings.TrimSuffix(lib, "/") || strings.HasPrefix(imp, strings.TrimSuffix(lib, "/")+"/")) && !slices.Contains(places, f.dir) {
			t.Errorf("%s imports %s; only %v may", f.path, imp, places)
		}
	}
	if slices.Contains(pure, f.dir) {
		switch imp {
		case "os", "net", "os/exec", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "context":
			t.Errorf("%s imports %s: rules do no I/O", f.path, imp)
		}
	}
}

// checkCalls refuses calls that hide a clock in a rule, a context without an owner, a write
// to stdout, which belongs to MCP alone, or a memory limit that a program can outgrow.
func checkCalls(t *testing.T, f file) {
	t.Helper()
	isMain := f.dir == "bridge" || f.dir == "bridge/coordination" || f.dir == "monitor" || f.dir == "worker" || f.dir == "internal/dist" || f.dir == "internal/top/akktop" || f.dir == "internal/telemetry/akktelemetry" || strings.HasPrefix(f.dir, "examples/")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		switch name := pkg.Name + "." + sel.Sel.Name; name {
		case "time.Now", "time.After", "time.Since":
			if slices.Contains(pure, f.dir) {
				t.Errorf("%s calls %s: a rule takes now as an argument", f.path, name)
			}
		case "context.Background", "context.TODO":
			if !isMain {
				t.Errorf("%s calls %s: take the caller's ctx", f.path, name)
			}
		case "debug.SetMemoryLimit":
			t.Errorf("%s calls %s: see docs/adr/0009-no-memory-limit.md", f.path, name)
		case "fmt.Print", "fmt.Println", "fmt.Printf", "os.Stdout":
			if !isMain {
				t.Errorf("%s uses %s: stdout belongs to MCP", f.path, name)
			}
		}
		return true
	})
}

func TestWorkersLinkNoStore(t *testing.T) {
	for _, main := range []string{"./monitor", "./worker"} {
		cmd := exec.Command("go", "list", "-deps", main)
		cmd.Dir = root(t)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go list %s: %v\n%s", main, err, out)
		}
		for _, bad := range []string{module + "/internal/store", "modernc.org/sqlite", "database/sql", module + "/internal/turn/dispatch"} {
			if bytes.Contains(out, []byte(bad+"\n")) {
				t.Errorf("%s links %s: a worker is a sensor or an actuator, only the Bridge writes", main, bad)
			}
		}
	}
}

// The SDK and its exporters take their time at every start: only akk-telemetry has them.
func TestNoOtherProgramLinksOpenTelemetry(t *testing.T) {
	for _, main := range []string{"./bridge", "./monitor", "./worker", "./internal/top/akktop"} {
		cmd := exec.Command("go", "list", "-deps", main)
		cmd.Dir = root(t)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go list %s: %v\n%s", main, err, out)
		}
		if bytes.Contains(out, []byte("go.opentelemetry.io/")) {
			t.Errorf("%s links OpenTelemetry", main)
		}
	}
}

func TestTopLevelIsClosed(t *testing.T) {
	want := []string{"bridge", "worker", "monitor", "proto", "internal", "schemas", "examples", "docs", "go.mod", "go.sum", "buf.yaml", "Makefile",
		"README.md", "LICENSE", "CHANGELOG.md", ".ci", ".gitignore"}
	cmd := exec.Command("git", "ls-tree", "--name-only", "HEAD")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, name := range strings.Fields(string(out)) {
		if !slices.Contains(want, name) {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}

func load(t *testing.T) []file {
	t.Helper()
	base := root(t)
	fset := token.NewFileSet()
	var out []file
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(base, p)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || name == "bin" || name == "dist" || rel == "internal/buildtools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, file{path: rel, dir: path.Dir(filepath.ToSlash(rel)), test: strings.HasSuffix(p, "_test.go"), lines: bytes.Count(src, []byte("\n")), ast: tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// Package gobuild compiles commands of this module for tests, once per test process, and
// puts them where and under the name a test wants. It builds only what it is asked for
// and starts nothing.
package gobuild

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// TB is what this package needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
}

// keep is how long binaries of other versions stay in the build folder.
const keep = 24 * time.Hour

type result struct {
	sync.Once
	path string
	err  error
}

var (
	mu      sync.Mutex
	results = map[string]*result{}
)

// Program returns the compiled command pkg (an import path). It is shared: a test must
// not change it.
func Program(tb TB, pkg string, flags ...string) string {
	tb.Helper()
	path, err := compiled(pkg, flags)
	if err != nil {
		tb.Fatalf("gobuild: %v", err)
	}
	return path
}

// Link puts the command pkg as name into a new folder of the test and returns its path:
// a hard link, so that /proc shows the name.
func Link(tb TB, pkg, name string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.Link(Program(tb, pkg), path); err != nil {
		tb.Fatalf("gobuild: %v", err)
	}
	return path
}

func compiled(pkg string, flags []string) (string, error) {
	key := fmt.Sprint(pkg, flags)
	mu.Lock()
	r := results[key]
	if r == nil {
		r = &result{}
		results[key] = r
	}
	mu.Unlock()
	r.Do(func() { r.path, r.err = compile(pkg, flags) })
	return r.path, r.err
}

// compile builds beside the tests' own folders, under the hash of the content: processes
// that test different versions at once do not disturb each other.
func compile(pkg string, flags []string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("akk-testkit-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	prune(dir)
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	bin := filepath.Join(tmp, "program")
	// As the Makefile builds, so that tests and budgets measure what ships.
	args := append([]string{"build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", bin}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", pkg, err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%x", filepath.Base(pkg), sha256.Sum256(data)))
	return path, os.Rename(bin, path)
}

func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the build will say what is wrong
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > keep {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

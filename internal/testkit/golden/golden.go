// Package golden compares what a test got with a file that was reviewed.
//
// It owns the -update flag of this module's tests: run "go test ./some/package -update"
// to rewrite the files, read the difference in git, and commit both. It must never know
// what the bytes mean. Only tests import it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files with what the tests got")

// Update reports whether golden files are to be rewritten. It panics when that is asked
// for in CI, where nobody would review the result.
func Update() bool {
	if *update && os.Getenv("CI") == "true" {
		panic("golden: -update is refused when CI=true; run it locally and commit the files")
	}
	return *update
}

// Equal fails the test when got differs from the file at path, or rewrites the file when
// [Update] says so. It makes missing directories.
func Equal[T ~string | ~[]byte](tb testing.TB, path string, got T) {
	tb.Helper()
	if Update() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("no golden file (run with -update to make it): %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		tb.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

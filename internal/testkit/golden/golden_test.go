package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// recorder is a testing.TB that remembers a failure instead of having one.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestEqualSeesADifference(t *testing.T) {
	path := filepath.Join(t.TempDir(), "want.txt")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, fails := range map[string]bool{"one\n": false, "two\n": true} {
		r := &recorder{TB: t}
		Equal(r, path, got)
		if r.failed != fails {
			t.Errorf("Equal(%q) failed = %v, want %v", got, r.failed, fails)
		}
	}
}

func TestUpdateIsRefusedInCI(t *testing.T) {
	t.Setenv("CI", "true")
	was := *update
	*update = true
	defer func() {
		*update = was
		if recover() == nil {
			t.Error("-update was accepted with CI=true")
		}
	}()
	Update()
}

package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
)

// A Bridge that keeps its lock on the Store and has no socket is no "no Bridge"; one that
// was killed left a lock that nobody holds.
func TestABridgeThatCannotBeAskedIsSeenByItsLock(t *testing.T) {
	dir := stored(t)
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	end, err := db.Announce("bridge-mute")
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(dir, presenceDir, "bridge-killed.lock")
	if err := os.WriteFile(killed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := Machine{StoreDir: dir, Places: []string{filepath.Join(t.TempDir(), "none", "bridges")}, LookPath: nothing}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(killed, old, old); err != nil {
		t.Fatal(err)
	}
	r := m.Check(t.Context())
	if r.OK || len(r.Bridges) != 1 || r.Bridges[0].BridgeID != "bridge-mute" || r.Bridges[0].Workers == nil {
		t.Fatalf("%+v", r)
	}
	if runtime.GOOS == "linux" && r.Bridges[0].PID != os.Getpid() {
		t.Errorf("its process is not named: %+v", r.Bridges[0])
	}
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == CheckBridge })
	if c := r.Checks[i]; c.Status != Unchecked || c.Hint == "" || !strings.Contains(c.Detail, "lives on this Store and cannot be asked") {
		t.Errorf("%+v", c)
	}
	end()
	r = m.Check(t.Context())
	i = slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == CheckBridge })
	if !strings.Contains(r.Checks[i].Detail, "no Bridge runs now") || len(r.Bridges) != 0 {
		t.Errorf("%+v", r.Checks[i])
	}
}

package doctor

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	killed := filepath.Join(dir, store.PresenceDir, "bridge-killed.lock")
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

// The operator's socket of a living Bridge may have ended, its file is still there. What lies
// among the locks and is none does not hold doctor up.
func TestADeadSocketOfALivingBridgeIsNoProofThatItEnded(t *testing.T) {
	dir := stored(t)
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	end, err := db.Announce("bridge-deaf")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := unix.Mkfifo(filepath.Join(dir, store.PresenceDir, "bridge-pipe.lock"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "akkd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	place := filepath.Join(root, "bridges")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(place, "bridge-deaf.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	r := Machine{StoreDir: dir, Places: []string{place}, LookPath: nothing}.Check(t.Context())
	if r.OK || len(r.Bridges) != 1 || r.Bridges[0].BridgeID != "bridge-deaf" {
		t.Errorf("%+v", r)
	}
}

func TestALockThatIsAPipeHoldsNobodyUp(t *testing.T) {
	dir := stored(t)
	path := filepath.Join(dir, store.LockName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r := MachineReport{OK: true}
	Machine{StoreDir: dir}.lock(t.Context(), &r)
	if len(r.Checks) != 1 || r.Checks[0].Status != Unchecked || r.Checks[0].Hint == "" {
		t.Errorf("%+v", r)
	}
}

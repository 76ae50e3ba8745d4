package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/store"
)

// Who keeps the Store locked is named; a lock that is free, or not there, is no problem.
func TestWhoKeepsTheStoreLockedIsNamed(t *testing.T) {
	dir := t.TempDir()
	look := func() (r MachineReport) {
		r.OK = true
		Machine{StoreDir: dir}.lock(t.Context(), &r)
		return r
	}
	if r := look(); !r.OK || len(r.Checks) != 0 {
		t.Errorf("no lock: %+v", r)
	}
	f, err := os.OpenFile(filepath.Join(dir, store.LockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := look(); !r.OK || len(r.Checks) != 1 {
		t.Errorf("free: %+v", r)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := look()
	if r.OK || len(r.Checks) != 1 || r.Checks[0].Status != Failed || r.Checks[0].Hint == "" {
		t.Fatalf("taken: %+v", r)
	}
	if runtime.GOOS == "linux" && !strings.Contains(r.Checks[0].Detail, "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("the owner is not named: %s", r.Checks[0].Detail)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if r := look(); !r.OK {
		t.Errorf("free again: %+v", r)
	}
}

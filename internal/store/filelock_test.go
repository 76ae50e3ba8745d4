package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
)

// Another process may be stopped while it holds the Store, for as long as it likes. Writers
// that give up in time must leave nothing behind that grows, and write again afterwards.
// H7 3.
func TestWritersThatGiveUpOnALockedStoreLeaveNothingBehind(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	nothing := func(*store.Tx) error { return nil }
	if err := db.Update(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(filepath.Join(dir, "akk.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // elsewhere goroutines are counted alone
		}
		return len(entries)
	}
	give := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := db.Update(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	give() // the one that waits in the kernel is there now
	files, goroutines := descriptors(), runtime.NumGoroutine()
	var all sync.WaitGroup
	start := time.Now()
	for range 100 {
		all.Go(give)
	}
	all.Wait()
	if took := time.Since(start); took > store.LockWait/2 {
		t.Errorf("callers that wait together took %s", took)
	}
	if f, g := descriptors(), runtime.NumGoroutine(); f > files+2 || g > goroutines+2 {
		t.Errorf("%d descriptors became %d, %d goroutines %d", files, f, goroutines, g)
	}
	held.Close()
	for range 3 {
		if err := db.Update(t.Context(), nothing); err != nil {
			t.Errorf("after the lock came free: %v", err)
		}
	}
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	// lockLimit is how long doctor tries for the Store's lock. A transaction holds it for
	// milliseconds; a dead owner holds nothing.
	lockLimit = time.Second
	lockPause = 20 * time.Millisecond

	regularHint = "let it be a regular file in a directory of this user, or name another directory with --store-dir"
)

// lock tries the Store's lock and lets it go at once. One that stays with one owner has an
// owner that was stopped or waits for its disk: every other Bridge's task waits for that.
// One that goes from hand to hand is in use, however busy they are.
func (m Machine) lock(ctx context.Context, r *MachineReport) {
	if m.StoreDir == "" {
		r.put(CheckStoreLock, Unchecked, noStoreHint, noStore)
		return
	}
	f, err := os.OpenFile(filepath.Join(m.StoreDir, store.LockName), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return // no Bridge has been here
	}
	if err != nil {
		r.put(CheckStoreLock, Unchecked, regularHint, "%v", err)
		return
	}
	defer f.Close() // lets the lock go
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		r.put(CheckStoreLock, Unchecked, regularHint, "%s is not a regular file", f.Name())
		return
	}
	start, pause, first := time.Now(), time.NewTicker(lockPause), 0
	defer pause.Stop()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		switch {
		case err == nil:
			r.put(CheckStoreLock, OK, "", "free")
			return
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			r.put(CheckStoreLock, Unchecked, "use a disk that has locks (flock) for --store-dir; a network disk may have none", "the Store's lock cannot be tried: %v", err)
			return
		case time.Since(start) > lockLimit:
			who, hint := "another process", "end the Bridge that does not answer; a dead one holds no lock"
			if first > 0 {
				who, hint = owner(first)
			}
			r.put(CheckStoreLock, Failed, hint, "no task can be stored: %s has kept the Store locked for more than %s", who, lockLimit)
			return
		}
		pid := flockOwner(f)
		if first > 0 && pid > 0 && pid != first {
			r.put(CheckStoreLock, OK, "", "in use, and going from one Bridge to another")
			return
		}
		first = max(first, pid)
		select {
		case <-pause.C:
		case <-ctx.Done():
			r.put(CheckStoreLock, Unchecked, "run doctor again, and let it end", "the Store's lock was not tried to the end: %v", context.Cause(ctx))
			return
		}
	}
}

// owner names the process that holds the lock, and what to do about it.
func owner(pid int) (who, hint string) {
	p, err := procinfo.Read(pid)
	if err != nil {
		return fmt.Sprintf("process %d", pid), fmt.Sprintf("look at process %d; a dead one holds no lock", pid)
	}
	if p.State == 'T' || p.State == 't' {
		return fmt.Sprintf("process %d (%s), which is stopped,", pid, p.Name), fmt.Sprintf("let it go on (kill -CONT %d) or end it (kill -KILL %d); a dead one holds no lock", pid, pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, p.Name), fmt.Sprintf("look whether its disk answers; else end it (kill %d); a dead one holds no lock", pid)
}

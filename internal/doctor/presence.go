package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	// settleLimit is how long doctor waits for a Bridge that begins, whose socket follows its
	// lock, or that ends, whose lock goes after its socket.
	settleLimit = 3 * time.Second
	settlePause = 100 * time.Millisecond
	// lockAge is the age from which a lock may be tried: the Bridge that just made the file
	// has locked it by then, and cannot meet us there.
	lockAge = time.Second
)

// unasked is a Bridge that lives on the Store and has no socket where we look.
type unasked struct {
	id  string
	pid int // 0 when the system does not tell
}

// running asks every Bridge, and looks for those of this Store that cannot be asked: without
// that, a Bridge that could make no socket would be none.
func (m Machine) running(ctx context.Context) (control.Found, []unasked) {
	found := control.AskAll(ctx, m.Places)
	if m.StoreDir == "" {
		return found, nil
	}
	pause := time.NewTicker(settlePause)
	defer pause.Stop()
	for end := time.Now().Add(settleLimit); ; {
		left, young := m.without(found)
		if len(left) == 0 && !young || time.Now().After(end) {
			return found, left
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return found, left
		}
		found = control.AskAll(ctx, m.Places)
	}
}

// without lists the living Bridges of the Store that are not among those found. young says
// that there are some of which that is not known yet.
func (m Machine) without(found control.Found) (left []unasked, young bool) {
	dir := filepath.Join(m.StoreDir, store.PresenceDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false // permissions and store say what is wrong there
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok || slices.ContainsFunc(found.Answers, func(a control.Answer) bool {
			return string(a.BridgeID) == id && !fault.Is(a.Err, fault.NotFound) // nobody listens: its lock says whether it lives
		}) {
			continue
		}
		info, err := e.Info()
		switch {
		case err != nil, !info.Mode().IsRegular(): // it went meanwhile, or is no lock of a Bridge
		case time.Since(info.ModTime()).Abs() < lockAge:
			young = true
		default:
			if pid, held := holder(filepath.Join(dir, e.Name())); held {
				left = append(left, unasked{id, pid})
			}
		}
	}
	return left, young
}

// holder reports whether a process holds the lock of the file, and which.
func holder(path string) (pid int, held bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0) // a pipe must not hold us
	if err != nil {
		return 0, !errors.Is(err, fs.ErrNotExist) // what cannot be told is alive
	}
	defer f.Close() // lets the lock go
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, false
	}
	return flockOwner(f), true
}

// state is what the report says of it.
func (u unasked) state(storeDir string) BridgeState {
	b := BridgeState{BridgeID: u.id, PID: u.pid, StoreDir: storeDir, Memory: residentBytes(u.pid), Problem: "it lives on this Store and cannot be asked", Workers: []WorkerState{}}
	b.Advice = fmt.Sprintf("see in its log why it has no socket, make that folder usable (see AKK_RUNTIME_DIR) and restart %s; "+
		"it is well if its Host has not spoken to it yet, if it is ending, or if its Host gave it another AKK_RUNTIME_DIR: run doctor again, or with that one", control.Process(u.pid))
	return b
}

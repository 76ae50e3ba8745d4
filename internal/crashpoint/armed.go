//go:build crashpoint

package crashpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// look is the pause between two looks of a process that is held. holdLimit ends a hold
// whose test is gone.
const (
	look      = 2 * time.Millisecond
	holdLimit = 5 * time.Minute
)

var (
	folder = sync.OnceValue(func() string {
		self, err := os.Executable()
		if err != nil {
			return ""
		}
		return filepath.Join(filepath.Dir(self), Folder)
	})
	mu     sync.Mutex
	passed = map[string]int{}
)

// At holds the process at a point when a test wants that.
func At(point string) {
	file := filepath.Join(folder(), "hold."+point)
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	skip, _ := strconv.Atoi(strings.TrimSpace(string(b))) // not a number: none is skipped
	mu.Lock()
	passed[point]++
	early := passed[point] <= skip
	mu.Unlock()
	held := filepath.Join(folder(), fmt.Sprintf("held.%s.%d", point, os.Getpid()))
	if early || os.Rename(file, held) != nil {
		return
	}
	pause := time.NewTicker(look)
	defer pause.Stop()
	for end := time.Now().Add(holdLimit); time.Now().Before(end); <-pause.C {
		if _, err := os.Lstat(held); err != nil {
			return
		}
	}
}

// Of is At for one of several kinds of things.
func Of(point, kind string) { At(point + "." + kind) }

// Err is the error that a test wants at a point.
func Err(point string) error {
	b, err := os.ReadFile(filepath.Join(folder(), "fail."+point))
	if err != nil {
		return nil
	}
	no, ok := map[string]syscall.Errno{"ENOSPC": syscall.ENOSPC, "EIO": syscall.EIO, "EROFS": syscall.EROFS}[strings.TrimSpace(string(b))]
	if !ok {
		return nil
	}
	return &os.PathError{Op: "write", Path: "of a test", Err: no}
}

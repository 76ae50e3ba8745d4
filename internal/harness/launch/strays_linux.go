package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// strayLimit bounds the search for what is left of a tree whose runner was lost.
const strayLimit = 2 * time.Second

// strayTick repeats the search: a process that is killed may just have started another.
const strayTick = 10 * time.Millisecond

// endMarked kills every process with the mark in the environment that it was started with, and
// returns how many are left at the limit. It is for a tree that nobody holds any more: its
// runner would have known its descendants whatever their environment.
func endMarked(mark string) (left int) {
	entry := []byte("\x00" + EnvLaunch + "=" + mark + "\x00")
	for deadline := time.Now().Add(strayLimit); ; {
		if left = killMarked(entry); left == 0 || time.Now().After(deadline) {
			return left
		}
		timer := time.NewTimer(strayTick)
		<-timer.C
	}
}

// killMarked is one search. A process is held before it is looked at, so that a reused pid is
// never hit.
func killMarked(entry []byte) (found int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// A process that ended has no environment, also before its parent reaped it.
		if env, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil && bytes.Contains(append([]byte{0}, env...), entry) {
			found++
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
	return found
}

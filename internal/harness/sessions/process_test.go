package sessions_test

import (
	"syscall"
	"time"
)

// gone waits until a process is no more.
func (w *world) gone(pid int) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for syscall.Kill(pid, 0) != syscall.ESRCH {
		if time.Now().After(deadline) {
			w.Fatalf("process %d still lives", pid)
		}
		tick(w.T)
	}
}

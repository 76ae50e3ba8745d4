package sessions_test

import (
	"fmt"
	"os"
	"time"
)

// gone waits until a process is no more.
func (w *world) gone(pid int) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("process %d still lives", pid)
		}
		tick(w.T)
	}
}

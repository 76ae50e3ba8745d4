package freeze

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// stopped reports whether every thread of the process is in state T (proc(5)), or gone.
func stopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // this thread ended
		}
		// The name in parentheses may hold anything, so the state is what follows the last one.
		if i := bytes.LastIndexByte(b, ')'); i < 0 || i+2 >= len(b) || !bytes.ContainsRune([]byte("TtZX"), rune(b[i+2])) {
			return false
		}
	}
	return true
}

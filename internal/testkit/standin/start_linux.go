package standin

import (
	"bytes"
	"os"
	"strings"
)

// processStart is when this process started, in clock ticks since boot: what
// /proc/self/stat says.
func processStart() string {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	const start = 22 - 3 // the fields after the name begin with number 3
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

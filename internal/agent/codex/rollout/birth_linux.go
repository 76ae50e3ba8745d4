package rollout

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	clockTicks = 100 // per second; the kernel's fixed unit in /proc
	// birthSlack covers the whole seconds of the boot time.
	birthSlack = 2 * time.Second
)

// ProcessStart turns a birth into wall time, a little early rather than late. The zero
// time means not known.
func ProcessStart(inc turn.Incarnation) time.Time {
	ticks, _, _ := strings.Cut(inc.Birth, "@")
	n, err := strconv.ParseInt(ticks, 10, 64)
	if err != nil {
		return time.Time{}
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	_, rest, ok := bytes.Cut(stat, []byte("\nbtime "))
	if !ok {
		return time.Time{}
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	boot, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(boot, 0).Add(time.Duration(n) * time.Second / clockTicks).Add(-birthSlack)
}

//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// killTimes kills a Bridge that has three Turns running, n times over, and measures until
// all of its workers and of their children are gone. The next Bridge takes the Turns over.
// Each one that takes longer than is promised fails the test.
func killTimes(t *testing.T, n int) []float64 {
	t.Helper()
	const running = 3
	w := newWorld(t, nil)
	for range running {
		w.agent(standin.Codex)
	}
	var out []float64
	for i := range n {
		c := w.start()
		if i == 0 {
			occupy(t, c, running)
		}
		monitors := func() []int { return children(t, c.PID(), "akk-monitor") }
		faketmux.Wait(t, "the monitors of all Turns", func() bool { return len(monitors()) == running }, func() string { return dump(monitors()) })
		family := descendants(t, c.PID())
		start := time.Now()
		c.Kill()
		for _, inc := range family {
			for end := start.Add(settle); ; <-time.After(time.Millisecond) {
				if alive, err := procinfo.Alive(inc); err == nil && !alive {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("kill %d: process %d lives %v after its Bridge", i+1, inc.PID, settle)
				}
			}
		}
		took := time.Since(start)
		if took > goneIn {
			t.Errorf("kill %d: %v until all were gone, the promise is %v", i+1, took, goneIn)
		}
		out = append(out, float64(took.Microseconds())/1000)
	}
	return out
}

package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// Each way in which a Host or a person ends a Bridge ends everything that it started, and
// nothing that it did not.
func TestEveryOrderlyEndLeavesNobodyAndTouchesNoAgent(t *testing.T) { // M08, M12, M14, M15, spec case 21
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	agent := mustProcess(t, p.PID)
	c := w.start()
	got := working(t, w, c, "after five Bridges")
	for name, end := range map[string]func(*fakehost.Client) int{
		"end of input": func(c *fakehost.Client) int { return c.Close(settle) },
		"SIGTERM":      func(c *fakehost.Client) int { c.Signal(syscall.SIGTERM); return c.WaitExit(settle) },
		"SIGHUP":       func(c *fakehost.Client) int { c.Signal(syscall.SIGHUP); return c.WaitExit(settle) },
		"SIGINT":       func(c *fakehost.Client) int { c.Signal(syscall.SIGINT); return c.WaitExit(settle) },
	} {
		waitChild(t, c.PID(), "akk-monitor")
		waitChild(t, c.PID(), "akk-callback")
		family := descendants(t, c.PID())
		begin := time.Now()
		if code := end(c); code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, c.Stderr())
		}
		if d := time.Since(begin); d > 15*time.Second {
			t.Errorf("%s: the end took %v", name, d)
		}
		waitGone(t, family)
		if alive, err := procinfo.Alive(agent); err != nil || !alive {
			t.Fatalf("%s: the human's agent was touched", name)
		}
		c = w.start()
	}
	p.Release(t, "go")
	waitCallback(t, c, got.TurnID, "delivered")
	p.typedOnce("GATE:go ;; SAY:after five Bridges")
	if d := w.host.Deliveries(); len(d) != 1 {
		t.Errorf("%d callbacks", len(d))
	}
}

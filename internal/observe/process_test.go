package observe_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The end of a real process arrives by its descriptor.
func TestTheEndOfARealProcessIsSeen(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "AKK_OBSERVE_TEST_CHILD=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	birth, err := procinfo.Birth(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	spec := observe.Spec{Ref: agent.Ref{Process: turn.Incarnation{PID: cmd.Process.Pid, Birth: birth}}}
	armed, done := make(chan struct{}), make(chan error, 1)
	var kinds []turn.ObservationKind
	s := newScript()
	go func() {
		done <- observe.Run(t.Context(), observe.Config{Screen: s}, spec, s, func(o turn.Observation) error {
			if kinds = append(kinds, o.Kind); o.Kind == turn.ObsArmed {
				close(armed)
			}
			return nil
		})
	}()
	<-armed
	stdin.Close()
	select {
	case err := <-done:
		if err != nil || !slices.Contains(kinds, turn.ObsGone) {
			t.Errorf("observed %v, %v", kinds, err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the end of the process was not seen")
	}
	cmd.Wait()
}

func TestMain(m *testing.M) {
	if os.Getenv("AKK_OBSERVE_TEST_CHILD") != "" {
		os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

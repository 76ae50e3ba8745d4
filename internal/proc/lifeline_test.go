package proc_test

import (
	"bufio"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/proc"
)

func startOnLifeline(t *testing.T, s *proc.Spawner, l *proc.Lifeline) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := self("lifeline")
	cmd.ExtraFiles = append(cmd.ExtraFiles, l.ChildEnd())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(cmd, proc.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, bufio.NewReader(out)
}

func TestEveryChildOnALifelineEndsWhenItCloses(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	l, err := proc.NewLifeline()
	if err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	for range 3 {
		cmd, out := startOnLifeline(t, s, l)
		expectLine(t, out, "ready")
		cmds = append(cmds, cmd)
	}
	runtime.GC() // an unreachable write end would be closed here
	runtime.GC()
	for _, cmd := range cmds {
		if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
			t.Fatalf("a child ended early: %v", err)
		}
	}
	l.Close()
	l.Close()
	for _, cmd := range cmds {
		guard := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		_ = cmd.Wait()
		guard.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("exit %d, want 3 (the lifeline's end)", code)
		}
	}
}

// Case M09: something else holds our pipes open, yet the parent's death is noticed.
func TestTheDeathOfTheParentIsNoticedWithoutEOF(t *testing.T) {
	parent := self("parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := parent.StdinPipe() // never closed
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	expectLine(t, lines, "ready")
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	expectLine(t, lines, "parent gone")
	_ = parent.Wait()
}

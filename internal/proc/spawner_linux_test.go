package proc_test

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/proc"
)

// dropThreads ends OS threads as fast as it can until stop is closed: each goroutine
// locks its thread and returns.
func dropThreads(stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				done := make(chan struct{})
				go func() { runtime.LockOSThread(); close(done) }()
				<-done
				runtime.Gosched()
			}
		})
	}
	return &wg
}

// Case S09. The death signal is SIGTERM here and the test kills with SIGKILL, so the wait
// status tells who ended a child.
func TestNoChildDiesWhileOtherGoroutinesDropTheirThreads(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	stop := make(chan struct{})
	droppers := dropThreads(stop)

	const children = 320
	cmds := make([]*exec.Cmd, children)
	var wg sync.WaitGroup
	for i := range cmds {
		cmds[i] = exec.Command("sleep", "600")
		if err := s.Start(cmds[i], proc.Options{DeathSignal: syscall.SIGTERM}); err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
	}
	close(stop)
	droppers.Wait()
	var mu sync.Mutex
	died := 0
	for _, cmd := range cmds {
		if err := proc.KillGroup(cmd.Process.Pid); err != nil {
			t.Error(err)
		}
		wg.Go(func() {
			if sig := signalOf(cmd.Wait()); sig != syscall.SIGKILL {
				mu.Lock()
				died++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if died > 0 {
		t.Fatalf("%d of %d children were ended by the death signal although this process lives", died, children)
	}
}

// The hazard is real on this kernel: without the Spawner a child dies with the thread.
func TestAChildStartedFromADroppedThreadDiesWithoutTheSpawner(t *testing.T) {
	started := make(chan *exec.Cmd)
	go func() {
		runtime.LockOSThread()
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			cmd = nil
		}
		started <- cmd
	}()
	cmd := <-started
	if cmd == nil {
		t.FailNow()
	}
	guard := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer guard.Stop()
	if sig := signalOf(cmd.Wait()); sig != syscall.SIGTERM {
		t.Fatalf("ended by %v, want the death signal", sig)
	}
}

func TestClosingTheSpawnerEndsChildrenThatStillRun(t *testing.T) {
	for range 20 { // whatever thread the Spawner gets, the main one included
		closeWithAChild(t)
	}
}

func closeWithAChild(t *testing.T) {
	t.Helper()
	s := proc.NewSpawner()
	cmd := exec.Command("sleep", "600")
	if err := s.Start(cmd, proc.Options{}); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(patience, func() { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGTERM) })
	defer guard.Stop()
	s.Close()
	s.Close()
	if sig := signalOf(cmd.Wait()); sig != syscall.SIGKILL {
		t.Fatalf("ended by %v, want SIGKILL from the kernel", sig)
	}
	if err := s.Start(exec.Command("true"), proc.Options{}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("start after Close: %v", err)
	}
}

func TestAStartedChildLeadsItsOwnGroupAndReadsNothing(t *testing.T) {
	s := proc.NewSpawner()
	defer s.Close()
	cmd := exec.Command("sh", "-c", `read line && exit 9; exit 0`)
	if err := s.Start(cmd, proc.Options{}); err != nil {
		t.Fatal(err)
	}
	pgid, err := syscall.Getpgid(cmd.Process.Pid)
	if err == nil && pgid != cmd.Process.Pid {
		t.Errorf("group %d, want %d", pgid, cmd.Process.Pid)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stdin was not empty: %v", err)
	}
	if err := proc.KillGroup(1); !fault.Is(err, fault.Invalid) {
		t.Errorf("KillGroup(1) = %v", err)
	}
}

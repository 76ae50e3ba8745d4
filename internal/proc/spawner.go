package proc

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Options says how a child is tied to this process. The zero value is right for most.
type Options struct {
	// DeathSignal is sent to the child by the kernel when the Spawner's thread ends, which
	// is when this process ends in any way. Zero means SIGKILL, which also ends a stopped
	// child. Linux only; elsewhere give the child a [Lifeline].
	DeathSignal syscall.Signal
}

// Spawner starts children from one thread that lives as long as the Spawner.
//
// The parent-death signal fires when the *thread* that forked ends, not the process
// (golang/go#27505). A Go thread ends when a goroutine locks it and returns, which any
// library may do, so children started from ordinary goroutines die at random.
type Spawner struct {
	reqs  chan startRequest
	close sync.Once
	ended chan struct{} // closed by Close
	done  chan struct{} // closed by the thread
}

const closeLimit = 2 * time.Second

type startRequest struct {
	start func() error
	reply chan error
}

// NewSpawner starts the thread. Make one per process and keep it.
func NewSpawner() *Spawner {
	s := &Spawner{reqs: make(chan startRequest), ended: make(chan struct{}), done: make(chan struct{})}
	go s.loop()
	return s
}

func (s *Spawner) loop() {
	runtime.LockOSThread()
	if onMainThread() {
		// Go parks the main thread instead of ending it, so Close could not end the
		// children. While this goroutine keeps it, another one gets another thread.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			s.serve()
		}()
		<-locked
		runtime.UnlockOSThread()
		return
	}
	s.serve()
}

// serve runs on a locked thread and never unlocks it: when it returns, the thread ends, and
// the kernel kills the children that Close found still running.
func (s *Spawner) serve() {
	defer close(s.done)
	for {
		select {
		case r := <-s.reqs:
			r.reply <- r.start()
		case <-s.ended:
			return
		}
	}
}

// Start starts cmd in a process group of its own, with /dev/null as stdin when cmd.Stdin
// is nil, and with the parent-death signal. It waits until exec succeeded or failed. The
// caller must call cmd.Wait, and sets cmd.WaitDelay when cmd has pipes that a grandchild
// could keep open. Other fields of cmd.SysProcAttr are kept.
func (s *Spawner) Start(cmd *exec.Cmd, o Options) error {
	if o.DeathSignal == 0 {
		o.DeathSignal = syscall.SIGKILL
	}
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	if !attr.Setsid { // a session leader leads a group already, and setpgid would fail
		attr.Setpgid, attr.Pgid = true, 0
	}
	setDeathSignal(&attr, o.DeathSignal)
	cmd.SysProcAttr = &attr

	r := startRequest{start: cmd.Start, reply: make(chan error, 1)}
	select {
	case s.reqs <- r:
		return <-r.reply
	case <-s.ended:
		return fault.New(fault.Unavailable, "proc.Start", "the spawner is closed").WithHint("this process is stopping")
	}
}

// Close ends the thread and waits for that. On Linux the kernel then sends every child
// that still runs its death signal, so end and reap children first when they should end
// in order. Close may be called twice. It waits for no longer than closeLimit: a start that
// hangs, as from a file system that does not answer, must not keep this process, and its
// end ends the thread.
func (s *Spawner) Close() {
	s.close.Do(func() { close(s.ended) })
	select {
	case <-s.done:
	case <-time.After(closeLimit):
	}
}

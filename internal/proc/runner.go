package proc

import (
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// runnerArg is the reserved argv[1] that turns our binary into a runner.
const runnerArg = "__akk-runner"

// runnerControl is the descriptor of the runner's socket to its starter.
const runnerControl = 3

// sweepLimit bounds the killing of descendants after a program ended.
const sweepLimit = time.Second

// sweepTick repeats the look for descendants when no child signal came.
const sweepTick = 5 * time.Millisecond

// MaybeRunner turns this process into a runner, and never returns, when it was started as
// one by [Runners]. Call it first in main and in TestMain, before anything heavy.
func MaybeRunner() {
	if len(os.Args) == 2 && os.Args[1] == runnerArg {
		os.Exit(serveRunner())
	}
}

// runner is the small process between us and a program that is not trusted to clean up.
// The kernel gives it every orphan among its descendants (it is a subreaper), and it
// signals only its own children that it did not reap yet, so a reused pid is never hit.
// It holds no timer for the program: its starter asks for the kill.
type runner struct {
	conn     *net.UnixConn
	children chan os.Signal // SIGCHLD
	program  int            // pid, 0 when nothing runs
}

func serveRunner() int {
	// The program's death signal belongs to the thread that starts it: this one, for ever.
	runtime.LockOSThread()
	syscall.CloseOnExec(runnerControl)
	hideInherited(runnerControl)
	if err := becomeSubreaper(); err != nil {
		return 1
	}
	file := os.NewFile(runnerControl, "control")
	if file == nil {
		return 1
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return 1
	}
	file.Close()
	control, ok := conn.(*net.UnixConn)
	if !ok {
		return 1
	}
	r := &runner{conn: control, children: make(chan os.Signal, 1)}
	// Notify, not Ignore: an ignored signal would stay ignored in the program.
	signal.Notify(r.children, syscall.SIGCHLD)
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)

	requests := make(chan received)
	go readRequests(control, requests)
	for {
		select {
		case <-ignored:
		case <-term: // the starter's thread ended
			r.end()
			return 0
		case <-r.children:
			if !r.reap() {
				return 1
			}
		case req, ok := <-requests:
			if !ok { // the starter is gone or done with us
				r.end()
				return 0
			}
			if !r.serve(req) {
				r.end()
				return 1
			}
		}
	}
}

type received struct {
	request
	fds []int
}

func readRequests(c *net.UnixConn, out chan<- received) {
	defer close(out)
	for {
		var req received
		fds, err := readFrame(c, &req.request)
		if err != nil {
			return
		}
		req.fds = fds
		out <- req
	}
}

// serve reports whether the runner is still of use.
func (r *runner) serve(req received) bool {
	defer closeAll(req.fds)
	switch req.Op {
	case "kill":
		if r.program != 0 {
			_ = syscall.Kill(-r.program, syscall.SIGKILL)
			_ = syscall.Kill(r.program, syscall.SIGKILL) // it may have left its group
		}
		return true
	case "term":
		if r.program != 0 {
			_ = syscall.Kill(-r.program, syscall.SIGTERM)
		}
		return true
	case "run":
		if r.program != 0 || len(req.fds) != stdioFiles {
			return false
		}
		attr := syscall.SysProcAttr{Setpgid: !req.Own, Setsid: req.Own, Setctty: req.TTY} // a session leader leads a group too; Ctty 0 is its stdin
		setDeathSignal(&attr, syscall.SIGKILL)
		pid, err := syscall.ForkExec(string(req.Path), stringsOf(req.Args), &syscall.ProcAttr{
			Dir:   string(req.Dir),
			Env:   stringsOf(req.Env),
			Files: []uintptr{uintptr(req.fds[0]), uintptr(req.fds[1]), uintptr(req.fds[2])},
			Sys:   &attr,
		})
		if err != nil {
			return writeFrame(r.conn, reply{Op: "failed", Errno: errnoOf(err), Msg: err.Error()}) == nil
		}
		r.program = pid
		return writeFrame(r.conn, reply{Op: "started", PID: pid}) == nil
	}
	return false
}

// reap collects ended orphans, and settles the program when it ended.
func (r *runner) reap() bool {
	if r.program == 0 {
		reapStrays(0)
		return true
	}
	status, ended := reapProgram(r.program)
	if !ended {
		reapStrays(r.program)
		return true
	}
	r.program = 0
	done := reply{Op: "done", Exit: status.ExitStatus(), Left: r.sweep()}
	if status.Signaled() {
		done.Signal = int(status.Signal())
	}
	return writeFrame(r.conn, done) == nil
}

// sweep kills and reaps every descendant and returns how many were left at the limit. A
// killed child's children become ours, so a few rounds reach any depth.
func (r *runner) sweep() int {
	deadline := time.Now().Add(sweepLimit)
	for {
		if reapStrays(0) {
			return 0
		}
		kids := ownChildren()
		for _, pid := range kids {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return max(len(kids), 1)
		}
		select {
		case <-r.children:
		case <-time.After(sweepTick):
		}
	}
}

// end kills whatever runs; the starter hears nothing any more.
func (r *runner) end() {
	if r.program != 0 {
		_ = syscall.Kill(-r.program, syscall.SIGKILL)
		_ = syscall.Kill(r.program, syscall.SIGKILL)
	}
	r.sweep()
}

package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes the kernel hand us every orphan among our descendants.
func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// hideInherited makes every descriptor from first on close-on-exec: what a careless
// ancestor left open, such as the Host's pipes, must not reach the program.
func hideInherited(first uint) { _ = unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }

// ownChildren lists the children of every thread of this process, zombies included.
func ownChildren() []int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	if len(lists) == 0 { // a kernel without CONFIG_PROC_CHILDREN
		return childrenByParent()
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func childrenByParent() []int {
	var pids []int
	self := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		// "pid (name) state ppid": the name may hold blanks and brackets.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != self {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reapProgram reaps pid when it has ended, and kills its group first: until the leader is
// reaped the group's number cannot belong to anyone else.
func reapProgram(pid int) (status syscall.WaitStatus, ended bool) {
	var info unix.Siginfo
	err := retryIntr(func() error {
		return unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	if err != nil || info.Signo == 0 {
		return 0, false
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	err = retryIntr(func() error {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		return err
	})
	return status, err == nil
}

// reapStrays reaps every ended child but the program and reports whether no child is
// left at all.
func reapStrays(program int) (none bool) {
	if program != 0 {
		for _, pid := range ownChildren() {
			if pid != program {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
		return false
	}
	return reapAll()
}

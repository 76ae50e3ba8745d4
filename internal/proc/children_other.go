//go:build !linux

package proc

import "syscall"

// becomeSubreaper does nothing: only Linux has subreapers. A descendant that leaves the
// program's group is not contained here.
func becomeSubreaper() error { return nil }

// hideInherited does nothing: there is no close_range here.
func hideInherited(uint) {}

func ownChildren() []int { return nil }

// reapProgram kills the group right after the reaping: without waitid there is no earlier
// moment at which the end is known. While members live the number cannot be reused.
func reapProgram(pid int) (status syscall.WaitStatus, ended bool) {
	var got int
	err := retryIntr(func() (err error) {
		got, err = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		return err
	})
	if err != nil || got != pid {
		return 0, false
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return status, true
}

func reapStrays(program int) (none bool) {
	if program != 0 {
		return false
	}
	return reapAll()
}

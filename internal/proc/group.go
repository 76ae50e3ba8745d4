package proc

import (
	"errors"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// KillGroup sends SIGKILL to the process group that pid leads. A group that is already
// gone is no error. Call it only before Wait of that child returned: afterwards the number
// may belong to a stranger.
func KillGroup(pid int) error {
	if pid <= 1 {
		return fault.New(fault.Invalid, "proc.KillGroup", "pid %d leads no group of ours", pid)
	}
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fault.Wrap(err, fault.Internal, "proc.KillGroup", "cannot kill process group %d", pid)
}

// killLeaderless kills a group that is not of our child, if no process has its number: a
// process of that number may be a stranger that leads a group of its own.
func killLeaderless(pid int) {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

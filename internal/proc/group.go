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

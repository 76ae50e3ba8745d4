package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupHold names the process group of a grandchild, which we cannot reap and whose number
// may therefore pass to a stranger. The descriptor never does.
type groupHold struct{ pid, fd int }

func holdGroup(pid int) groupHold {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		fd = -1
	}
	return groupHold{pid, fd}
}

// kill ends every member of the group, also when its leader is gone.
func (g groupHold) kill() {
	if g.fd >= 0 {
		err := unix.PidfdSendSignal(g.fd, unix.SIGKILL, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP) // since Linux 6.9
		if err == nil || errors.Is(err, unix.ESRCH) {
			return
		}
		_ = unix.PidfdSendSignal(g.fd, unix.SIGKILL, nil, 0)
	}
	killLeaderless(g.pid)
}

func (g groupHold) close() {
	if g.fd >= 0 {
		_ = syscall.Close(g.fd)
	}
}

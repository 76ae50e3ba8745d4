package control

import "golang.org/x/sys/unix"

// peer is the process that listens at the other end of a connected socket, 0 when unknown.
func peer(fd int) int {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(c.Pid)
}

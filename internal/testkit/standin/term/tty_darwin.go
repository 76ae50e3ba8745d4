package term

import "golang.org/x/sys/unix"

const (
	ioctlGet      = unix.TIOCGETA
	ioctlSetFlush = unix.TIOCSETAF
	ioctlSet      = unix.TIOCSETA
)

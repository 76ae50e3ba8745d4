package term

import "golang.org/x/sys/unix"

const (
	ioctlGet      = unix.TCGETS
	ioctlSetFlush = unix.TCSETSF
	ioctlSet      = unix.TCSETS
)

package launch

import "golang.org/x/sys/unix"

// The requests that read and write a terminal's settings.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

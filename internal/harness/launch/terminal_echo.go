//go:build linux || darwin

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// quiet stops the terminal from repeating what is typed: it may be a secret. A program that
// wants an echo makes its own.
func quiet(tty *os.File) error {
	fd := int(tty.Fd())
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO | unix.ECHONL
	return unix.IoctlSetTermios(fd, setTermios, t)
}

package pane

import (
	"os"

	"golang.org/x/sys/unix"
)

// lineMode reports whether the terminal still edits lines, as before a program has taken
// it. What is no terminal does not.
func lineMode(f *os.File) bool {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil && t.Lflag&unix.ICANON != 0
}

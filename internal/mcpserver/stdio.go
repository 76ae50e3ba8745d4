package mcpserver

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// TakeStdio takes descriptors 0 and 1 away from the rest of the process: it returns the
// Host's two streams on private descriptors that no child inherits, and leaves /dev/null
// as standard input and standard error as standard output. After it, no print of any
// library, and no child that inherits descriptor 1, can reach the Host.
//
// A main calls it before anything else. The caller owns both files.
func TakeStdio() (in, out *os.File, err error) {
	if in, err = private(0, "host-stdin"); err != nil {
		return nil, nil, err
	}
	if out, err = private(1, "host-stdout"); err != nil {
		return nil, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, fmt.Errorf("take stdio: %w", err)
	}
	defer null.Close()
	if err := redirect(int(null.Fd()), 0); err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	if err := redirect(2, 1); err != nil {
		return nil, nil, fmt.Errorf("take stdout: %w", err)
	}
	return in, out, nil
}

// private duplicates a descriptor above the standard three, closed on exec.
func private(fd int, name string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	return os.NewFile(uintptr(dup), name), nil
}

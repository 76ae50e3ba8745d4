package procinfo

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Limits of what is read from one process.
const (
	maxArgsBytes = 128 << 10 // longer argument lists are cut
	maxEnvBytes  = 4 << 20   // a larger environment is an error
	maxOpenFiles = 1 << 16   // more open files are an error
)

func notFound(op string, pid int) error {
	return fault.New(fault.NotFound, op, "process %d does not exist", pid)
}

func unreadable(err error, op string, pid int, what string) error {
	return fault.Wrap(err, fault.Unavailable, op, "cannot read the %s of process %d", what, pid).
		WithHint("run as the user who owns the process")
}

func checkIncarnation(op string, inc turn.Incarnation) error {
	if inc.PID <= 0 || inc.Birth == "" {
		return fault.New(fault.Invalid, op, "an incarnation needs a pid and a birth")
	}
	return nil
}

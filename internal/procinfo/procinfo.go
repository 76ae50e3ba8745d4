// Package procinfo reads the process table of this machine: who runs, since when, whose
// child, with which files open.
//
// It reports facts only. It knows no agent, no tmux and no Turn rule beyond the
// identity type it fills, and it never signals a process.
package procinfo

import "github.com/agent-knock-knock/akk/internal/turn"

// Process is one live process as read in one pass.
//
// A [Snapshot] leaves Exe and Cwd empty, because reading them for every process of the
// machine costs more than all the rest; [Details] and [Read] fill them.
type Process struct {
	turn.Incarnation
	PPID  int
	UID   int    // effective user
	State byte   // as in /proc/PID/stat: R S D T Z ...
	Name  string // short name the kernel keeps, at most 15 bytes on Linux
	Exe   string // resolved executable, "" when unreadable
	// Args is the argv, nil for a kernel thread or a zombie. A program may overwrite its
	// own argv; on darwin it is ps's text split at blanks.
	Args []string
	Cwd  string // "" when unreadable
}

// Zombie reports that the process has ended and waits to be reaped.
func (p Process) Zombie() bool { return p.State == 'Z' || p.State == 'X' || p.State == 'x' }

// Stopped reports that a signal or a debugger holds the process.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// File is one open regular file of a process.
type File struct {
	FD      int
	Path    string // as opened; when Deleted, the name it had
	Device  uint64
	Inode   uint64
	Write   bool // opened for writing
	Deleted bool // no name leads to the file any more
}

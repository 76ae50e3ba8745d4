// Package procinfo reads the process table of this machine: who runs, since when, whose
// child, with which files open.
//
// It reports facts only. It knows no agent, no tmux and no Turn rule beyond the
// identity type it fills, and it never signals a process.
package procinfo

import "github.com/agent-knock-knock/akk/internal/turn"

// Process is one live process as read in one pass.
type Process struct {
	turn.Incarnation
	PPID  int
	UID   int
	State byte     // as in /proc/PID/stat: R S D T Z ...
	Exe   string   // resolved executable, "" when unreadable
	Args  []string // argv
	Cwd   string   // "" when unreadable
}

// File is one open regular file of a process.
type File struct {
	FD     int
	Path   string
	Device uint64
	Inode  uint64
	Write  bool // opened for writing
}

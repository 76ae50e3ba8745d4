//go:build !linux

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// residentBytes is not known without starting a program.
func residentBytes(int) uint64 { return 0 }

// freeBytes is what a user may still write below dir.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("the disk of %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// fileWatches: kqueue has no limit of its own.
func fileWatches(r *MachineReport) {
	r.put(CheckFileWatches, OK, "", "this system has no limit of its own")
}

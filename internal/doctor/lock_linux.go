package doctor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// flockOwner is the process that took the lock on an open file (proc(5), locks), 0 when it
// cannot be told. Its rows are "1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF";
// those of waiters have "->" in the second place. The device of a row is that of the disk
// below, which a layered file system hides, so a row must be of a process that has a file
// of this very inode and device open.
func flockOwner(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	return flockRow(string(b), st.Ino, func(pid int) bool { return hasOpen(pid, info) })
}

func flockRow(table string, inode uint64, has func(pid int) bool) int {
	for line := range strings.Lines(table) {
		row := strings.Fields(line)
		if len(row) < 6 || row[1] != "FLOCK" || !strings.HasSuffix(row[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(row[4]); err == nil && pid > 0 && has(pid) {
			return pid
		}
	}
	return 0
}

// hasOpen reports whether the process has the file open.
func hasOpen(pid int, info os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, n := range names {
		if other, err := os.Stat(dir + "/" + n.Name()); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}

package proc

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReleaseImage gives back the resident pages of this process's own program file: a start
// touches nearly all of a Go program, and a process that waits needs little of it. What is
// used again is mapped again from the page cache, some 64 KiB at a time.
//
// It gives the machine nothing that it could not have taken, for these pages are clean; it
// makes the resident size of a process that waits what the process uses (docs/adr/0010).
// Only read-only, private mappings of the program are touched, never data. A debugger's
// breakpoints are in such pages: they are gone after this. An error says that something was
// left resident, which harms nothing.
func ReleaseImage() error {
	exe, err := os.Readlink("/proc/self/exe") // "… (deleted)" after an upgrade; maps says the same
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		from, to, ok := imageRange(lines.Text(), exe)
		if !ok {
			continue
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return lines.Err()
}

// imageRange is the mapping of a line of /proc/self/maps (proc(5)), when it is one of exe
// that nobody writes.
func imageRange(line, exe string) (from, to uintptr, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 || strings.TrimLeft(fields[5], " ") != exe || len(fields[1]) != 4 || fields[1][0] != 'r' || fields[1][1] != '-' || fields[1][3] != 'p' {
		return 0, 0, false
	}
	begin, end, _ := strings.Cut(fields[0], "-")
	a, err := strconv.ParseUint(begin, 16, strconv.IntSize)
	if err != nil {
		return 0, 0, false
	}
	b, err := strconv.ParseUint(end, 16, strconv.IntSize)
	if err != nil || b <= a {
		return 0, 0, false
	}
	return uintptr(a), uintptr(b), true
}

package proc

import (
	"bufio"
	"fmt"
	"io"
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
// Only read-only, private mappings of the program are touched, and of these only those that
// hold the file's own bytes: a page that the loader relocated, as in a position-independent
// program, or into which a debugger wrote is this process's, in memory or swapped out, and its
// mapping is left as it is. An error says that something was left resident, which harms nothing.
func ReleaseImage() error {
	exe, err := os.Readlink("/proc/self/exe") // "… (deleted)" after an upgrade; smaps says the same
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	unwritten, err := imageRanges(smaps, exe)
	if err != nil {
		return err
	}
	for _, m := range unwritten {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// mapping is a range of this process's addresses.
type mapping struct{ from, to uintptr }

// imageRanges reads /proc/self/smaps (proc(5)) and returns the mappings of exe that nobody
// may write and that hold no page of this process's own.
func imageRanges(smaps io.Reader, exe string) (out []mapping, err error) {
	lines := bufio.NewScanner(smaps)
	var m mapping
	ours, unwritten := false, false
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch {
		case strings.Contains(name, " "): // a mapping begins; fields have one word
			m, ours = imageRange(lines.Text(), exe)
			unwritten = false
		case name == "Anonymous":
			unwritten = strings.TrimSpace(value) == "0 kB"
		case ours && unwritten && name == "Swap" && strings.TrimSpace(value) == "0 kB": // it follows; a written page may be there
			out = append(out, m)
		}
	}
	return out, lines.Err()
}

// imageRange is the mapping that a line begins, when it is one of exe that nobody may write.
func imageRange(line, exe string) (m mapping, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 || strings.TrimLeft(fields[5], " ") != exe || len(fields[1]) != 4 || fields[1][0] != 'r' || fields[1][1] != '-' || fields[1][3] != 'p' {
		return m, false
	}
	begin, end, _ := strings.Cut(fields[0], "-")
	from, err := strconv.ParseUint(begin, 16, strconv.IntSize)
	if err != nil {
		return m, false
	}
	to, err := strconv.ParseUint(end, 16, strconv.IntSize)
	if err != nil || to <= from {
		return m, false
	}
	return mapping{uintptr(from), uintptr(to)}, true
}

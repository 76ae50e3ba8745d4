package procinfo

import (
	"bytes"
	"fmt"
	"strconv"
)

// statRow is what one /proc/PID/stat line says.
type statRow struct {
	pid, ppid int
	state     byte
	name      string
	start     uint64 // clock ticks since boot
}

// Positions of the fields after the ")" that ends the name.
const (
	statState = 0
	statPPID  = 1
	statStart = 19
)

// parseStat reads one stat line strictly. The name may hold blanks, parentheses and line
// feeds, so the fields are counted from the last ")".
func parseStat(b []byte) (statRow, error) {
	var r statRow
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open || b[open-1] != ' ' {
		return r, fmt.Errorf("stat: no name in parentheses")
	}
	pid, err := strconv.Atoi(string(b[:open-1]))
	if err != nil || pid <= 0 {
		return r, fmt.Errorf("stat: bad pid")
	}
	r.pid, r.name = pid, string(b[open+1:end])

	rest := b[end+1:]
	for i := 0; i <= statStart; i++ {
		if len(rest) == 0 || rest[0] != ' ' {
			return r, fmt.Errorf("stat: field %d is missing", i+3)
		}
		rest = rest[1:]
		n := bytes.IndexAny(rest, " \n")
		if n < 0 {
			n = len(rest)
		}
		field := rest[:n]
		rest = rest[n:]
		switch i {
		case statState:
			if len(field) != 1 || field[0] < 'A' || field[0] > 'z' {
				return r, fmt.Errorf("stat: bad state")
			}
			r.state = field[0]
		case statPPID:
			if r.ppid, err = strconv.Atoi(string(field)); err != nil || r.ppid < 0 {
				return r, fmt.Errorf("stat: bad parent")
			}
		case statStart:
			if r.start, err = strconv.ParseUint(string(field), 10, 64); err != nil {
				return r, fmt.Errorf("stat: bad start time")
			}
		}
	}
	return r, nil
}

// splitArgs reads /proc/PID/cmdline: arguments that end in NUL. A program that rewrote its
// own title leaves padding behind, which is cut off.
func splitArgs(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	n := bytes.Count(b, []byte{0}) + 1
	out := make([]string, 0, n)
	for s := string(b); ; {
		i := indexNUL(s)
		if i < 0 {
			return append(out, s)
		}
		out = append(out, s[:i])
		s = s[i+1:]
	}
}

func indexNUL(s string) int {
	for i := range len(s) {
		if s[i] == 0 {
			return i
		}
	}
	return -1
}

// birth is the identity of one start: ticks since boot, and which boot.
func birth(start uint64, boot string) string {
	return strconv.FormatUint(start, 10) + "@" + boot
}

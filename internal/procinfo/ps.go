package procinfo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/turn"
)

// psColumns are the columns that parsePS reads, for `ps -axww -o`. With LC_ALL=C and
// TZ=UTC lstart is five words, such as "Tue Dec  2 10:11:12 2025".
const psColumns = "pid=,ppid=,uid=,stat=,lstart=,command="

const psWords = 4 + 5 // before the command

// parsePS reads a listing. A malformed row is skipped; a listing without a single good
// row is an error, and so is one that was cut in its last row.
func parsePS(out, boot string) ([]Process, error) {
	if !strings.HasSuffix(out, "\n") {
		return nil, fmt.Errorf("the listing is cut")
	}
	var rows []Process
	for line := range strings.Lines(out) {
		if p, ok := parsePSRow(strings.TrimSuffix(line, "\n"), boot); ok {
			rows = append(rows, p)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the listing holds no process")
	}
	return rows, nil
}

func parsePSRow(line, boot string) (Process, bool) {
	var w [psWords]string
	rest := line
	for i := range w {
		rest = strings.TrimLeft(rest, " ")
		w[i], rest, _ = strings.Cut(rest, " ")
	}
	pid, err1 := strconv.Atoi(w[0])
	ppid, err2 := strconv.Atoi(w[1])
	uid, err3 := strconv.Atoi(w[2])
	start, err4 := time.Parse("Mon Jan 2 15:04:05 2006", strings.Join(w[4:], " "))
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || pid <= 0 || ppid < 0 || w[3] == "" {
		return Process{}, false
	}
	p := Process{
		Incarnation: turn.Incarnation{PID: pid, Birth: birth(uint64(start.Unix()), boot)},
		PPID:        ppid, UID: uid, State: w[3][0],
	}
	if !p.Zombie() {
		p.Args = strings.Fields(rest)
	}
	return p, true
}

// parseLsof reads `lsof -F ftaDin` of one process: records of one-letter fields, each
// descriptor begun by f. It returns the working directory, the program and the open
// regular files.
func parseLsof(out string) (cwd, exe string, files []File, err error) {
	var cur struct {
		fd, kind, mode, dev, inode, name string
	}
	flush := func() {
		switch {
		case cur.fd == "cwd":
			cwd = cur.name
		case cur.fd == "txt" && exe == "":
			exe = cur.name
		case cur.kind == "REG":
			fd, err1 := strconv.Atoi(cur.fd)
			dev, err2 := strconv.ParseUint(cur.dev, 0, 64)
			inode, err3 := strconv.ParseUint(cur.inode, 10, 64)
			if err1 == nil && err2 == nil && err3 == nil && strings.HasPrefix(cur.name, "/") {
				files = append(files, File{FD: fd, Path: cur.name, Device: dev, Inode: inode, Write: cur.mode == "w" || cur.mode == "u"})
			}
		}
		cur.fd, cur.kind, cur.mode, cur.dev, cur.inode, cur.name = "", "", "", "", "", ""
	}
	seen := false
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		v := line[1:]
		switch line[0] {
		case 'p':
			seen = true
		case 'f':
			flush()
			cur.fd = v
		case 't':
			cur.kind = v
		case 'a':
			cur.mode = strings.TrimSpace(v)
		case 'D':
			cur.dev = v
		case 'i':
			cur.inode = v
		case 'n':
			cur.name = v
		}
	}
	flush()
	if !seen {
		return "", "", nil, fmt.Errorf("the listing names no process")
	}
	sortFiles(files)
	return cwd, exe, files, nil
}

// parseProcArgs reads the kern.procargs2 block of darwin: the number of arguments as a
// little-endian word, the program's path, padding, the arguments, the environment.
func parseProcArgs(b []byte) (args, environ []string, err error) {
	if len(b) < 5 {
		return nil, nil, fmt.Errorf("the block is cut")
	}
	argc := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
	s := string(b[4:])
	i := indexNUL(s)
	if i < 0 || argc < 0 || argc > len(b) {
		return nil, nil, fmt.Errorf("the block is malformed")
	}
	s = strings.TrimLeft(s[i:], "\x00")
	for len(args) < argc {
		if i = indexNUL(s); i < 0 {
			return nil, nil, fmt.Errorf("the block has fewer arguments than it says")
		}
		args, s = append(args, s[:i]), s[i+1:]
	}
	for {
		i = indexNUL(s)
		if i <= 0 {
			return args, environ, nil
		}
		environ, s = append(environ, s[:i]), s[i+1:]
	}
}

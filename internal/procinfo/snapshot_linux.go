package procinfo

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const kthreadd = 2 // parent of every kernel thread

// bootID is the first 8 hex digits of this boot's id.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "procinfo.boot", "cannot read the boot id")
	}
	s := strings.ReplaceAll(strings.TrimSpace(string(b)), "-", "")
	if len(s) < 8 {
		return "", fault.New(fault.Unavailable, "procinfo.boot", "the boot id is malformed")
	}
	return s[:8], nil
})

// Snapshot reads the whole process table in one pass, without Exe and Cwd.
//
// A process that ends meanwhile is left out, and so is a row that cannot be parsed or may
// not be read. A listing that is incomplete for any other reason is an error: a caller
// must never take "not seen" of such a listing for "dead".
func Snapshot(ctx context.Context) (*Table, error) {
	const op = "procinfo.snapshot"
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot open /proc")
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot list /proc")
	}
	buf := make([]byte, 8<<10)
	rows := make([]Process, 0, len(names))
	self := false
	for i, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		if i%64 == 0 && ctx.Err() != nil {
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "listing the processes took too long")
		}
		p, rerr := readRow(pid, boot, &buf)
		switch {
		case rerr == nil:
			rows = append(rows, p)
			self = self || pid == os.Getpid()
		case isGone(rerr), isDenied(rerr), errors.Is(rerr, errMalformed):
		default:
			return nil, fault.Wrap(rerr, fault.Unavailable, op, "the listing of processes is incomplete")
		}
	}
	if !self {
		return nil, fault.New(fault.Unavailable, op, "the listing of processes lacks this process")
	}
	return newTable(rows), nil
}

var errMalformed = errors.New("malformed row")

func isGone(err error) bool   { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }
func isDenied(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// readRow reads stat and cmdline of one process. buf is reused between calls and grows.
func readRow(pid int, boot string, buf *[]byte) (Process, error) {
	base := "/proc/" + strconv.Itoa(pid)
	b, uid, err := readSmall(base+"/stat", buf)
	if err != nil {
		return Process{}, err
	}
	st, err := parseStat(b)
	if err != nil || st.pid != pid {
		return Process{}, errMalformed
	}
	p := Process{
		Incarnation: turn.Incarnation{PID: pid, Birth: birth(st.start, boot)},
		PPID:        st.ppid, State: st.state, Name: st.name, UID: uid,
	}
	if pid == kthreadd || st.ppid == kthreadd || p.Zombie() {
		return p, nil
	}
	b, _, err = readSmall(base+"/cmdline", buf)
	if err != nil {
		return Process{}, err
	}
	p.Args = splitArgs(b)
	if uid == 0 && os.Geteuid() != 0 {
		// The files of a process that made itself undumpable belong to root.
		if b, _, err = readSmall(base+"/status", buf); err != nil {
			return Process{}, err
		}
		if u, ok := statusUID(string(b)); ok {
			p.UID = u
		}
	}
	return p, nil
}

// statusUID finds the effective user in /proc/PID/status.
func statusUID(s string) (int, bool) {
	for line := range strings.Lines(s) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(rest); len(f) == 4 {
				u, err := strconv.Atoi(f[1])
				return u, err == nil
			}
		}
	}
	return 0, false
}

// readSmall reads a proc file by plain system calls (a third of the cost of os.ReadFile,
// which registers every file with the poller) and tells its owner.
func readSmall(path string, buf *[]byte) ([]byte, int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, 0, err
	}
	n := 0
	for {
		if n == len(*buf) {
			if n >= maxArgsBytes {
				return (*buf)[:n], int(st.Uid), nil
			}
			grown := make([]byte, 2*n)
			copy(grown, *buf)
			*buf = grown
		}
		m, err := unix.Read(fd, (*buf)[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		n += m
		if n < len(*buf) {
			return (*buf)[:n], int(st.Uid), nil // proc files are given whole while there is room
		}
	}
}

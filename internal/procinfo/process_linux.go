package procinfo

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// Read reads one process with Exe and Cwd. A process that does not exist is
// [fault.NotFound]; one that may not be read is [fault.Unavailable].
func Read(pid int) (Process, error) {
	p, err := readOne("procinfo.read", pid)
	if err != nil {
		return Process{}, err
	}
	return Details(p)
}

func readOne(op string, pid int) (Process, error) {
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	if pid <= 0 {
		return Process{}, notFound(op, pid)
	}
	buf := make([]byte, 4<<10)
	p, err := readRow(pid, boot, &buf)
	switch {
	case err == nil:
		return p, nil
	case isGone(err):
		return Process{}, notFound(op, pid)
	}
	return Process{}, unreadable(err, op, pid, "state")
}

// Details returns p with Exe and Cwd, "" for what may not be read. If the pid meanwhile
// belongs to another process the error is [fault.NotFound].
func Details(p Process) (Process, error) {
	exe, _ := os.Readlink(procPath(p.PID, "exe"))
	p.Exe = strings.TrimSuffix(exe, " (deleted)") // an agent updated under a running process
	p.Cwd, _ = os.Readlink(procPath(p.PID, "cwd"))
	b, err := Birth(p.PID)
	if err != nil {
		return Process{}, err
	}
	if b != p.Birth {
		return Process{}, notFound("procinfo.details", p.PID)
	}
	return p, nil
}

// Birth returns the identity of the process's start. See [turn.Incarnation].
func Birth(pid int) (string, error) {
	st, err := statOf("procinfo.birth", pid)
	if err != nil {
		return "", err
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	return birth(st.start, boot), nil
}

func statOf(op string, pid int) (statRow, error) {
	if pid <= 0 {
		return statRow{}, notFound(op, pid)
	}
	buf := make([]byte, 1<<10)
	b, _, err := readSmall(procPath(pid, "stat"), &buf)
	if err != nil {
		if isGone(err) {
			return statRow{}, notFound(op, pid)
		}
		return statRow{}, unreadable(err, op, pid, "state")
	}
	st, err := parseStat(b)
	if err != nil || st.pid != pid {
		return statRow{}, unreadable(errMalformed, op, pid, "state")
	}
	return st, nil
}

// Alive reports whether this very start of the process still runs. A zombie does not. An
// error means that nothing is known.
func Alive(inc turn.Incarnation) (bool, error) {
	const op = "procinfo.alive"
	if err := checkIncarnation(op, inc); err != nil {
		return false, err
	}
	st, err := statOf(op, inc.PID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	if birth(st.start, boot) != inc.Birth {
		return false, nil
	}
	return !Process{State: st.state}.Zombie(), nil
}

// Stopped reports that the process is held by SIGSTOP, a terminal's stop or a debugger: it
// does nothing, and only who continues or kills it can change that.
func Stopped(pid int) (bool, error) {
	st, err := statOf("procinfo.stopped", pid)
	return Process{State: st.state}.Stopped(), err
}

// OpenFiles lists the open regular files of a process in the order of descriptors. Other
// kinds of descriptors are left out; a descriptor closed meanwhile is too.
func OpenFiles(ctx context.Context, pid int) ([]File, error) {
	const op = "procinfo.open_files"
	dir, err := os.Open(procPath(pid, "fd"))
	if err != nil {
		if isGone(err) {
			return nil, notFound(op, pid)
		}
		return nil, unreadable(err, op, pid, "open files")
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxOpenFiles + 1)
	if err != nil && err != io.EOF {
		if isGone(err) {
			return nil, notFound(op, pid)
		}
		return nil, unreadable(err, op, pid, "open files")
	}
	if len(names) > maxOpenFiles {
		return nil, fault.New(fault.Unavailable, op, "process %d has more than %d open files", pid, maxOpenFiles)
	}
	var out []File
	for i, name := range names {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "listing the open files of process %d took too long", pid)
		}
		f, ok, err := openFile(pid, name)
		if err != nil {
			return nil, unreadable(err, op, pid, "open files")
		}
		if ok {
			out = append(out, f)
		}
	}
	sortFiles(out)
	return out, nil
}

// openFile describes one descriptor; ok is false for what is no regular file or is gone.
func openFile(pid int, name string) (f File, ok bool, err error) {
	if f.FD, err = strconv.Atoi(name); err != nil {
		return f, false, nil
	}
	link := procPath(pid, "fd/"+name)
	var st unix.Stat_t
	if err = unix.Stat(link, &st); err == nil {
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return f, false, nil
		}
		f.Path, err = os.Readlink(link)
	}
	if err != nil {
		if isGone(err) {
			return f, false, nil
		}
		return f, false, err
	}
	if !filepath.IsAbs(f.Path) {
		return f, false, nil // memfd and the like have no path
	}
	f.Device, f.Inode = uint64(st.Dev), st.Ino
	if st.Nlink == 0 {
		f.Deleted, f.Path = true, strings.TrimSuffix(f.Path, " (deleted)")
	}
	info, err := os.ReadFile(procPath(pid, "fdinfo/"+name))
	if err != nil {
		return f, isGone(err), nilIfGone(err)
	}
	f.Write = fdinfoWrites(string(info))
	return f, true, nil
}

func nilIfGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// fdinfoWrites reads the octal "flags:" line of fdinfo.
func fdinfoWrites(s string) bool {
	for line := range strings.Lines(s) {
		if rest, ok := strings.CutPrefix(line, "flags:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(rest), 8, 64)
			return err == nil && n&unix.O_ACCMODE != unix.O_RDONLY
		}
	}
	return false
}

// Env reads one variable of a process's initial environment. Only processes of this user
// are read. The value may be a secret: callers name the few variables they need and never
// log what they get.
func Env(pid int, name string) (value string, ok bool, err error) {
	const op = "procinfo.env"
	p, err := readOne(op, pid)
	if err != nil {
		return "", false, err
	}
	if p.UID != os.Geteuid() {
		return "", false, fault.New(fault.Invalid, op, "process %d belongs to another user", pid)
	}
	f, err := os.Open(procPath(pid, "environ"))
	if err != nil {
		if isGone(err) {
			return "", false, notFound(op, pid)
		}
		return "", false, unreadable(err, op, pid, "environment")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEnvBytes+1))
	if err != nil {
		if isGone(err) {
			return "", false, notFound(op, pid)
		}
		return "", false, unreadable(err, op, pid, "environment")
	}
	if len(b) > maxEnvBytes {
		return "", false, fault.New(fault.Unavailable, op, "the environment of process %d is larger than %d bytes", pid, maxEnvBytes)
	}
	value, ok = lookupEnv(b, name)
	return value, ok, nil
}

func lookupEnv(environ []byte, name string) (string, bool) {
	prefix := []byte(name + "=")
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.HasPrefix(v, prefix) {
			return string(v[len(prefix):]), true
		}
	}
	return "", false
}

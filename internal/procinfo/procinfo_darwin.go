package procinfo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// toolBound is the longest that ps or lsof may take.
const toolBound = 5 * time.Second

// States of darwin's sys/proc.h.
const (
	stateStopped = 4 // SSTOP
	stateZombie  = 5 // SZOMB
)

var bootID = sync.OnceValues(func() (string, error) {
	s, err := unix.Sysctl("kern.bootsessionuuid")
	s = strings.ToLower(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(s) < 8 {
		return "", fault.Wrap(errors.Join(err, errors.New("no boot session")), fault.Unavailable, "procinfo.boot", "cannot read the boot id")
	}
	return s[:8], nil
})

// runTool runs a system program within its own bound.
func runTool(path string, args ...string) ([]byte, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer time.AfterFunc(toolBound, func() { cmd.Process.Kill() }).Stop()
	err := cmd.Wait()
	return []byte(out.String()), err
}

// Snapshot reads the whole process table in one pass, without Exe and Cwd. An incomplete
// listing is an error.
func Snapshot(ctx context.Context) (*Table, error) {
	const op = "procinfo.snapshot"
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(err, fault.Timeout, op, "listing the processes took too long")
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	out, err := runTool("/bin/ps", "-axww", "-o", psColumns)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "ps failed")
	}
	rows, err := parsePS(string(out), boot)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "the listing of processes is incomplete")
	}
	t := newTable(rows)
	if _, ok := t.Get(os.Getpid()); !ok {
		return nil, fault.New(fault.Unavailable, op, "the listing of processes lacks this process")
	}
	return t, nil
}

// kinfo reads the kernel's record of one process.
func kinfo(op string, pid int) (Process, error) {
	if pid <= 0 || errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return Process{}, notFound(op, pid)
	}
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return Process{}, notFound(op, pid)
		}
		return Process{}, unreadable(err, op, pid, "state")
	}
	p := Process{
		Incarnation: turn.Incarnation{PID: pid, Birth: birth(uint64(k.Proc.P_starttime.Sec), boot)},
		PPID:        int(k.Eproc.Ppid), UID: int(k.Eproc.Ucred.Uid), State: 'R',
		Name: unix.ByteSliceToString(k.Proc.P_comm[:]),
	}
	switch k.Proc.P_stat {
	case stateZombie:
		p.State = 'Z'
	case stateStopped:
		p.State = 'T'
	}
	return p, nil
}

// Read reads one process with Exe and Cwd. A process that does not exist is
// [fault.NotFound]; one that may not be read is [fault.Unavailable].
func Read(pid int) (Process, error) {
	p, err := kinfo("procinfo.read", pid)
	if err != nil {
		return Process{}, err
	}
	if b, err := unix.SysctlRaw("kern.procargs2", pid); err == nil {
		p.Args, _, _ = parseProcArgs(b)
	}
	return Details(p)
}

// Details returns p with Exe and Cwd, "" for what may not be read. If the pid meanwhile
// belongs to another process the error is [fault.NotFound].
func Details(p Process) (Process, error) {
	out, _ := runTool("/usr/sbin/lsof", "-a", "-p", strconv.Itoa(p.PID), "-d", "cwd,txt", "-F", "ftaDin")
	p.Cwd, p.Exe, _, _ = parseLsof(string(out))
	b, err := Birth(p.PID)
	if err != nil {
		return Process{}, err
	}
	if b != p.Birth {
		return Process{}, notFound("procinfo.details", p.PID)
	}
	return p, nil
}

// Birth returns the identity of the process's start. See [turn.Incarnation]; on darwin it
// counts seconds.
func Birth(pid int) (string, error) {
	p, err := kinfo("procinfo.birth", pid)
	return p.Birth, err
}

// Alive reports whether this very start of the process still runs. A zombie does not. An
// error means that nothing is known.
func Alive(inc turn.Incarnation) (bool, error) {
	const op = "procinfo.alive"
	if err := checkIncarnation(op, inc); err != nil {
		return false, err
	}
	p, err := kinfo(op, inc.PID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && p.Birth == inc.Birth && !p.Zombie(), err
}

// Stopped reports that the process is held by SIGSTOP, a terminal's stop or a debugger: it
// does nothing, and only who continues or kills it can change that.
func Stopped(pid int) (bool, error) {
	p, err := kinfo("procinfo.stopped", pid)
	return p.Stopped(), err
}

// OpenFiles lists the open regular files of a process in the order of descriptors.
func OpenFiles(ctx context.Context, pid int) ([]File, error) {
	const op = "procinfo.open_files"
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(err, fault.Timeout, op, "listing the open files of process %d took too long", pid)
	}
	if _, err := kinfo(op, pid); err != nil {
		return nil, err
	}
	out, err := runTool("/usr/sbin/lsof", "-a", "-p", strconv.Itoa(pid), "-d", "0-"+strconv.Itoa(maxOpenFiles), "-F", "ftaDin")
	_, _, files, perr := parseLsof(string(out))
	if perr != nil {
		return nil, unreadable(errors.Join(err, perr), op, pid, "open files")
	}
	return files, nil
}

// Env reads one variable of a process's initial environment. Only processes of this user
// are read. The value may be a secret: callers name the few variables they need and never
// log what they get.
func Env(pid int, name string) (value string, ok bool, err error) {
	const op = "procinfo.env"
	p, err := kinfo(op, pid)
	if err != nil {
		return "", false, err
	}
	if p.UID != os.Geteuid() {
		return "", false, fault.New(fault.Invalid, op, "process %d belongs to another user", pid)
	}
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return "", false, unreadable(err, op, pid, "environment")
	}
	_, environ, err := parseProcArgs(b)
	if err != nil {
		return "", false, unreadable(err, op, pid, "environment")
	}
	for _, kv := range environ {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			return v, true, nil
		}
	}
	return "", false, nil
}

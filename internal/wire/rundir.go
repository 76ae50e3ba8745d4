package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// maxRunPath keeps <run dir>/plugin-dir<10>/plugin<10> under the 104 bytes that the
// shortest of our systems allows for a socket's path.
const maxRunPath = 60

// RunDir is a private directory for the sockets of one Bridge's workers. Beside it lies
// <name>.owner, which names the Bridge's process; the directory of an owner that is
// proved dead is removed by the next Bridge that starts. Age proves nothing.
type RunDir struct{ path string }

// OpenRunDir makes the directory and sweeps those of dead owners. base is for tests; ""
// means $XDG_RUNTIME_DIR or the temporary directory, whichever is private and short.
func OpenRunDir(base string) (*RunDir, error) {
	const op = "wire.run_dir"
	if base == "" {
		base = defaultRunBase()
	}
	if err := privateDir(base); err != nil {
		return nil, err
	}
	sweep(base)
	self := turn.Incarnation{PID: os.Getpid()}
	var err error
	if self.Birth, err = procinfo.Birth(self.PID); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot read the start of our own process")
	}
	owner, err := os.CreateTemp(base, "b"+strconv.Itoa(self.PID)+"-*.owner")
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot write in %s", base)
	}
	d := &RunDir{path: strings.TrimSuffix(owner.Name(), ".owner")}
	// The owner file comes first and goes last, so no directory is ever without one.
	err = json.NewEncoder(owner).Encode(self)
	if cerr := owner.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.ensure()
	}
	if err != nil {
		d.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot prepare %s", d.path)
	}
	return d, nil
}

// Path is the directory.
func (d *RunDir) Path() string { return d.path }

// ensure makes the directory again when somebody cleaned it away.
func (d *RunDir) ensure() error { return os.MkdirAll(d.path, 0o700) }

// Close removes the directory and its owner file. Workers must have ended.
func (d *RunDir) Close() error {
	if err := os.RemoveAll(d.path); err != nil {
		return fault.Wrap(err, fault.Internal, "wire.run_dir", "cannot remove %s", d.path)
	}
	os.Remove(d.path + ".owner")
	return nil
}

func defaultRunBase() string {
	name := "akk-" + strconv.Itoa(os.Getuid())
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		base := filepath.Join(dir, name)
		if !filepath.IsAbs(base) || len(base) > maxRunPath-len("/b4194304-4294967295") {
			continue
		}
		if privateDir(base) == nil {
			return base
		}
	}
	return filepath.Join("/tmp", name)
}

// privateDir makes dir if needed and proves that it is a directory that only we may use.
func privateDir(dir string) error {
	const op = "wire.run_dir"
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fault.Wrap(err, fault.Unavailable, op, "cannot make %s", dir).WithHint("set XDG_RUNTIME_DIR or TMPDIR to a private directory")
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fault.Wrap(err, fault.Unavailable, op, "cannot read %s", dir)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return fault.New(fault.Unavailable, op, "%s is not a directory that only this user may use", dir).
			WithHint("remove it, or set XDG_RUNTIME_DIR or TMPDIR to a private directory")
	}
	return nil
}

// sweep removes what proved-dead owners left. What cannot be proved stays.
func sweep(base string) {
	owners, _ := filepath.Glob(filepath.Join(base, "b*-*.owner"))
	for _, file := range owners {
		if !ownerDead(file) {
			continue
		}
		if os.RemoveAll(strings.TrimSuffix(file, ".owner")) == nil {
			os.Remove(file)
		}
	}
}

func ownerDead(file string) bool {
	var owner turn.Incarnation
	b, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(b, &owner) == nil && owner.PID > 0 && owner.Birth != "" {
		alive, err := procinfo.Alive(owner)
		return err == nil && !alive
	}
	// The owner died, or still is, between making the file and writing it: only its name
	// says who it is, and only the absence of that pid proves anything.
	pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), "b"), "-")
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		return false
	}
	return unix.Kill(n, 0) == unix.ESRCH
}

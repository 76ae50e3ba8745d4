package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/version"
)

// ModeMachine is the mode of the checks of this machine and its Bridges.
const ModeMachine = "machine"

// Warned is a check that found something that will hurt later; Unchecked one that could
// not be made.
const (
	Warned    Status = "warning"
	Unchecked Status = "unchecked"
)

// The names of the machine's checks, in order.
const (
	CheckPrograms    = "programs"
	CheckTmux        = "tmux"
	CheckAgents      = "agents"
	CheckPermissions = "permissions"
	CheckDisk        = "disk_space"
	CheckFileWatches = "file_watches"
	CheckStore       = "store"
	CheckStoreLock   = "store_lock"
	CheckCallbacks   = "callbacks"
	CheckLeases      = "leases"
	CheckOwners      = "owners"
	CheckBridge      = "bridge"
)

const (
	// Free bytes below which the Store's disk is a warning, or an error.
	diskLow  = 1 << 30
	diskFull = 100 << 20
)

// Machine is where to look.
type Machine struct {
	StoreDir string   // absolute; "" when none is known, which is a check that cannot be made
	Places   []string // where Bridges of this user may have their sockets; the first is our own
	Programs []Program
	LookPath func(string) (string, error)
}

// MachineReport is the whole answer of a doctor without a Profile.
type MachineReport struct {
	OK      bool          `json:"ok"`
	Mode    string        `json:"mode"`
	Version string        `json:"version"`
	Checks  []Check       `json:"checks"`
	Bridges []BridgeState `json:"bridges"`
}

func (r *MachineReport) put(name string, status Status, hint, format string, args ...any) {
	r.Checks = append(r.Checks, Check{Name: name, Status: status, Detail: fmt.Sprintf(format, args...), Hint: hint})
	r.OK = r.OK && status != Failed && status != Unchecked
}

// putErr adds a check that failed with a coded error.
func (r *MachineReport) putErr(name string, status Status, err error) {
	code, msg, hint := fault.Public(err)
	r.Checks = append(r.Checks, Check{Name: name, Status: status, Code: code, Detail: msg, Hint: hint})
	r.OK = false
}

// Check looks at the install, the Store and every running Bridge of this user. It writes
// nothing and starts nothing but the programs' own --version.
func (m Machine) Check(ctx context.Context) MachineReport {
	r := MachineReport{OK: true, Mode: ModeMachine, Version: version.Version, Checks: []Check{}, Bridges: []BridgeState{}}
	said := m.versions(ctx)
	m.programs(&r, said)
	m.tmux(ctx, &r)
	m.agents(&r, said)
	m.permissions(&r)
	m.disk(&r)
	fileWatches(&r)
	found, unasked := m.running(ctx)
	m.store(ctx, &r)
	m.lock(ctx, &r)
	m.bridges(&r, found, unasked)
	return r
}

func (m Machine) tmux(ctx context.Context, r *MachineReport) {
	v, err := tmux.Version(ctx)
	if err != nil {
		r.putErr(CheckTmux, Failed, err)
		return
	}
	r.put(CheckTmux, OK, "", "%s", v)
}

// permissions: what holds tasks and answers is for this user alone.
func (m Machine) permissions(r *MachineReport) {
	if m.StoreDir == "" {
		r.put(CheckPermissions, Unchecked, noStoreHint, noStore)
		return
	}
	info, err := os.Lstat(m.StoreDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.put(CheckPermissions, OK, "", "%s is not there yet; the first Bridge makes it", m.StoreDir)
		return
	case err != nil:
		r.put(CheckPermissions, Unchecked, "run as the user who owns it", "%s cannot be looked at: %v", m.StoreDir, err)
		return
	case info.Mode().Type() == fs.ModeSymlink:
		r.put(CheckPermissions, Failed, "name the real directory with --store-dir"+target(m.StoreDir), "%s is a link, and a Bridge opens no Store behind one", m.StoreDir)
		return
	case !info.IsDir():
		r.put(CheckPermissions, Failed, "move that file away, or name a directory with --store-dir", "%s is not a directory", m.StoreDir)
		return
	}
	open := []string{}
	err = filepath.WalkDir(m.StoreDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().Type() != fs.ModeSymlink && info.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s (%s)", path, info.Mode().Perm()))
		}
		return nil
	})
	switch {
	case err != nil:
		r.put(CheckPermissions, Unchecked, "run as the user who owns it", "%s cannot be read: %v", m.StoreDir, err)
	case len(open) > 0:
		r.put(CheckPermissions, Failed, "chmod -R go-rwx "+m.StoreDir, "others may reach %s", strings.Join(open[:min(len(open), 3)], ", "))
	default:
		r.put(CheckPermissions, OK, "", "%s is private", m.StoreDir)
	}
}

// target names where a link leads, when it leads anywhere.
func target(link string) string {
	if real, err := filepath.EvalSymlinks(link); err == nil {
		return ": " + real
	}
	return ""
}

func (m Machine) disk(r *MachineReport) {
	if m.StoreDir == "" {
		r.put(CheckDisk, Unchecked, noStoreHint, noStore)
		return
	}
	dir := m.StoreDir
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	free, err := freeBytes(dir)
	switch {
	case err != nil:
		r.put(CheckDisk, Unchecked, "run `df` on it; if that hangs or fails, its disk is not well, or use another --store-dir", "%v", err)
	case free < diskFull:
		r.put(CheckDisk, Failed, "free space there, or use another --store-dir", "%s free below %s", size(free), dir)
	case free < diskLow:
		r.put(CheckDisk, Warned, "free space there soon", "%s free below %s", size(free), dir)
	default:
		r.put(CheckDisk, OK, "", "%s free", size(free))
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

package doctor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// instancesLow: every monitor holds one inotify instance, and so do other programs.
	instancesLow = 256
	// watchesLow: every monitor watches a handful of files; editors watch whole trees.
	watchesLow = 8192
	// instancesFree and watchesFree are how many must be left for the next monitors.
	instancesFree = 16
	watchesFree   = 256
)

// inotify is a number of inotify instances and of their watches.
type inotify struct{ instances, watches int }

// fileWatches: a monitor that cannot watch files falls back to a look a second.
func fileWatches(r *MachineReport) {
	const dir = "/proc/sys/fs/inotify/"
	var limit inotify
	for name, n := range map[string]*int{"max_user_instances": &limit.instances, "max_user_watches": &limit.watches} {
		b, err := os.ReadFile(dir + name)
		if err == nil {
			*n, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		if err != nil {
			r.put(CheckFileWatches, Unchecked, "run doctor where /proc/sys can be read; until then `sysctl fs.inotify` as root says it", "%s%s cannot be read", dir, name)
			return
		}
	}
	r.watches(limit, inUse("/proc"))
}

// watches compares what is used with what may be.
func (r *MachineReport) watches(limit, used inotify) {
	detail := fmt.Sprintf("this user has %d of %d inotify instances and %d of %d watches in use", used.instances, limit.instances, used.watches, limit.watches)
	switch {
	case limit.instances < instancesLow, limit.instances-used.instances < instancesFree:
		r.put(CheckFileWatches, Warned, fmt.Sprintf("sysctl fs.inotify.max_user_instances=%d", max(1024, 2*limit.instances)), "%s; every monitor needs an instance", detail)
	case limit.watches < watchesLow, limit.watches-used.watches < watchesFree:
		r.put(CheckFileWatches, Warned, fmt.Sprintf("sysctl fs.inotify.max_user_watches=%d", max(65536, 2*limit.watches)), "%s; every monitor needs a few watches", detail)
	default:
		r.put(CheckFileWatches, OK, "", "%s", detail)
	}
}

// inUse counts what the processes of this user have, for whom the limits are.
func inUse(proc string) (used inotify) {
	processes, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range processes {
		if info, err := os.Stat(dir); err != nil || !ofUser(info, os.Getuid()) {
			continue
		}
		fds, _ := os.ReadDir(filepath.Join(dir, "fd")) // of one that may not be looked into, none
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err != nil || to != "anon_inode:inotify" {
				continue
			}
			used.instances++
			if info, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name())); err == nil { // a row for each watch (proc(5))
				used.watches += bytes.Count(info, []byte("inotify wd:"))
			}
		}
	}
	return used
}

func ofUser(info os.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

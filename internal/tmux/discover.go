package tmux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
)

// maxSockets bounds how many candidate sockets are looked at.
const maxSockets = 256

// Discover finds every tmux server of this user: the one this process runs in ($TMUX),
// $AKK_TMUX_SOCKET, all named sockets below $TMUX_TMPDIR, /tmp and /private/tmp, and the
// sockets that running tmux servers were started with. A server that is reachable by
// several paths is reported once; a socket of another user, or one that nobody listens
// on, is not reported. A server that hangs is.
//
// getenv reads this process's environment. If the process table cannot be read, what the
// other sources told is returned together with an error.
func Discover(ctx context.Context, getenv func(string) string) ([]Server, error) {
	table, err := procinfo.Snapshot(ctx)
	servers, derr := DiscoverIn(ctx, getenv, table)
	return servers, errors.Join(err, derr)
}

// DiscoverIn is [Discover] for a caller that has just read the process table. A nil table
// tells of no running server.
func DiscoverIn(ctx context.Context, getenv func(string) string, table *procinfo.Table) ([]Server, error) {
	var c candidates
	c.add(socketOf(getenv("TMUX")))
	c.add(getenv("AKK_TMUX_SOCKET"))
	c.addDir(getenv("TMUX_TMPDIR"))
	c.addDir("/tmp")
	c.addDir("/private/tmp")
	if table != nil {
		c.addRunning(table)
	}
	var err error
	if c.cut {
		err = fault.New(fault.Unavailable, "tmux.discover", "there are more than %d tmux sockets", maxSockets).
			WithHint("remove stale files from the tmux-<uid> directories")
	}

	listening := make([]bool, len(c.servers))
	var wg sync.WaitGroup
	for i, s := range c.servers {
		wg.Go(func() { listening[i] = !s.absent(ctx) })
	}
	wg.Wait()
	var out []Server
	for i, s := range c.servers {
		if listening[i] {
			out = append(out, s)
		}
	}
	return out, err
}

// candidates collects sockets of this user, each inode once.
type candidates struct {
	servers []Server
	seen    map[[2]uint64]bool
	cut     bool
}

func (c *candidates) add(path string) {
	if path == "" || !filepath.IsAbs(path) {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	var st unix.Stat_t
	if unix.Lstat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return
	}
	id := [2]uint64{uint64(st.Dev), st.Ino}
	if c.seen[id] {
		return
	}
	if len(c.servers) >= maxSockets {
		c.cut = true
		return
	}
	if c.seen == nil {
		c.seen = make(map[[2]uint64]bool)
	}
	c.seen[id] = true
	c.servers = append(c.servers, Server{Socket: real})
}

// addDir adds every socket of this user's directory below base.
func (c *candidates) addDir(base string) {
	if base == "" {
		return
	}
	dir := filepath.Join(base, "tmux-"+strconv.Itoa(os.Geteuid()))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			c.add(filepath.Join(dir, e.Name()))
		}
	}
}

// addRunning adds what the command lines and environments of running servers tell.
func (c *candidates) addRunning(t *procinfo.Table) {
	for _, p := range t.All() {
		if p.UID != os.Geteuid() || p.Zombie() || !isServer(p) {
			continue
		}
		path, _ := socketArg(p.Args)
		if path != "" && !filepath.IsAbs(path) {
			full, err := procinfo.Details(p)
			if err != nil || full.Cwd == "" {
				continue
			}
			path = filepath.Join(full.Cwd, path)
		}
		c.add(path)
		if path == "" {
			if dir, ok, err := procinfo.Env(p.PID, "TMUX_TMPDIR"); err == nil && ok {
				c.addDir(dir)
			}
		}
	}
}

// isServer recognises a tmux server, and on systems where it does not rename itself also
// a client, whose socket is as good.
func isServer(p procinfo.Process) bool {
	if p.Name == "tmux: server" {
		return true
	}
	return len(p.Args) > 0 && filepath.Base(p.Args[0]) == "tmux"
}

// socketArg finds -S in a tmux command line, which the server keeps from the client that
// started it.
func socketArg(args []string) (string, bool) {
	const withValue = "cfLST"
	for i := 1; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' || a == "--" {
			return "", false
		}
		for k := 1; k < len(a); k++ {
			if !strings.ContainsRune(withValue, rune(a[k])) {
				continue
			}
			value := a[k+1:]
			if value == "" {
				if i++; i >= len(args) {
					return "", false
				}
				value = args[i]
			}
			if a[k] == 'S' {
				return value, true
			}
			break
		}
	}
	return "", false
}

// socketOf takes the path out of $TMUX: path,pid,session. The path may hold commas.
func socketOf(v string) string {
	for range 2 {
		i := strings.LastIndexByte(v, ',')
		if i < 0 {
			return ""
		}
		v = v[:i]
	}
	return v
}

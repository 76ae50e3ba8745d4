package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/agent/codex/screen"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Modes in which the terminal program runs.
const (
	ModeEmbedded = "embedded" // the agent runs in the pane's process
	ModeDaemon   = "daemon"   // the pane is a thin client of the shared background server
	ModeRemote   = "remote"   // the pane is a thin client of the server named by --remote
)

// Keys of Native.Extra and Anchor.Extra.
const (
	extraHome    = "home"         // CODEX_HOME
	extraMode    = "mode"         // see Modes
	extraSocket  = "socket"       // the server's socket
	extraRollout = "rollout_path" // where the rollout will be, before it exists
	extraBound   = "bound_by"     // lock, title, directory, rollout: why this thread
	extraHash    = "norm_hash"    // hash of the normalised request
	extraSince   = "since"        // when a thread without id was anchored, RFC 3339
	extraWatch   = "watch"        // no request of ours: the running or next turn is meant
)

const maxPackageFile = 64 << 10

// facts is what one look at a process gave.
type facts struct {
	proc     procinfo.Process
	home     string
	locks    []openThread
	rollouts []openThread
	remote   string // the address after --remote
}

// openThread is a thread whose lock or rollout the process holds open.
type openThread struct {
	id    string
	path  string
	since time.Time // modification time of a lock: when it was taken
}

// Identify reads the process, its files and, for a thin client only, its server.
func (a *Adapter) Identify(ctx context.Context, ref agent.Ref) (agent.Native, error) {
	f, err := a.look(ctx, ref)
	if err != nil {
		return agent.Native{}, err
	}
	n := agent.Native{Channel: turn.ChannelKeyboard, Thread: agent.ThreadUnavailable, Activity: agent.ActivityUnknown,
		Version: a.version(f.proc.Exe), Extra: map[string]string{extraHome: f.home}}
	socket := filepath.Join(f.home, known.ControlSocket)
	switch {
	case f.remote != "":
		n.Mode = ModeRemote
		path, ok := strings.CutPrefix(f.remote, known.RemoteUnixScheme)
		if !ok {
			n.Reason = "the pane's server is not on this machine; keyboard only, its thread is not known"
			break
		}
		if path != "" {
			socket = path
		}
		a.identifyClient(ctx, ref, f.proc.Args, &n, socket)
	case len(f.locks)+len(f.rollouts) == 0 && isSocket(socket) && !olderThan(n.Version, known.DaemonSince):
		n.Mode = ModeDaemon
		a.identifyClient(ctx, ref, f.proc.Args, &n, socket)
	default:
		n.Mode = ModeEmbedded
		identifyEmbedded(ref, f, &n)
	}
	n.Extra[extraMode] = n.Mode
	if n.Activity == agent.ActivityUnknown && n.Thread == agent.ThreadResolved {
		switch screen.ReadTitle(ref.Title) {
		case screen.TitleWorking:
			n.Activity = agent.ActivityWorking
		case screen.TitleAction:
			n.Activity = agent.ActivityWaiting
		}
	}
	return n, nil
}

// look reads the process's home, open files and arguments.
func (a *Adapter) look(ctx context.Context, ref agent.Ref) (facts, error) {
	const op = "codex.identify"
	var f facts
	p, err := a.read(ref.Process.PID)
	if err != nil {
		return f, fault.Wrap(err, fault.Unavailable, op, "process %d cannot be read", ref.Process.PID)
	}
	if ref.Process.Birth != "" && p.Birth != "" && p.Birth != ref.Process.Birth {
		return f, fault.New(fault.Conflict, op, "process %d is another one than before", ref.Process.PID).WithHint("list again")
	}
	f.proc, f.remote = p, remoteAddress(p.Args)
	files, err := a.openFiles(ctx, p.PID)
	if err != nil {
		return f, fault.Wrap(err, fault.Unavailable, op, "the open files of process %d cannot be read", p.PID)
	}
	if f.home, err = a.home(p.PID, files); err != nil {
		return f, err
	}
	seen := map[string]bool{}
	for _, file := range files {
		dir, name := filepath.Split(file.Path)
		if seen[file.Path] {
			continue
		}
		seen[file.Path] = true
		if m := known.LockName.FindStringSubmatch(name); m != nil && filepath.Base(dir) == known.LockDir {
			o := openThread{id: m[1], path: file.Path}
			if st, err := os.Stat(file.Path); err == nil {
				o.since = st.ModTime()
			}
			f.locks = append(f.locks, o)
		} else if m := known.RolloutName.FindStringSubmatch(name); m != nil {
			f.rollouts = append(f.rollouts, openThread{id: m[1], path: file.Path})
		}
	}
	return f, nil
}

// home is CODEX_HOME or HOME/.codex of the process's own environment, else the folder of
// the lock or session files that it holds open.
func (a *Adapter) home(pid int, files []procinfo.File) (string, error) {
	if v, ok, err := a.env(pid, known.HomeVariable); err == nil && ok && v != "" {
		return realDir(v), nil
	}
	if v, ok, err := a.env(pid, "HOME"); err == nil && ok && v != "" {
		return realDir(filepath.Join(v, known.DefaultHome)), nil
	}
	for _, f := range files {
		for _, part := range []string{known.LockDir, known.SessionsDir} {
			if i := strings.Index(f.Path, "/"+part+"/"); i > 0 {
				return f.Path[:i], nil
			}
		}
	}
	return "", fault.New(fault.Unavailable, "codex.identify", "the home of process %d is not known: neither its environment nor its files name it", pid)
}

func realDir(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return p
}

func remoteAddress(args []string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, known.RemoteFlag+"="); ok {
			return v
		}
		if arg == known.RemoteFlag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// identifyEmbedded picks the thread among those that the process holds open. A lock stays
// open when the pane moves on to another thread; the one taken last is the shown one,
// also after /resume, which takes it anew (seen on 0.171). The title wins if it names one.
func identifyEmbedded(ref agent.Ref, f facts, n *agent.Native) {
	held, by := f.locks, "lock"
	if len(held) == 0 {
		held, by = f.rollouts, "rollout"
	}
	paths := map[string]string{}
	for _, r := range f.rollouts {
		paths[r.id] = r.path
	}
	var own []openThread
	for _, o := range held {
		if p := paths[o.id]; len(held) > 1 && p != "" && rollout.ReadMeta(p).Sub {
			continue // a sub-agent's thread
		}
		own = append(own, o)
	}
	sort.SliceStable(own, func(i, j int) bool {
		if own[i].since.Equal(own[j].since) {
			return own[i].id > own[j].id
		}
		return own[i].since.After(own[j].since)
	})
	prefix := screen.ThreadPrefix(ref.Title)
	if prefix != "" {
		for _, o := range own {
			if strings.HasPrefix(o.id, prefix) {
				own, by = []openThread{o}, "title"
				break
			}
		}
	}
	switch {
	case len(own) == 0:
		n.Thread, n.Activity, n.Reason = agent.ThreadVerifiedAbsent, agent.ActivityUnknown, "the process holds no thread open"
		return
	case prefix != "" && by != "title":
		n.Thread, n.Reason = agent.ThreadAmbiguous, "the title names a thread that the process does not hold open"
		return
	case len(own) > 1 && (by == "rollout" || own[0].since.Equal(own[1].since)):
		n.Thread, n.Reason = agent.ThreadAmbiguous, fmt.Sprintf("the process holds %d threads open and nothing says which one is shown", len(own))
		return
	case len(own) > 1:
		n.Reason = fmt.Sprintf("the process holds %d threads open; the one it opened last is taken", len(own))
	}
	n.Thread, n.ThreadID, n.LogPath = agent.ThreadResolved, own[0].id, paths[own[0].id]
	n.Extra[extraBound] = by
	if n.LogPath == "" {
		if p := rollout.Find(f.home, n.ThreadID); p != "" {
			n.LogPath = p
		}
	}
	if n.LogPath == "" {
		n.Activity = agent.ActivityIdle // the rollout begins with the first turn
		return
	}
	if n.Version == "" {
		n.Version = rollout.ReadMeta(n.LogPath).Version
	}
	n.Activity = rollout.LastActivity(n.LogPath, rollout.ProcessStart(ref.Process)).Activity
}

// identifyClient asks the server of a thin client which thread the pane shows.
func (a *Adapter) identifyClient(ctx context.Context, ref agent.Ref, args []string, n *agent.Native, socket string) {
	n.Extra[extraSocket] = socket
	view := a.servers.Look(ctx, a.clock.Now, socket)
	if view.Err != nil {
		_, msg, _ := fault.Public(view.Err)
		n.Reason = "the pane's server cannot be asked: " + msg
		return
	}
	t, by, reason := pickThread(view, ref.Title, startDir(args, ref.Cwd))
	if n.Reason = reason; by == "" {
		n.Thread = agent.ThreadAmbiguous
		if len(view.Threads) == 0 && !view.Partial {
			n.Thread = agent.ThreadVerifiedAbsent
		}
		return
	}
	n.Thread, n.ThreadID, n.Channel = agent.ThreadResolved, t.ID, turn.ChannelCodexSocket
	n.Extra[extraBound], n.Extra[extraRollout] = by, t.Path
	if _, err := os.Stat(t.Path); err == nil && t.Path != "" {
		n.LogPath = t.Path
	}
	if n.Version == "" {
		n.Version = t.Version
	}
	n.Activity = statusActivity(t.Status)
}

// startDir is the directory that a client gives its threads: the one after -C or --cd, else
// its own.
func startDir(args []string, own string) string {
	for i, arg := range args {
		dir, found := "", false
		switch {
		case arg == "--":
			return own // what follows is the prompt
		case (arg == "-C" || arg == "--cd") && i+1 < len(args):
			dir, found = args[i+1], true
		case strings.HasPrefix(arg, "--cd="):
			dir, found = strings.CutPrefix(arg, "--cd=")
		case strings.HasPrefix(arg, "-C") && len(arg) > 2:
			dir, found = strings.TrimPrefix(arg[2:], "="), true
		}
		if found && !filepath.IsAbs(dir) {
			return filepath.Join(own, dir)
		} else if found {
			return dir
		}
	}
	return own
}

// pickThread finds the pane's thread among the loaded ones: by the id in the title, else
// the only one in the directory of its threads. by is "" when that decides nothing.
func pickThread(view appserver.View, title, dir string) (t appserver.Thread, by, reason string) {
	var hits []appserver.Thread
	if prefix := screen.ThreadPrefix(title); prefix != "" {
		for _, c := range view.Threads {
			if strings.HasPrefix(c.ID, prefix) {
				hits = append(hits, c)
			}
		}
		if len(hits) == 1 {
			return hits[0], "title", ""
		}
		return t, "", "the thread in the pane's title is not loaded on its server"
	}
	cwd := realDir(dir)
	for _, c := range view.Threads {
		if realDir(c.Cwd) == cwd {
			hits = append(hits, c)
		}
	}
	switch {
	case view.Partial:
		return t, "", "not all threads of the server could be read"
	case len(hits) == 1:
		return hits[0], "directory", "bound as the only loaded thread of the directory"
	case len(hits) == 0:
		return t, "", "the server has no thread loaded for the pane's directory"
	}
	return t, "", fmt.Sprintf("%d threads are loaded for the pane's directory", len(hits)) +
		`; add "thread-id" to tui.terminal_title in Codex's config.toml to tell panes apart`
}

func statusActivity(s appserver.Status) agent.Activity {
	switch s.Type {
	case known.StatusIdle, known.StatusFailed:
		return agent.ActivityIdle
	case known.StatusActive:
		for _, f := range s.Flags {
			if f == known.FlagApproval || f == known.FlagInput {
				return agent.ActivityWaiting
			}
		}
		return agent.ActivityWorking
	}
	return agent.ActivityUnknown
}

// version reads the package file near the executable, or the release in its path. Nothing
// is run.
func (a *Adapter) version(exe string) string {
	if exe == "" {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if v, ok := a.versions[exe]; ok {
		return v
	}
	v := packageVersion(exe)
	if m := known.ReleaseInPath.FindStringSubmatch(exe); v == "" && m != nil {
		v = m[1]
	}
	a.versions[exe] = v
	return v
}

func packageVersion(exe string) string {
	dir := filepath.Dir(exe)
	for range 6 {
		for _, name := range known.PackageFiles {
			b, err := rollout.ReadHead(filepath.Join(dir, name), maxPackageFile)
			if err != nil {
				continue
			}
			var p struct{ Name, Version, Variant string }
			if json.Unmarshal(b, &p) != nil || p.Variant != known.ProgramName && !strings.HasPrefix(p.Name, "@openai/codex") {
				continue
			}
			v := p.Version
			for _, os := range []string{"-linux", "-darwin", "-win32"} {
				v, _, _ = strings.Cut(v, os)
			}
			return v
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func olderThan(version string, than [3]int) bool {
	var v [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
		return false
	}
	for i := range v {
		if v[i] != than[i] {
			return v[i] < than[i]
		}
	}
	return false
}

func isSocket(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&os.ModeSocket != 0
}

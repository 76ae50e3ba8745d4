package codex

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
)

var _ agent.ThreadKeeper = (*Adapter)(nil)

// ThreadSupport says whether what a pane shows after a command can be proved. A client of
// a server that does not name its thread in the title cannot be told from other panes of
// its directory once a second thread is loaded.
func (a *Adapter) ThreadSupport(n agent.Native) error {
	const op = "codex.threads"
	no := func(hint, format string, args ...any) error {
		return fault.New(agent.CodeThreads, op, format, args...).WithHint("%s", hint)
	}
	switch {
	case n.Version == "":
		return no("change the thread by hand in the pane", "the version of this Codex is not known")
	case olderThan(n.Version, threadsSince):
		return no("change the thread by hand in the pane, or update Codex", "changing threads is not verified for Codex %s", n.Version)
	case n.Thread != agent.ThreadResolved && n.Thread != agent.ThreadVerifiedAbsent:
		return no("mend that, then call agent_knock_knock_list again", "the pane's own thread is not proved: %s", n.Reason)
	case n.Mode != ModeEmbedded && n.Extra[extraBound] != "title":
		return no(`add "thread-id" to tui.terminal_title in Codex's config.toml and start the pane again`, "this pane does not show which thread it is on")
	}
	return nil
}

// ThreadCommand returns the command of the pane's own composer.
func (a *Adapter) ThreadCommand(id string) string {
	if id == "" {
		return newThreadCommand
	}
	return resumeThreadCommand + id
}

// ThreadRefusals counts "No saved chat found" lines for id.
func (a *Adapter) ThreadRefusals(lines []string, id string) int {
	n := 0
	for _, l := range lines {
		if m := refusalLine.FindStringSubmatch(l); m != nil && m[1] == id {
			n++
		}
	}
	return n
}

// Threads lists the rollouts of ref's directory, archived ones too. Each file's head is
// read, never a whole file.
func (a *Adapter) Threads(ctx context.Context, ref agent.Ref, n agent.Native, limit int) (agent.ThreadList, error) {
	home := n.Extra[extraHome]
	if home == "" {
		return agent.ThreadList{}, fault.New(fault.Invalid, "codex.threads", "the agent was not identified").WithHint("identify it first")
	}
	found, cut := rolloutsIn(ctx, home, realDir(ref.Cwd), limit)
	if err := ctx.Err(); err != nil {
		return agent.ThreadList{}, fault.Wrap(err, fault.Timeout, "codex.threads", "reading the agent's sessions took too long")
	}
	owners := a.holders(ctx, ref, n)
	names := threadNames(filepath.Join(home, sessionIndex))
	out := agent.ThreadList{Cut: cut}
	for _, r := range found {
		t := r.thread(names)
		t.Owner = owners.of(t.ID)
		out.Threads = append(out.Threads, t)
	}
	return out, nil
}

// Thread reads the one rollout of id.
func (a *Adapter) Thread(ctx context.Context, ref agent.Ref, n agent.Native, id string) (agent.Thread, error) {
	const op = "codex.thread"
	home := n.Extra[extraHome]
	paths := []string{rollout.Find(home, id)}
	if paths[0] == "" { // archived, or a name that is no UUIDv7 or lies in another day's folder
		paths, _ = filepath.Glob(filepath.Join(home, archivedDir, known.RolloutGlob+id+".jsonl"))
		older, _ := filepath.Glob(filepath.Join(home, known.SessionsDir, "*", "*", "*", known.RolloutGlob+id+".jsonl"))
		paths = append(paths, older...)
	}
	for _, p := range paths {
		st, err := os.Lstat(p)
		m := known.RolloutName.FindStringSubmatch(filepath.Base(p))
		if err != nil || !st.Mode().IsRegular() || m == nil || m[1] != id {
			continue
		}
		r := rolloutFile{id: id, path: p, info: st, archived: filepath.Base(filepath.Dir(p)) == archivedDir}
		if !r.read(realDir(ref.Cwd), map[string]string{}) {
			continue
		}
		t := r.thread(threadNames(filepath.Join(home, sessionIndex)))
		t.Owner = a.holders(ctx, ref, n).of(id)
		return t, nil
	}
	return agent.Thread{}, fault.New(fault.NotFound, op, "there is no thread %s in this directory", id).
		WithHint("call agent_knock_knock_list_resumable_threads and use an id from it")
}

// owners is who holds threads open.
type owners struct {
	here, elsewhere map[string]bool
	blind           bool // a Codex process that may work in this directory could not be looked into
}

func (o owners) of(id string) agent.Ownership {
	switch {
	case o.elsewhere[id]:
		return agent.OwnedElsewhere
	case o.here[id]:
		return agent.OwnedHere
	case o.blind:
		return agent.OwnedUnknown
	}
	return agent.OwnedByNobody
}

// holders looks into every Codex process of this machine for the locks and rollouts of
// this home that it holds open: panes, batch runs and servers. The pane's own process is
// "here", and so is a server for what the pane's server says it has loaded.
func (a *Adapter) holders(ctx context.Context, ref agent.Ref, n agent.Native) owners {
	o := owners{here: map[string]bool{}, elsewhere: map[string]bool{}}
	table, err := a.processes(ctx)
	if err != nil {
		o.blind = true
		return o
	}
	loaded, complete := a.loaded(ctx, n)
	for _, p := range table {
		if p.Zombie() || len(p.Args) == 0 || filepath.Base(p.Args[0]) != known.ProgramName {
			continue
		}
		files, err := a.openFiles(ctx, p.PID)
		if err != nil {
			o.blind = o.blind || !fault.Is(err, fault.NotFound) && mayWorkIn(p, ref.Cwd)
			continue
		}
		server := slices.Contains(p.Args[1:], serverArgument)
		for _, id := range threadsOf(files, n.Extra[extraHome]) {
			switch {
			case p.PID == ref.Process.PID, server && loaded[id]:
				o.here[id] = true
			case server && n.Mode != ModeEmbedded && !complete:
				o.blind = true // it may be the pane's own server
			default:
				o.elsewhere[id] = true
			}
		}
	}
	return o
}

// loaded returns the threads that the pane's server has loaded, and whether that is all.
func (a *Adapter) loaded(ctx context.Context, n agent.Native) (map[string]bool, bool) {
	socket := n.Extra[extraSocket]
	if n.Mode == ModeEmbedded || socket == "" {
		return nil, true
	}
	view := a.servers.Look(ctx, a.clock.Now, socket)
	out := map[string]bool{}
	for _, t := range view.Threads {
		out[t.ID] = true
	}
	return out, view.Err == nil && !view.Partial
}

// mayWorkIn reports that a process cannot be proved to work in another directory.
func mayWorkIn(p procinfo.Process, cwd string) bool {
	full, err := procinfo.Details(p)
	return err != nil || full.Cwd == "" || realDir(full.Cwd) == realDir(cwd)
}

// threadsOf returns the threads of home whose lock or rollout is among the open files.
func threadsOf(files []procinfo.File, home string) []string {
	var out []string
	for _, f := range files {
		dir, name := filepath.Split(f.Path)
		dir = filepath.Clean(dir)
		if m := known.LockName.FindStringSubmatch(name); m != nil && dir == filepath.Join(home, known.LockDir) {
			out = append(out, m[1])
		} else if m := known.RolloutName.FindStringSubmatch(name); m != nil && strings.HasPrefix(dir, home+string(filepath.Separator)) {
			out = append(out, m[1])
		}
	}
	return out
}

// Package discover finds the coding agents that run in tmux panes of this user now: it
// joins tmux panes, the process table and the agents' own evidence. Nothing is remembered
// between scans and nothing is written; a failing server or pane becomes a Problem and
// never hides the others.
package discover

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// probeLimit bounds what is asked of one terminal: a hanging one is shown as unknown
	// and delays nobody (case T26).
	probeLimit = 1500 * time.Millisecond
	// probesAtOnce bounds how many terminals are asked at the same time.
	probesAtOnce = 8
)

// Options choose how much a scan reads.
type Options struct {
	// Only, when set, limits captures to this terminal. The others of its kind are still
	// identified: two panes may claim one thread, and either alone looks innocent.
	Only ids.TerminalID
	// Screens captures and classifies the panes.
	Screens bool
}

// Problem is one part of a scan that failed alone.
type Problem struct {
	Where string `json:"where"` // a socket, a terminal id, "tmux", "processes"
	What  string `json:"what"`
}

// Scan is what was found.
type Scan struct {
	Terminals []Terminal // ordered by tmux socket, session, window, pane
	Problems  []Problem
	Unseen    *Problem // the first part of the world that could not be looked at, nil if none
	Servers   int
}

// Scanner scans with a fixed set of adapters.
type Scanner struct {
	adapters []agent.Adapter
	sockets  []string
}

// New returns a scanner for the given agents. With sockets, only those tmux servers are
// looked at; without, every server of this user.
func New(sockets []string, adapters ...agent.Adapter) *Scanner {
	return &Scanner{adapters: adapters, sockets: sockets}
}

// Scan looks now. The error is for the whole scan, such as an unreadable process table:
// then nothing is known, which is not the same as nothing being there.
func (s *Scanner) Scan(ctx context.Context, o Options) (Scan, error) {
	table, out, panes, err := s.read(ctx)
	if err != nil {
		return Scan{}, fault.Wrap(err, fault.Unavailable, "discover.scan", "the process table cannot be read")
	}
	for _, p := range panes {
		out.Terminals = append(out.Terminals, s.agentsIn(table, p)...)
	}
	sort.SliceStable(out.Terminals, func(i, j int) bool { return before(out.Terminals[i].Pane, out.Terminals[j].Pane) })
	out.Problems = append(out.Problems, probe(ctx, out.Terminals, o)...)
	contestProcesses(out.Terminals)
	contestThreads(out.Terminals)
	return out, nil
}

// Find scans for one terminal. A missing one is fault.NotFound; one that was not seen while
// some server could not be asked is fault.Unavailable, because it may be there.
func (s *Scanner) Find(ctx context.Context, id ids.TerminalID) (Terminal, error) {
	scan, err := s.Scan(ctx, Options{Only: id, Screens: true})
	if err != nil {
		return Terminal{}, err
	}
	for _, t := range scan.Terminals {
		if t.ID == id {
			return t, nil
		}
	}
	if scan.Unseen != nil {
		return Terminal{}, fault.New(fault.Unavailable, "discover.find", "terminal %q was not seen, and not everything could be looked at: %s: %s", id, scan.Unseen.Where, scan.Unseen.What).
			WithHint("mend that, then call agent_knock_knock_list again")
	}
	return Terminal{}, fault.New(fault.NotFound, "discover.find", "terminal %q is not there now", id).
		WithHint("call agent_knock_knock_list and use an id from it")
}

// read reads the process table once and lists the panes. The servers to ask are known
// before, or told by the same table.
func (s *Scanner) read(ctx context.Context) (table *procinfo.Table, out Scan, panes []tmux.Pane, err error) {
	if len(s.sockets) == 0 {
		if table, err = procinfo.Snapshot(ctx); err == nil {
			out, panes = s.panes(ctx, table)
		}
		return table, out, panes, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { table, err = procinfo.Snapshot(ctx) })
	out, panes = s.panes(ctx, nil)
	wg.Wait()
	return table, out, panes, err
}

// panes lists every pane of every server. What failed is a Problem; what was found counts.
func (s *Scanner) panes(ctx context.Context, table *procinfo.Table) (Scan, []tmux.Pane) {
	var out Scan
	servers := make([]tmux.Server, len(s.sockets))
	for i, socket := range s.sockets {
		servers[i] = tmux.At(socket)
	}
	if len(s.sockets) == 0 {
		var err error
		if servers, err = tmux.DiscoverIn(ctx, os.Getenv, table); err != nil {
			out.unseen("tmux", err)
		}
	}
	if err := tmux.Installed(); err != nil {
		out.unseen("tmux", err)
	}
	out.Servers = len(servers)
	var panes []tmux.Pane
	for _, answer := range tmux.Inventory(ctx, servers) {
		if answer.Err != nil {
			out.unseen(answer.Server.Socket, answer.Err)
		}
		panes = append(panes, answer.Panes...)
	}
	return out, panes
}

// unseen notes a part of the world that could not be looked at.
func (s *Scan) unseen(where string, err error) {
	p := problem(where, err)
	s.Problems = append(s.Problems, p)
	if s.Unseen == nil {
		s.Unseen = &p
	}
}

func problem(where string, err error) Problem {
	_, msg, hint := fault.Public(err)
	if hint != "" {
		msg += " (" + hint + ")"
	}
	return Problem{where, msg}
}

// agentsIn matches the processes of a pane, by ancestry only: a working directory proves
// nothing. Two agents in one pane are a conflict for both.
func (s *Scanner) agentsIn(table *procinfo.Table, p tmux.Pane) []Terminal {
	root, ok := table.Get(p.PID)
	if !ok {
		return nil
	}
	var found []Terminal
	for _, proc := range append([]procinfo.Process{root}, table.Descendants(p.PID)...) {
		if parent, ok := table.Get(proc.PPID); ok && forked(proc, parent) {
			continue
		}
		for _, a := range s.adapters {
			if len(proc.Args) == 0 || !a.Match(proc) {
				continue
			}
			full, err := procinfo.Details(proc)
			if err != nil {
				continue // it ended while we looked
			}
			target := fmt.Sprintf("%s:%d.%d", p.Session, p.Window, p.Index)
			found = append(found, Terminal{
				ID: ids.NewTerminal(a.Kind(), target, proc.PID), Adapter: a, Pane: p,
				Ref: agent.Ref{
					Endpoint: turn.Endpoint{Socket: p.Socket, PaneID: p.ID, PanePID: p.PID, PaneBirth: root.Birth, Target: target},
					Process:  proc.Incarnation, Cwd: full.Cwd, Title: p.Title,
				},
			})
		}
	}
	if len(found) > 1 {
		for i := range found {
			found[i].Conflict = fmt.Sprintf("%d agent processes run in this pane", len(found))
		}
	}
	return found
}

// forked reports whether a process is a copy of its parent on the way to its own exec, as
// an agent's is for an instant whenever it starts a program.
func forked(p, parent procinfo.Process) bool {
	return p.Name == parent.Name && len(p.Args) > 0 && slices.Equal(p.Args, parent.Args)
}

// contestProcesses makes a process that seems to run in two panes ambiguous in both: a
// tmux server that was started inside a pane puts all of its panes below that one.
func contestProcesses(terminals []Terminal) {
	panes := map[turn.Incarnation][]int{}
	for i, t := range terminals {
		panes[t.Ref.Process] = append(panes[t.Ref.Process], i)
	}
	for _, same := range panes {
		if len(same) < 2 {
			continue
		}
		for _, i := range same {
			terminals[i].Conflict = fmt.Sprintf("its process seems to run in %d panes", len(same))
		}
	}
}

// contestThreads makes two terminals that seem to show one native thread ambiguous, both:
// each adapter saw its own pane only, and a task must never follow a guess (case E06).
func contestThreads(terminals []Terminal) {
	shown := map[[2]string][]int{}
	for i, t := range terminals {
		if t.Native.Thread == agent.ThreadResolved && t.Native.ThreadID != "" {
			key := [2]string{t.Adapter.Kind(), t.Native.ThreadID}
			shown[key] = append(shown[key], i)
		}
	}
	for _, same := range shown {
		if len(same) < 2 {
			continue
		}
		for _, i := range same {
			terminals[i].Native.Thread, terminals[i].Native.ThreadID = agent.ThreadAmbiguous, ""
			terminals[i].Conflict = fmt.Sprintf("%d terminals seem to show the same thread", len(same))
			terminals[i].Remedy = "close one of them; Codex panes of one directory are told apart when [tui] terminal_title names thread-id"
		}
	}
}

// probe asks each terminal for its evidence, some at a time, and meanwhile each tmux
// server once for all screens that are wanted of it.
func probe(ctx context.Context, terminals []Terminal, o Options) []Problem {
	var (
		wanted = make([]bool, len(terminals))
		native = make([]error, len(terminals))
		screen = make([]error, len(terminals))
		shots  = make([]tmux.Shot, len(terminals))
		slots  = make(chan struct{}, probesAtOnce)
		wg     sync.WaitGroup
	)
	for i := range terminals {
		wanted[i] = o.Screens && (o.Only == "" || terminals[i].ID == o.Only)
	}
	for socket, indexes := range bySocket(terminals, wanted) {
		wg.Go(func() { captureAll(ctx, socket, terminals, indexes, shots, screen) })
	}
	for i := range terminals {
		t := &terminals[i]
		if o.Only != "" && t.ID != o.Only && !sameKind(terminals, o.Only, t.Adapter) {
			continue
		}
		t.Screen = agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerUnknown}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Native, native[i] = identify(ctx, t)
		})
	}
	wg.Wait()
	var out []Problem
	for i := range terminals {
		t := &terminals[i]
		switch {
		case !wanted[i]:
		case screen[i] != nil:
			t.Screen.Reason = "the screen could not be read"
		default:
			t.Pane, t.Lines = shots[i].Pane, shots[i].Lines
			t.Screen = t.Adapter.Screen(shots[i].Capture)
		}
		if err := cmp.Or(screen[i], native[i]); err != nil {
			out = append(out, problem(string(t.ID), err))
		}
	}
	return out
}

// bySocket groups the indexes of the wanted terminals by their tmux server.
func bySocket(terminals []Terminal, wanted []bool) map[string][]int {
	out := map[string][]int{}
	for i, t := range terminals {
		if wanted[i] {
			out[t.Pane.Socket] = append(out[t.Pane.Socket], i)
		}
	}
	return out
}

// captureAll captures the panes of the terminals at indexes.
func captureAll(ctx context.Context, socket string, terminals []Terminal, indexes []int, shots []tmux.Shot, errs []error) {
	panes := make([]string, len(indexes))
	for k, i := range indexes {
		panes[k] = terminals[i].Pane.ID
	}
	got, err := tmux.At(socket).Captures(ctx, panes)
	for k, i := range indexes {
		if errs[i] = err; err == nil {
			shots[i], errs[i] = got[k], got[k].Err
		}
	}
}

// sameKind reports whether the terminal with the id is one of the adapter's.
func sameKind(terminals []Terminal, id ids.TerminalID, a agent.Adapter) bool {
	for _, t := range terminals {
		if t.ID == id {
			return t.Adapter == a
		}
	}
	return false
}

// identify reads the agent's own evidence. What could not be read is a Native too.
func identify(ctx context.Context, t *Terminal) (agent.Native, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	n, err := t.Adapter.Identify(ctx, t.Ref)
	if err != nil {
		n = agent.Native{Thread: agent.ThreadUnavailable, Activity: agent.ActivityUnknown, Channel: turn.ChannelKeyboard, Reason: "the agent's evidence could not be read"}
	}
	return n, err
}

func before(a, b tmux.Pane) bool {
	if a.Socket != b.Socket {
		return a.Socket < b.Socket
	}
	if a.Session != b.Session {
		return a.Session < b.Session
	}
	if a.Window != b.Window {
		return a.Window < b.Window
	}
	return a.Index < b.Index
}

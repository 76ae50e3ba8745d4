// Package torture breaks a running Bridge on purpose, at every boundary of a task, and
// then looks whether anything was lost, done twice or left behind.
//
// One [Round] is one task of one agent under one [Strike]: a process is held at a crash
// point, something is killed, frozen or refused by the disk, everything is let go again,
// and the next Bridge finishes what is left. The whole list of strikes is shuffled by a
// seed; a round is played again by its seed and number. The package drives the real
// binaries, built with the tag crashpoint; only tests import it.
package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

const module = "github.com/agent-knock-knock/akk/"

// The bounds of this package's waits. The promise of the product is in the comments; a
// loaded machine gets more.
const (
	patience  = 60 * time.Second
	goneLimit = 10 * time.Second // promised: 2 s
	callLimit = 40 * time.Second // promised: a tool answers within 10 s
	restLimit = 90 * time.Second // a frozen worker is replaced within 10 s, a retry comes after 5 s and 15 s
	pause     = 10 * time.Millisecond
)

// world is one Host, one tmux server, two agents and the Bridge that runs now.
type world struct {
	tb    testing.TB
	host  *fakehost.Host
	tmux  *faketmux.Server
	bin   string
	crash string // the folder of the crash points
	c     *fakehost.Client
	gone  []time.Duration // from a kill until nothing of ours was left
}

type pane struct {
	*standin.Setup
	*faketmux.Pane
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	dir := tb.TempDir()
	for pkg, name := range map[string]string{"bridge": "agent-knock-knock", "monitor": "akk-monitor", "worker": "akk-callback"} {
		if err := os.Link(gobuild.Program(tb, module+pkg, "-tags", "grpcnotrace,crashpoint"), filepath.Join(dir, name)); err != nil {
			tb.Fatal(err)
		}
	}
	w := &world{tb: tb, host: fakehost.New(tb, &fakehost.ProfileOptions{Timeout: 20 * time.Second}), tmux: faketmux.New(tb),
		bin: filepath.Join(dir, "agent-knock-knock"), crash: filepath.Join(dir, crashpoint.Folder)}
	if err := os.Mkdir(w.crash, 0o700); err != nil {
		tb.Fatal(err)
	}
	w.host.Env = append(w.host.Env, "XDG_RUNTIME_DIR="+faketmux.ShortDir(tb))
	return w
}

func (w *world) bridge() fakehost.Bridge {
	return w.host.Bridge(w.bin, "--tmux-socket", w.tmux.Socket())
}

func (w *world) start() {
	w.tb.Helper()
	w.c = fakehost.Start(w.tb, w.bridge())
}

func (w *world) agent(kind string) *pane {
	w.tb.Helper()
	s := standin.New(w.tb, kind)
	p := &pane{Setup: s, Pane: w.tmux.Run(faketmux.Spec{Argv: []string{"sh", "-c", s.Command()}})}
	s.WaitEvent(w.tb, "ready", 1, patience)
	return p
}

// ready waits until the terminal of p can take a task.
func (w *world) ready(p *pane) (terminal string) {
	w.tb.Helper()
	var last fakehost.Result
	w.wait("a ready terminal", func() bool {
		var l struct {
			Terminals []struct {
				PID        int                       `json:"pid"`
				TerminalID string                    `json:"terminal_id"`
				Actions    map[string]map[string]any `json:"available_actions"`
			} `json:"terminals"`
		}
		last = w.c.MustCall("agent_knock_knock_list", map[string]any{})
		last.Decode(w.tb, &l)
		for _, t := range l.Terminals {
			if t.PID == p.PID && t.Actions["send"] != nil {
				terminal = t.TerminalID
			}
		}
		return terminal != ""
	}, func() string { return string(last.JSON) })
	return terminal
}

// wait waits until cond holds.
func (w *world) wait(what string, cond func() bool, state func() string) {
	w.tb.Helper()
	w.waitFor(patience, what, cond, state)
}

func (w *world) waitFor(limit time.Duration, what string, cond func() bool, state func() string) {
	w.tb.Helper()
	for end := time.Now().Add(limit); !cond(); <-time.After(pause) {
		if time.Now().After(end) {
			w.tb.Fatalf("waited %v in vain for %s; last seen:\n%s", limit, what, state())
		}
	}
}

// hold makes the next process that comes to the point wait there.
func (w *world) hold(point string, skip int) {
	w.tb.Helper()
	if err := os.WriteFile(filepath.Join(w.crash, "hold."+point), []byte(fmt.Sprint(skip)), 0o600); err != nil {
		w.tb.Fatal(err)
	}
}

// held returns the process that waits at the point, 0 when none does.
func (w *world) held(point string) int {
	w.tb.Helper()
	found, err := filepath.Glob(filepath.Join(w.crash, "held."+point+".*"))
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, f := range found {
		pid := 0
		if _, err := fmt.Sscan(f[strings.LastIndexByte(f, '.')+1:], &pid); err == nil {
			return pid
		}
	}
	return 0
}

// letGo ends every hold, and those that nobody came to.
func (w *world) letGo() {
	w.tb.Helper()
	for _, pattern := range []string{"hold.*", "held.*", "fail.*"} {
		found, err := filepath.Glob(filepath.Join(w.crash, pattern))
		if err != nil {
			w.tb.Fatal(err)
		}
		for _, f := range found {
			if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
				w.tb.Fatal(err)
			}
		}
	}
}

// failAt makes the disk fail at the point.
func (w *world) failAt(point, how string) {
	w.tb.Helper()
	if err := os.WriteFile(filepath.Join(w.crash, "fail."+point), []byte(how), 0o600); err != nil {
		w.tb.Fatal(err)
	}
}

// child returns a live descendant of the Bridge by the base name of its program; 0: none.
func (w *world) child(name string) int {
	w.tb.Helper()
	table, err := procinfo.Snapshot(w.tb.Context())
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, p := range table.Descendants(w.c.PID()) {
		if len(p.Args) > 0 && filepath.Base(p.Args[0]) == name && !p.Zombie() {
			return p.PID
		}
	}
	return 0
}

// ours lists the live processes of this world's programs and of its callback program.
func (w *world) ours() (out []string) {
	w.tb.Helper()
	table, err := procinfo.Snapshot(w.tb.Context())
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, p := range table.All() {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		if err == nil && !p.Zombie() && (filepath.Dir(exe) == filepath.Dir(w.bin) || exe == w.host.Callback) {
			out = append(out, fmt.Sprintf("%d %v", p.PID, p.Args))
		}
	}
	return out
}

// nobodyLeft proves that everything of ours is gone soon after since.
func (w *world) nobodyLeft(since time.Time) {
	w.tb.Helper()
	var left []string
	w.waitFor(goneLimit-time.Since(since), "the end of everything that the Bridge started", func() bool {
		left = w.ours()
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
	w.gone = append(w.gone, time.Since(since))
}

// signal signals a process, which may have ended.
func (w *world) signal(pid int, sig syscall.Signal) {
	w.tb.Helper()
	if pid <= 0 {
		return
	}
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		w.tb.Fatal(err)
	}
}

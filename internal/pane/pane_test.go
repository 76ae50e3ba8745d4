package pane

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
)

const testThread = "01a20000-0000-7000-8000-000000000001"

func TestCodexRunsOnAServerOfItsOwnAndNothingOutlivesThePane(t *testing.T) {
	d := newDesk(t, Codex)
	d.req.Args = []string{"-m", "some-model", "--enable", "x", "go on"}
	r := d.start()
	if r.Mode != ModeRemote || r.Version != "9.8.7" || r.Session != "codex" || r.ThreadID != testThread || r.Workspace != d.dir || len(r.Notes) != 0 {
		t.Errorf("%+v", r)
	}
	starts := d.starts()
	server, tui := starts[0], starts[len(starts)-1]
	if !slices.Equal(server.Args[3:], []string{"--enable", "x"}) {
		t.Errorf("the server got %q", server.Args)
	}
	socket := server.Args[2]
	want := []string{"-c", codexTitle, "-c", codexStill, "-m", "some-model", "--enable", "x", "--remote", socket, "resume", testThread, "go on"}
	if !slices.Equal(tui.Args, want) {
		t.Errorf("the terminal program got\n%q, want\n%q", tui.Args, want)
	}
	var asked []string
	for _, s := range starts[1 : len(starts)-1] {
		if strings.HasPrefix(s.Args[0], "thread/") {
			asked = append(asked, strings.Join(s.Args, " "))
		}
	}
	if len(asked) != 2 || asked[0] != `thread/start {"cwd":"`+d.dir+`"}` || !strings.HasPrefix(asked[1], `thread/name/set {"name":"codex in it's a project"`) {
		t.Errorf("the server was asked %q", asked)
	}
	for i, s := range []started{server, tui} {
		if s.Cwd != d.dir || !slices.Contains(s.Env, "PERSON_SECRET=tell-nobody") {
			t.Errorf("%d runs in %s with %q", i, s.Cwd, s.Env)
		}
		for _, bad := range []string{"TERM=vt-of-the-person", "CLAUDECODE=1", "TMUX=/nowhere,1,0"} {
			if slices.Contains(s.Env, bad) {
				t.Errorf("%d has %s of the person's terminal", i, bad)
			}
		}
	}
	if !slices.Contains(tui.Env, "TMUX_PANE="+r.PaneID) {
		t.Errorf("the terminal program does not know its pane: %q", tui.Env)
	}
	dir := filepath.Dir(strings.TrimPrefix(socket, "unix://"))
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the server's directory: %v, %v", st, err)
	}
	if len(r.Commands) != 3 || !strings.Contains(r.Commands[1], socket) || r.Commands[2] != shell(append([]string{filepath.Join(strings.TrimPrefix(strings.Split(d.req.Env[0], ":")[0], "PATH="), Codex)}, want...)...) {
		t.Errorf("it says that it ran %q", r.Commands)
	}
	family := d.family(r.PaneID)
	if len(family) < 5 { // wrapper, runner, server, the server's stray child, terminal program
		t.Errorf("the pane's family has %d members", len(family))
	}
	d.tmux.Tmux("kill-pane", "-t", r.PaneID)
	d.gone(family)
	faketmux.Wait(t, "the end of the private directory", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) }, func() string { return dir })
}

func TestThePersonsEnvironmentIsNowhereButInTheAgent(t *testing.T) {
	d := newDesk(t, Codex)
	r := d.start()
	shown := d.tmux.Tmux("show-environment", "-g") + d.tmux.Tmux("show-environment", "-t", r.Session) + strings.Join(r.Commands, " ")
	if strings.Contains(shown, "tell-nobody") {
		t.Errorf("tmux knows the person's secret: %s", shown)
	}
	server := d.starts()[0]
	filepath.WalkDir(filepath.Dir(strings.TrimPrefix(server.Args[2], "unix://")), func(p string, e os.DirEntry, err error) error {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), "tell-nobody") {
			t.Errorf("%s holds the person's secret", p)
		}
		return nil
	})
	for _, inc := range d.family(r.PaneID) {
		if b, _ := os.ReadFile(filepath.Join("/proc", itoa(inc.PID), "cmdline")); strings.Contains(string(b), "tell-nobody") {
			t.Errorf("%q", b)
		}
	}
}

func TestEverythingEndsWhateverEndsFirst(t *testing.T) {
	for name, end := range map[string]func(*desk, Report, int){
		"the agent quits":           func(d *desk, r Report, _ int) { d.tmux.Tmux("send-keys", "-t", r.PaneID, "q") },
		"the wrapper is killed":     func(d *desk, _ Report, pid int) { d.kill(pid, syscall.SIGKILL) },
		"the wrapper is terminated": func(d *desk, _ Report, pid int) { d.kill(pid, syscall.SIGTERM) },
		"the tmux server is killed": func(d *desk, _ Report, _ int) { d.tmux.Kill() },
		"the session is killed":     func(d *desk, r Report, _ int) { d.tmux.Tmux("kill-session", "-t", "="+r.Session) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, Codex)
			r := d.start()
			family := d.family(r.PaneID)
			end(d, r, family[0].PID)
			d.gone(family)
		})
	}
}

func (d *desk) kill(pid int, sig syscall.Signal) {
	d.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		d.t.Fatal(err)
	}
}

func TestAnAgentThatIgnoresTheEndOfItsTerminalIsEnded(t *testing.T) {
	d := newDesk(t, Claude, "stubborn")
	r := d.start()
	family := d.family(r.PaneID)
	d.tmux.Tmux("kill-pane", "-t", r.PaneID)
	d.gone(family)
}

func TestKeysOfTheTerminalDoNotEndTheWrapper(t *testing.T) {
	d := newDesk(t, Claude)
	r := d.start()
	family := d.family(r.PaneID)
	d.kill(family[0].PID, syscall.SIGINT) // as Ctrl-C does while the agent lets an editor run
	d.tmux.Tmux("send-keys", "-t", r.PaneID, "x")
	if got := d.family(r.PaneID); len(got) != len(family) {
		t.Errorf("%d of %d live", len(got), len(family))
	}
}

func TestACodexWithoutAServerRunsEmbeddedAndSaysSo(t *testing.T) {
	for _, c := range []struct{ how, note, title string }{
		{"old", "no server on a unix socket", codexOldTitle},
		{"noserver", "no login", codexTitle},
	} {
		d := newDesk(t, Codex, c.how)
		r := d.start()
		if r.Mode != ModeEmbedded || r.ThreadID != "" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], c.note) {
			t.Errorf("%s: %+v", c.how, r)
		}
		starts := d.starts()
		if tui := starts[len(starts)-1]; !slices.Equal(tui.Args, []string{"-c", c.title, "-c", codexStill}) {
			t.Errorf("%s: %q", c.how, tui.Args)
		}
	}
}

// 0.160 writes no rollout before the first prompt; resuming it there ends the terminal program.
func TestAThreadThatIsNotOnDiskIsNotResumed(t *testing.T) {
	d := newDesk(t, Codex, "lazy")
	r := d.start()
	starts := d.starts()
	if tui := starts[len(starts)-1]; r.Mode != ModeRemote || r.ThreadID != "" || len(r.Notes) != 1 || slices.Contains(tui.Args, "resume") || !slices.Contains(tui.Args, "--remote") {
		t.Errorf("%+v, %q", r, tui.Args)
	}
}

func TestAnAgentThatEndsAtOnceIsAnErrorWithItsWordsAndLeavesNothing(t *testing.T) {
	d := newDesk(t, Claude, "crash")
	_, err := Start(t.Context(), d.req)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "I do not like the arguments") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("%v", err)
	}
	faketmux.Wait(t, "the end of the session", func() bool { _, err := d.tmux.Try("has-session", "-t", "=claude"); return err != nil }, func() string { return "it stays" })
}

func TestNamesOfSessionsAreFreeOnes(t *testing.T) {
	d := newDesk(t, Claude)
	for _, want := range []string{"claude", "claude-2", "claude-3"} {
		if r := d.start(); r.Session != want {
			t.Errorf("session %q, want %q", r.Session, want)
		}
	}
	d.req.Name = "claude-2"
	if _, err := Start(t.Context(), d.req); !fault.Is(err, fault.AlreadyExists) || !strings.Contains(err.Error(), "claude-2") {
		t.Errorf("%v", err)
	}
	d.req.Name = "review_1"
	if r := d.start(); r.Session != "review_1" || r.Attach != "tmux -S "+d.tmux.Socket()+" attach-session -t '=review_1'" {
		t.Errorf("%+v", r)
	}
	d.req.Name, d.req.Env = "", append(d.req.Env, "TMUX="+d.tmux.Socket()+",1,0")
	if r := d.start(); !strings.Contains(r.Attach, "switch-client") {
		t.Errorf("inside tmux: %q", r.Attach)
	}
}

func TestWrongRequestsAreRefusedBeforeAnythingRuns(t *testing.T) {
	d := newDesk(t, Codex)
	file := filepath.Join(d.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Request){
		"unknown agent":      func(r *Request) { r.Agent = "gemini" },
		"dots in a name":     func(r *Request) { r.Name = "a.b" },
		"a target as a name": func(r *Request) { r.Name = "-t" },
		"a long name":        func(r *Request) { r.Name = strings.Repeat("x", maxName+1) },
		"no directory":       func(r *Request) { r.Dir = filepath.Join(d.dir, "none") },
		"a file":             func(r *Request) { r.Dir = file },
		"control characters": func(r *Request) { r.Dir = d.dir + "\n" },
		"hooks for codex":    func(r *Request) { r.Hooks = true },
		"a batch command":    func(r *Request) { r.Args = []string{"-m", "x", "exec", "hi"} },
		"a batch flag":       func(r *Request) { r.Args = []string{"--version"} },
		"another server":     func(r *Request) { r.Args = []string{"--remote=ws://x"} },
		"too many arguments": func(r *Request) { r.Args = make([]string, maxArgs+1) },
		"not installed":      func(r *Request) { r.Env = []string{"PATH=/nowhere"} },
		"relative PATH":      func(r *Request) { r.Env = []string{"PATH=.:bin"} },
	} {
		r := d.req
		change(&r)
		_, err := Start(t.Context(), r)
		if _, msg, hint := fault.Public(err); err == nil || fault.CodeOf(err) == fault.Internal || hint == "" {
			t.Errorf("%s: %v (%s, %s)", name, err, msg, hint)
		}
	}
	if s := d.starts(); len(s) != 0 {
		t.Errorf("something ran: %+v", s)
	}
	if out := d.tmux.Tmux("list-sessions"); strings.Count(out, "\n") != 0 {
		t.Errorf("sessions: %s", out)
	}
}

func TestAThreadThatThePersonNamesIsTheOneThatIsShown(t *testing.T) {
	d := newDesk(t, Codex)
	d.req.Args = []string{"resume", "--last"}
	r := d.start()
	if starts := d.starts(); r.ThreadID != "" || !slices.Equal(starts[len(starts)-1].Args[6:], []string{"resume", "--last"}) {
		t.Errorf("%+v, %+v", r, starts)
	}
	d = newDesk(t, Claude)
	d.req.Args = []string{"--model", "x", "-c"}
	r = d.start()
	if starts := d.starts(); r.ThreadID != "" || len(r.Notes) != 1 || !slices.Equal(starts[0].Args, d.req.Args) {
		t.Errorf("%+v, %+v", r, starts)
	}
}

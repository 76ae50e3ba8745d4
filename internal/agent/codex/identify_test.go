package codex

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestMatchTakesTheTerminalProgramOnly(t *testing.T) {
	a := New(Options{})
	const exe = "/n/vendor/x/bin/codex"
	for args, want := range map[string]bool{
		"codex": true, "/n/bin/codex": true, "codex resume 01a2": true, "codex fork": true, "codex --no-daemon": true,
		"codex --remote unix:///tmp/s": true, "codex --remote unix:///tmp/s resume 01a2": true, "codex -m exec": true,
		"codex -C /tmp fix the bug": true, "codex -- exec": true, "codex agents": true, "codex -c a=b --search": true,
		"codex exec hi": false, "codex e hi": false, "codex -m gpt exec hi": false, "codex app-server --listen unix://": false,
		"codex app-server daemon pid-update-loop": false, "codex mcp-server": false, "codex queue --thread x": false,
		"codex login": false, "codex --version": false, "codex resume --help": true, "codex --codex-run-as-apply-patch x": false,
		"codex-linux-sandbox x": false, "node /n/bin/codex": false, "apply_patch": false,
	} {
		if got := a.Match(procinfo.Process{Args: strings.Fields(args), Exe: exe}); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	if a.Match(procinfo.Process{Args: []string{"codex"}, Exe: "/usr/bin/node"}) || a.Match(procinfo.Process{}) {
		t.Error("the node wrapper, or nothing, matched")
	}
}

// Cases 41, H5 and agents-live 0.2, 6; all seen on 0.171.
func TestLiteralMakesOnePlainPromptOrRefuses(t *testing.T) {
	a := New(Options{})
	for text, want := range map[string]string{
		"hello":            "hello",
		"  hello \n\n":     "hello",
		"a\r\nb\rc":        "a\nb\nc",
		"!ls":              " !ls",
		"/status":          " /status",
		"/tmp/x is a dir":  " /tmp/x is a dir",
		"exit":             "exit",
		"look at @README":  "look at @README ",
		"use $skill":       "use $skill ",
		"mail a@b.c":       "mail a@b.c",
		"@README first":    "@README first",
		"tab\tand | $(id)": "tab\tand | $(id) ",
		"!x @f":            " !x @f ",
	} {
		if got, err := a.Literal(text); err != nil || got != want {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, bad := range []string{"", " \n", "a\x1b[31mb", "bell\a", "nul\x00", "\xff", "/status " + strings.Repeat("x", 1000)} {
		if got, err := a.Literal(bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %q %v", bad, got, err)
		}
	}
	if _, err := a.Literal("/tmp/x " + strings.Repeat("x", 1000)); err != nil {
		t.Error("a long text that begins with a path: ", err)
	}
	tall, err := a.Literal(strings.Repeat("line\n", 30))
	if err != nil || len(tall) != 1001 || strings.TrimSpace(tall) != strings.TrimSpace(strings.Repeat("line\n", 30)) {
		t.Errorf("a tall text is shown as a placeholder: %d characters, %v", len(tall), err)
	}
}

// Case T19: the composer wraps; every character but white space must be there.
func TestTheDraftIsComparedWithoutWhiteSpaceAndTheLengthExactly(t *testing.T) {
	a := New(Options{})
	long := strings.Repeat("é", 1200) + "\n🙂"
	for _, tc := range []struct {
		name, pasted, draft string
		state               agent.ScreenState
		composer            agent.ComposerState
		want                agent.Match
	}{
		{"wrapped", "one two  three\n\tfour", "one two  th\nree\n  four", agent.ScreenIdle, agent.ComposerDraft, agent.MatchYes},
		{"one character differs", "one two three", "one two\nthreX", agent.ScreenIdle, agent.ComposerDraft, agent.MatchNo},
		{"something was there before", "two", "one two", agent.ScreenIdle, agent.ComposerDraft, agent.MatchNo},
		{"only a part is shown", "one two three", "two three", agent.ScreenIdle, agent.ComposerDraft, agent.MatchUnknown},
		{"placeholder", long, "[Pasted Content 1202 chars]", agent.ScreenIdle, agent.ComposerDraft, agent.MatchYes},
		{"placeholder, wrapped", long, "[Pasted Content\n1202 chars]", agent.ScreenIdle, agent.ComposerDraft, agent.MatchYes},
		{"placeholder of another length", long, "[Pasted Content 1203 chars]", agent.ScreenIdle, agent.ComposerDraft, agent.MatchNo},
		{"two placeholders", long, "[Pasted Content 1202 chars] #2[Pasted Content 1202 chars]", agent.ScreenIdle, agent.ComposerDraft, agent.MatchNo},
		{"empty", "one", "", agent.ScreenIdle, agent.ComposerEmpty, agent.MatchNo},
		{"a completion list would take Enter", "a @b", "a @b", agent.ScreenDialog, agent.ComposerDraft, agent.MatchUnknown},
		{"no composer", "one", "one", agent.ScreenUnknown, agent.ComposerUnknown, agent.MatchUnknown},
	} {
		if got := a.DraftMatches(agent.Screen{State: tc.state, Composer: tc.composer, Draft: tc.draft}, tc.pasted); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// world is a fake process with a real home.
type world struct {
	home  string
	files []procinfo.File
	args  []string
	exe   string
	env   map[string]string
	reads int
}

func (w *world) adapter() *Adapter {
	return New(Options{
		Read: func(pid int) (procinfo.Process, error) {
			return procinfo.Process{Incarnation: turn.Incarnation{PID: pid, Birth: "5@b"}, Args: w.args, Exe: w.exe}, nil
		},
		Env:       func(_ int, name string) (string, bool, error) { v, ok := w.env[name]; return v, ok, nil },
		OpenFiles: func(context.Context, int) ([]procinfo.File, error) { w.reads++; return w.files, nil },
	})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := realDir(t.TempDir())
	return &world{home: filepath.Join(dir, ".codex"), args: []string{"codex"}, env: map[string]string{"HOME": dir}}
}

const thread2 = "01a233d3-a0a2-7741-931d-ac368cff3773"

func (w *world) lock(t *testing.T, id string, at time.Time) {
	t.Helper()
	p := filepath.Join(w.home, "thread-writer-locks", id+".lock")
	add(t, p, "")
	if err := os.Chtimes(p, at, at); err != nil {
		t.Fatal(err)
	}
	w.files = append(w.files, procinfo.File{Path: p, Write: true})
}

func (w *world) open(t *testing.T, id, text string) string {
	t.Helper()
	p := strings.ReplaceAll(rolloutPath(w.home), testThread, id)
	add(t, p, text)
	w.files = append(w.files, procinfo.File{Path: p, Write: true})
	return p
}

func TestIdentifyEmbedded(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name    string
		prepare func(*world)
		title   string
		state   agent.ThreadState
		id      string
		active  agent.Activity
	}{
		{"virgin", func(w *world) { w.lock(t, testThread, now) }, "", agent.ThreadResolved, testThread, agent.ActivityIdle},
		{"working", func(w *world) { w.lock(t, testThread, now); w.open(t, testThread, record(started("T"))) }, "", agent.ThreadResolved, testThread, agent.ActivityWorking},
		{"an old version's rollout", func(w *world) { w.open(t, testThread, record(started("T"), aborted("T"))) }, "", agent.ThreadResolved, testThread, agent.ActivityIdle},
		{"an old version's virgin thread", func(*world) {}, "", agent.ThreadVerifiedAbsent, "", agent.ActivityUnknown},
		{"after /new", func(w *world) { w.lock(t, testThread, now.Add(-time.Minute)); w.lock(t, thread2, now) }, "", agent.ThreadResolved, thread2, agent.ActivityIdle},
		{"after /resume of the older one", func(w *world) { w.lock(t, testThread, now); w.lock(t, thread2, now.Add(-time.Minute)) }, "", agent.ThreadResolved, testThread, agent.ActivityIdle},
		{"the title wins", func(w *world) { w.lock(t, testThread, now); w.lock(t, thread2, now.Add(-time.Minute)) }, "Ready | 01a233d3-a0a2-7741-931d-ac368...", agent.ThreadResolved, thread2, agent.ActivityIdle},
		{"the title names a thread that is not open", func(w *world) { w.lock(t, testThread, now) }, "Ready | 01a233d3-a0a2-7741-931d-ac368...", agent.ThreadAmbiguous, "", agent.ActivityUnknown},
		{"two at the same moment", func(w *world) { w.lock(t, testThread, now); w.lock(t, thread2, now) }, "", agent.ThreadAmbiguous, "", agent.ActivityUnknown},
		{"a sub-agent's lock is newer", func(w *world) {
			w.lock(t, testThread, now.Add(-time.Minute))
			w.lock(t, thread2, now)
			w.open(t, thread2, `{"type":"session_meta","payload":{"id":"x","source":{"subagent":"review"}}}`+"\n")
		}, "", agent.ThreadResolved, testThread, agent.ActivityIdle},
		{"two rollouts of an old version", func(w *world) { w.open(t, testThread, "x\n"); w.open(t, thread2, "x\n") }, "", agent.ThreadAmbiguous, "", agent.ActivityUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.prepare(w)
			n, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}, Title: tc.title})
			if err != nil {
				t.Fatal(err)
			}
			if n.Mode != ModeEmbedded || n.Channel != turn.ChannelKeyboard || n.Thread != tc.state || n.ThreadID != tc.id || n.Activity != tc.active {
				t.Errorf("%+v", n)
			}
			if n.Thread == agent.ThreadAmbiguous && n.Reason == "" {
				t.Error("no reason for the ambiguity")
			}
		})
	}
}

func TestHomeAndVersionAreReadFromTheProcessAndItsFiles(t *testing.T) {
	w := newWorld(t)
	w.env["CODEX_HOME"] = filepath.Join(filepath.Dir(w.home), "elsewhere")
	w.exe = filepath.Join(filepath.Dir(w.home), "n", "vendor", "t", "bin", "codex")
	add(t, filepath.Join(filepath.Dir(w.home), "n", "package.json"), `{"name":"@openai/codex","version":"0.150.0-linux-x64"}`)
	n, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}})
	if err != nil || n.Version != "0.150.0" || n.Extra[extraHome] != w.env["CODEX_HOME"] {
		t.Errorf("%+v %v", n, err)
	}
	w.env, w.exe = nil, "/h/.codex/packages/app-server-daemon/releases/0.171.0-x86_64-unknown-linux-musl/bin/codex"
	if _, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without any home: %v", err)
	}
	w.lock(t, testThread, time.Now())
	if n, err = w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}}); err != nil || n.Version != "0.171.0" || n.Extra[extraHome] != w.home {
		t.Errorf("%+v %v", n, err)
	}
	if _, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7, Birth: "6@b"}}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a reused pid: %v", err)
	}
}

func TestIdentifyAThinClient(t *testing.T) {
	th := func(id, cwd, status string, flags ...string) appserver.Thread {
		return appserver.Thread{ID: id, Cwd: cwd, Version: "0.171.0", Source: "user", Status: appserver.Status{Type: status, Flags: flags}}
	}
	title := appserver.Thread{ID: "01a2ffff-0000-7000-8000-000000000000", Cwd: "/", Ephemeral: true, Source: "thread_title"}
	for _, tc := range []struct {
		name    string
		threads []appserver.Thread
		title   string
		state   agent.ThreadState
		id      string
		active  agent.Activity
		args    []string
	}{
		{"by the title", []appserver.Thread{th(testThread, "/", "idle"), th(thread2, "/", "active")}, "Working | 01a233d3-a0a2-7741-931d-ac368...", agent.ThreadResolved, thread2, agent.ActivityWorking, nil},
		{"by the directory", []appserver.Thread{title, th(testThread, "/", "active", "waitingOnApproval"), th(thread2, "/tmp", "idle")}, "proj", agent.ThreadResolved, testThread, agent.ActivityWaiting, nil},
		{"a failed turn leaves it idle", []appserver.Thread{th(testThread, "/", "systemError")}, "", agent.ThreadResolved, testThread, agent.ActivityIdle, nil},
		{"two in the directory", []appserver.Thread{th(testThread, "/", "idle"), th(thread2, "/", "idle")}, "proj", agent.ThreadAmbiguous, "", agent.ActivityUnknown, nil},
		{"an id that is not loaded", []appserver.Thread{th(testThread, "/", "idle")}, "01a233d3-a0a2-7741-931d-ac368...", agent.ThreadAmbiguous, "", agent.ActivityUnknown, nil},
		{"another directory on the command line", []appserver.Thread{th(testThread, "/", "idle")}, "proj", agent.ThreadAmbiguous, "", agent.ActivityUnknown, []string{"-C", "/tmp"}},
		{"its own directory on the command line", []appserver.Thread{th(testThread, "/", "idle"), th(thread2, "/tmp", "idle")}, "proj", agent.ThreadResolved, thread2, agent.ActivityIdle, []string{"--cd=tmp"}},
		{"nothing is loaded", nil, "", agent.ThreadVerifiedAbsent, "", agent.ActivityUnknown, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			s := newScripted(t, tc.threads...)
			w.args = []string{"codex", "--remote", "unix://" + s.socket}
			w.args = append(w.args, tc.args...)
			n, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}, Cwd: "/", Title: tc.title})
			if err != nil {
				t.Fatal(err)
			}
			if n.Mode != ModeRemote || n.Thread != tc.state || n.ThreadID != tc.id || n.Activity != tc.active {
				t.Errorf("%+v", n)
			}
			if (n.Channel == turn.ChannelCodexSocket) != (n.Thread == agent.ThreadResolved) || n.Extra[extraSocket] != s.socket {
				t.Errorf("channel %s, socket %s", n.Channel, n.Extra[extraSocket])
			}
		})
	}
}

// A list over many panes of one server asks it once, and embedded panes ask no server.
func TestManyPanesOfOneServerAreIdentifiedWithOneConnection(t *testing.T) {
	w := newWorld(t)
	s := newScripted(t, appserver.Thread{ID: testThread, Cwd: "/"})
	if err := os.MkdirAll(filepath.Join(w.home, "app-server-control"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.socket, filepath.Join(w.home, "app-server-control", "app-server-control.sock")); err != nil {
		t.Fatal(err)
	}
	a := w.adapter()
	for range 20 {
		if n, err := a.Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}, Cwd: "/"}); err != nil || n.Mode != ModeDaemon || n.ThreadID != testThread {
			t.Fatalf("%+v %v", n, err)
		}
	}
	// Under load a pass may outlive one answer's life; it never grows with the panes.
	if d := s.seen("initialize"); d > 5 {
		t.Errorf("%d connections", d)
	}
	w.lock(t, testThread, time.Now())
	before := s.seen("initialize")
	if n, err := a.Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}}); err != nil || n.Mode != ModeEmbedded || s.seen("initialize") != before {
		t.Errorf("an embedded pane beside a daemon: %+v %v", n, err)
	}
}

func TestASilentOrAbsentServerLeavesTheThreadUnknownInTime(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts in the kernel, answers nothing
	for _, addr := range []string{"unix://" + l.Addr().String(), "unix:///nowhere/s", "ws://10.0.0.1:1"} {
		w := newWorld(t)
		w.args = []string{"codex", "--remote=" + addr}
		n, err := w.adapter().Identify(context.Background(), agent.Ref{Process: turn.Incarnation{PID: 7}})
		if err != nil || n.Thread != agent.ThreadUnavailable || n.Channel != turn.ChannelKeyboard || n.Reason == "" {
			t.Errorf("%s: %+v %v", addr, n, err)
		}
	}
}

func BenchmarkIdentifyEmbedded(b *testing.B) {
	a := New(Options{})
	ref := agent.Ref{Process: turn.Incarnation{PID: os.Getpid()}}
	for b.Loop() {
		if _, err := a.Identify(context.Background(), ref); err != nil {
			b.Fatal(err)
		}
	}
}

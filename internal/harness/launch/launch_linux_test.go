package launch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

// patience bounds every wait; machines are busy.
const patience = 30 * time.Second

// The test binary plays the scripted agent, and a server that is killed.
const (
	roleAgent  = "play-the-agent"
	roleServer = "play-the-server"
)

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleAgent:
			os.Exit(fakeacp.Main(os.Args[2:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		case roleServer:
			os.Exit(serve(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

func agentArgv(t testing.TB, flags ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe, roleAgent}, flags...)
}

func newLocal(t testing.TB, o launch.Options) *launch.Local {
	t.Helper()
	spawner := proc.NewSpawner()
	runners := proc.NewRunners(spawner, 1)
	t.Cleanup(func() { runners.Close(); spawner.Close() })
	return launch.NewLocal(runners, os.Environ(), o)
}

// agent is a started agent with its session.
type agent struct {
	t    testing.TB
	proc *launch.Process
	conn *acp.Conn
	sid  string
	text acp.Transcript
}

func (a *agent) Handle(e acp.Event) {
	if u, ok := e.(*acp.Update); ok {
		if err := a.text.Update(u); err != nil {
			a.t.Error(err)
		}
	}
}

func start(t testing.TB, l *launch.Local, s launch.Spec) *agent {
	t.Helper()
	p, err := l.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, proc: p}
	a.conn = acp.Open(context.WithoutCancel(t.Context()), p.Stdout(), p.Stdin(), a, acp.Options{})
	t.Cleanup(func() {
		p.Kill()
		p.Close(context.WithoutCancel(t.Context()))
		a.conn.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := a.conn.Initialize(ctx, acp.Info{Name: "test", Version: "0"}, acp.ClientCaps{}); err != nil {
		t.Fatal(err)
	}
	session, err := a.conn.NewSession(ctx, acp.SessionParams{CWD: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	a.sid = session.ID
	return a
}

func (a *agent) say(text string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	a.text = acp.Transcript{}
	if _, err := a.conn.Prompt(ctx, a.sid, "turn", acp.Text(text)); err != nil {
		a.t.Fatal(err)
	}
	return a.text.Text()
}

// alive reports whether the process runs and is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := text[bytes.LastIndexByte(text, ')')+1:]
	return !strings.HasPrefix(strings.TrimSpace(string(after)), "Z")
}

func waitFor(t testing.TB, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func spawned(t testing.TB, text string) []int {
	t.Helper()
	var pids []int
	for _, part := range strings.Split(text, "[spawned:")[1:] {
		pid, err := strconv.Atoi(strings.TrimSuffix(part, "]"))
		if err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Fatalf("%d does not run", pid)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestAnAgentTalksAndEndsWithItsInput(t *testing.T) {
	l := newLocal(t, launch.Options{EOFGrace: patience})
	a := start(t, l, launch.Spec{Argv: agentArgv(t, "--stderr=hello TOKEN=abcdefghijklmnop"), Dir: t.TempDir()})
	if got := a.say("hello"); got != "echo:hello" {
		t.Errorf("got %q", got)
	}
	exit := a.proc.Close(t.Context())
	if exit != (launch.Exit{}) {
		t.Errorf("got %+v", exit)
	}
	tail := strings.Join(a.proc.StderrTail(), "\n")
	if !strings.HasPrefix(tail, "hello") || strings.Contains(tail, "abcdefghijklmnop") {
		t.Errorf("tail %q", tail)
	}
	if again := a.proc.Close(t.Context()); again != exit {
		t.Errorf("a second Close says %+v", again)
	}
}

// A09, case 25: an agent that ignores the end of its input and SIGTERM is killed, and with
// it whatever it started, in whatever session, ignoring whatever signal.
func TestNothingOfAStubbornAgentIsLeft(t *testing.T) {
	l := newLocal(t, launch.Options{EOFGrace: 50 * time.Millisecond, TermGrace: 100 * time.Millisecond})
	a := start(t, l, launch.Spec{Argv: agentArgv(t, "--ignore-term", "--stay-open"), Dir: t.TempDir()})
	pids := spawned(t, a.say("FORK 3"))
	if sid, err := sessionOf(a.proc.PID); err != nil || sid != a.proc.PID {
		t.Errorf("session %d, %v", sid, err)
	}
	exit := a.proc.Close(t.Context())
	if exit.Signal != syscall.SIGKILL || exit.Left != 0 {
		t.Errorf("got %+v", exit)
	}
	for _, pid := range append(pids, a.proc.PID) {
		if alive(pid) {
			t.Errorf("%d lives", pid)
		}
	}
}

func sessionOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[3])
}

// An agent that honours SIGTERM is not killed.
func TestAnAgentMayEndInOrder(t *testing.T) {
	l := newLocal(t, launch.Options{EOFGrace: 10 * time.Millisecond, TermGrace: patience})
	a := start(t, l, launch.Spec{Argv: agentArgv(t, "--stay-open"), Dir: t.TempDir()})
	if exit := a.proc.Close(t.Context()); exit.Signal != syscall.SIGTERM || exit.Left != 0 {
		t.Errorf("got %+v", exit)
	}
}

// Case 28: how it ended is known, and its tree ends with it.
func TestAnAgentThatEndsByItselfTakesItsTreeAlong(t *testing.T) {
	for script, want := range map[string]launch.Exit{
		"SPAWN; EXIT 7": {Code: 7},
		"SPAWN; CRASH":  {Code: -1, Signal: syscall.SIGKILL},
	} {
		l := newLocal(t, launch.Options{})
		a := start(t, l, launch.Spec{Argv: agentArgv(t), Dir: t.TempDir()})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := a.conn.Prompt(ctx, a.sid, "turn", acp.Text("STDERR last words; "+script))
		cancel()
		if !fault.Is(err, acp.Transport) {
			t.Errorf("%s: %v", script, err)
		}
		<-a.proc.Exited()
		if got := a.proc.Exit(); got != want {
			t.Errorf("%s: %+v", script, got)
		}
		if tail := a.proc.StderrTail(); !slices.Contains(tail, "last words") {
			t.Errorf("%s: tail %q", script, tail)
		}
		text := a.text.Text()
		pid, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, "[spawned:"), "]"))
		if pid == 0 || alive(pid) {
			t.Errorf("%s: %q, %d lives", script, text, pid)
		}
	}
}

// serve is the server of the next test: it says the pids of its agent's tree and waits.
func serve(dir string) int {
	spawner := proc.NewSpawner()
	l := launch.NewLocal(proc.NewRunners(spawner, 1), os.Environ(), launch.Options{})
	exe, _ := os.Executable()
	p, err := l.Start(context.Background(), launch.Spec{Argv: []string{exe, roleAgent, "--ignore-term", "--stay-open"}, Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var text acp.Transcript
	conn := acp.Open(context.Background(), p.Stdout(), p.Stdin(), acp.HandlerFunc(func(e acp.Event) {
		if u, ok := e.(*acp.Update); ok {
			_ = text.Update(u)
		}
	}), acp.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := conn.Initialize(ctx, acp.Info{Name: "server"}, acp.ClientCaps{}); err != nil {
		return 1
	}
	s, err := conn.NewSession(ctx, acp.SessionParams{CWD: dir})
	if err != nil {
		return 1
	}
	if _, err := conn.Prompt(ctx, s.ID, "turn", acp.Text("FORK 2")); err != nil {
		return 1
	}
	fmt.Printf("[spawned:%d]%s\n", p.PID, text.Text())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// Case 63: a server that is SIGKILLed leaves nothing behind.
func TestTheTreeEndsWithItsServer(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(exe, roleServer, t.TempDir())
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	if err != nil {
		_ = server.Wait()
		t.Fatal(err)
	}
	pids := spawned(t, strings.TrimSpace(string(buf[:n])))
	if len(pids) != 3 {
		t.Fatalf("got %q", buf[:n])
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := waitFor(t, "the agent's tree is gone", func() bool {
		return !slices.ContainsFunc(pids, alive)
	})
	t.Logf("gone %s after the kill", took.Round(time.Millisecond))
	_ = server.Wait()
}

func TestAStartThatCannotBeIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLocal(t, launch.Options{})
	env := map[string]string{"PATH": "relative:" + dir}
	for name, c := range map[string]struct {
		spec  launch.Spec
		code  fault.Code
		errno syscall.Errno
	}{
		"remote":             {launch.Spec{Target: "remote", Argv: []string{"x"}, Dir: dir}, launch.UnsupportedTarget, 0},
		"docker":             {launch.Spec{Runtime: "docker", Argv: []string{"x"}, Dir: dir}, launch.UnsupportedTarget, 0},
		"no program":         {launch.Spec{Dir: dir}, launch.SpawnFailed, 0},
		"relative dir":       {launch.Spec{Argv: []string{"x"}, Dir: "a"}, launch.InvalidCwd, 0},
		"missing dir":        {launch.Spec{Argv: []string{"x"}, Dir: filepath.Join(dir, "no")}, launch.InvalidCwd, 0},
		"dir is a file":      {launch.Spec{Argv: []string{"x"}, Dir: file}, launch.InvalidCwd, 0},
		"not on PATH":        {launch.Spec{Argv: []string{"no-such-agent"}, Dir: dir, Env: env}, launch.SpawnFailed, syscall.ENOENT},
		"not executable":     {launch.Spec{Argv: []string{"plain"}, Dir: dir, Env: env}, launch.SpawnFailed, syscall.EACCES},
		"relative program":   {launch.Spec{Argv: []string{"./plain"}, Dir: dir}, launch.SpawnFailed, syscall.ENOENT},
		"absolute, no exec":  {launch.Spec{Argv: []string{file}, Dir: dir}, launch.SpawnFailed, syscall.EACCES},
		"a NUL in the value": {launch.Spec{Argv: []string{"/bin/true"}, Dir: dir, Env: map[string]string{"A": "x\x00"}}, launch.SpawnFailed, syscall.EINVAL},
	} {
		_, err := l.Start(t.Context(), c.spec)
		var spawn *launch.SpawnError
		if !fault.Is(err, c.code) || errors.As(err, &spawn) && spawn.Errno != c.errno {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Case 65.
func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	ours := []string{"PATH=/bin", "HOME=/h", "CLAUDECODE=1", "FOO_TOKEN=x", "ANTHROPIC_API_KEY=y", "LC_ALL=C", "XDG_RUNTIME_DIR=/run",
		"CODEX_SANDBOX=1", "GEMINI_CLI=1", "TERM=xterm", "DOCKER_HOST=unix:///d", "LD_PRELOAD=/evil.so"}
	got := launch.Environment(ours, map[string]string{"MY_KEY": "1", "HOME": "/other"})
	want := []string{"DOCKER_HOST=unix:///d", "HOME=/other", "LC_ALL=C", "MY_KEY=1", "NO_COLOR=1", "PATH=/bin", "TERM=dumb", "XDG_RUNTIME_DIR=/run"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestTheChildGetsItsArgumentsDirectoryAndEnvironment(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("FOO_TOKEN", "x")
	dir := t.TempDir()
	l := newLocal(t, launch.Options{})
	a := start(t, l, launch.Spec{Argv: agentArgv(t, "--name=a b", "$HOME", "'q'"), Dir: dir, Env: map[string]string{"GIVEN": "a=b c"}})
	for script, want := range map[string]string{
		"ENV GIVEN": "a=b c", "ENV CLAUDECODE": "[unset]", "ENV FOO_TOKEN": "[unset]", "ENV TERM": "dumb", "ARGS": "--name=a b|$HOME|'q'",
	} {
		if got := a.say(script); got != want {
			t.Errorf("%s: %q", script, got)
		}
	}
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", a.proc.PID)); err != nil || got != dir {
		t.Errorf("cwd %q, %v", got, err)
	}
}

func TestTheTailOfStderrIsBounded(t *testing.T) {
	l := newLocal(t, launch.Options{StderrLines: 3})
	p, err := l.Start(t.Context(), launch.Spec{Argv: []string{"/bin/sh", "-c", `i=0; while [ $i -lt 5000 ]; do echo "line $i" >&2; i=$((i+1)); done; head -c 100000 /dev/zero | tr '\0' x >&2; echo >&2; printf 'no end' >&2`}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	tail := p.StderrTail()
	p.Close(t.Context())
	if len(tail) != 4 || tail[1] != "line 4999" || len(tail[2]) > 2200 || tail[3] != "no end" {
		t.Errorf("%d lines: %.100q", len(tail), tail)
	}
}

func TestAStartThatIsTooLateStartsNothing(t *testing.T) {
	l := newLocal(t, launch.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Start(ctx, launch.Spec{Argv: []string{"/bin/true"}, Dir: t.TempDir()})
	if !fault.Is(err, launch.SpawnFailed) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

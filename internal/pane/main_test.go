package pane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The test binary is everything: the wrapper, the runner of the wrapper's server, and the
// agent, which finds its part in the environment.
func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if len(os.Args) == 3 && os.Args[1] == WrapperArg {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGHUP, syscall.SIGTERM)
		defer stop()
		status, _ := Wrap(ctx, os.Args[2], Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		os.Exit(status)
	}
	if part := os.Getenv(envPart); part != "" {
		os.Exit(playAgent(strings.Split(part, ",")))
	}
	os.Exit(m.Run())
}

const (
	envPart = "PANE_TEST_PART" // codex or claude, and how it misbehaves
	envLog  = "PANE_TEST_LOG"  // gets one JSON line for every start of the agent
)

// started is one start of the agent.
type started struct {
	Args []string
	Env  []string
	Cwd  string
	PID  int
}

// playAgent is an agent as far as package pane can tell.
func playAgent(part []string) int {
	args := os.Args[1:]
	is := func(word string) bool {
		for _, p := range part {
			if p == word {
				return true
			}
		}
		return false
	}
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println(part[0] + "-cli 9.8.7")
		return 0
	case len(args) == 1 && args[0] == "--help":
		if is("old") {
			fmt.Println("--remote <ADDR> ws://host:port")
		} else {
			fmt.Println("--remote <ADDR> unix://PATH --session-id <uuid> --settings <file>")
		}
		return 0
	}
	note(args)
	switch {
	case len(args) > 0 && args[0] == "app-server":
		if is("noserver") {
			fmt.Fprintln(os.Stderr, "a first line\nno login")
			return 3
		}
		return playServer(strings.TrimPrefix(args[2], "unix://"), is("lazy"))
	case is("crash"):
		fmt.Println("error: I do not like the arguments")
		return 2
	}
	return playTerminal(is("stubborn"))
}

func note(args []string) {
	cwd, _ := os.Getwd()
	b, _ := json.Marshal(started{args, os.Environ(), cwd, os.Getpid()})
	f, err := os.OpenFile(os.Getenv(envLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		f.Write(append(b, '\n'))
		f.Close()
	}
}

// playServer also starts a child that leaves its group and stays.
func playServer(socket string, lazy bool) int {
	path := filepath.Join(filepath.Dir(socket), "rollout.jsonl")
	child := exec.Command("sh", "-c", "trap '' HUP TERM; while :; do sleep 1; done")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_ = child.Start()
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			_, b, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			if json.Unmarshal(b, &m) != nil || m.ID == nil {
				continue
			}
			note([]string{m.Method, string(m.Params)})
			if m.Method == "thread/name/set" && !lazy {
				_ = os.WriteFile(path, nil, 0o600)
			}
			result := `{"thread":{"id":"01a20000-0000-7000-8000-000000000001","path":"` + path + `"}}`
			_ = ws.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `{"id":%s,"result":%s}`, m.ID, result))
		}
	}))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// playTerminal takes the terminal and ends with "q", or with the terminal.
func playTerminal(stubborn bool) int {
	if stubborn {
		signal.Ignore(syscall.SIGHUP, syscall.SIGTERM)
	}
	t, err := unix.IoctlGetTermios(0, getTermios)
	if err != nil {
		return 1
	}
	t.Lflag &^= unix.ICANON | unix.ECHO
	if err := unix.IoctlSetTermios(0, setTermios, t); err != nil {
		return 1
	}
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	for {
		b, err := in.ReadByte()
		if err != nil && stubborn {
			<-time.After(time.Hour)
		}
		if err != nil || b == 'q' {
			return 7
		}
	}
}

// desk is a person's tmux and environment.
type desk struct {
	t    *testing.T
	tmux *faketmux.Server
	dir  string // the project
	log  string
	req  Request
}

// newDesk has a tmux server that runs already and knows nothing of the person's variables.
func newDesk(t *testing.T, part ...string) *desk {
	t.Helper()
	srv := faketmux.New(t)
	srv.Run(faketmux.Spec{Argv: []string{"sleep", "3600"}})
	d := &desk{t: t, tmux: srv, dir: filepath.Join(faketmux.ShortDir(t), "it's a project")}
	d.log = filepath.Join(t.TempDir(), "log")
	bin := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(d.dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, part[0]), []byte("#!/bin/sh\nexec "+quote(self)+" \"$@\"\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.req = Request{Agent: part[0], Dir: d.dir, Socket: srv.Socket(), Self: self, Env: []string{
		"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "TERM=vt-of-the-person", "TMUX=/nowhere,1,0", "CLAUDECODE=1",
		"PERSON_SECRET=tell-nobody", envPart + "=" + strings.Join(part, ","), envLog + "=" + d.log,
	}}
	return d
}

func (d *desk) start() Report {
	d.t.Helper()
	r, err := Start(d.t.Context(), d.req)
	if err != nil {
		d.t.Fatalf("%v; started %+v", err, d.starts())
	}
	return r
}

// starts is what the agent's executable was started with so far, and what was asked of
// its server.
func (d *desk) starts() []started {
	d.t.Helper()
	b, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	var out []started
	for line := range strings.Lines(string(b)) {
		var s started
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			d.t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// family is everything that lives in the pane now, the wrapper first.
func (d *desk) family(paneID string) []turn.Incarnation {
	d.t.Helper()
	var pid int
	if _, err := fmt.Sscan(d.tmux.Tmux("display-message", "-p", "-t", paneID, "#{pane_pid}"), &pid); err != nil {
		d.t.Fatal(err)
	}
	table, err := procinfo.Snapshot(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	root, _ := table.Get(pid)
	out := []turn.Incarnation{root.Incarnation}
	for _, p := range table.Descendants(pid) {
		out = append(out, p.Incarnation)
	}
	return out
}

// gone waits until none of the family lives.
func (d *desk) gone(family []turn.Incarnation) {
	d.t.Helper()
	for _, inc := range family {
		faketmux.Wait(d.t, "the end of a process", func() bool {
			alive, err := procinfo.Alive(inc)
			return err == nil && !alive
		}, func() string {
			b, _ := exec.Command("ps", "-o", "pid,ppid,args", "-p", fmt.Sprint(inc.PID)).Output()
			return string(b)
		})
	}
}

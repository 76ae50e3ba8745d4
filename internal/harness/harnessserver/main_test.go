package harnessserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnessserver"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

// Arguments that make the re-executed test binary something else.
const (
	agentArg  = "be-the-agent"
	serverArg = "be-the-server"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case agentArg:
			os.Exit(fakeacp.Main(os.Args[2:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		case serverArg:
			os.Exit(beServer(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// beServer is a server as the product's main starts it, on any free port. Its address is
// the one line that it prints. change is settings that differ, as one JSON object, or nothing.
func beServer(stateDir string, change []string) int {
	signal.Ignore(syscall.SIGXFSZ) // a test may leave no room for its files
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := config.Default(stateDir)
	c.Listen, c.StateDir = "127.0.0.1:0", stateDir
	c.Sessions.MaxConcurrency = 64
	for _, text := range change {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	spawner := proc.NewSpawner()
	defer spawner.Close()
	runners := proc.NewRunners(spawner, 1)
	defer runners.Close()
	err := harnessserver.Run(ctx, harnessserver.Options{Config: c, Lifeline: os.Stdin, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Launcher: sessions.On(launch.NewLocal(runners, os.Environ(), launch.Options{TermGrace: time.Second})),
		Ready:    func(addr string) { fmt.Println(addr) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, fault.CodeOf(err), err)
		if fault.Is(err, harness.ServerAlreadyRunning) {
			return 3
		}
		return 1
	}
	return 0
}

// server is a server in a process of its own.
type server struct {
	*testing.T
	dir   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	addr  string
	log   *bytes.Buffer
	exit  chan int
}

func command(t *testing.T, dir string, change ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(exe, append([]string{serverArg, dir}, change...)...)
}

// startServer starts a server and waits until it answers.
func startServer(t *testing.T, dir string, change ...string) *server {
	t.Helper()
	s := &server{T: t, dir: dir, cmd: command(t, dir, change...), log: &bytes.Buffer{}, exit: make(chan int, 1)}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
		_ = s.cmd.Wait()
		s.exit <- s.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		s.stdin.Close()
		s.ended()
	})
	if s.addr = <-line; s.addr == "" {
		t.Fatalf("the server did not start: %s", s.log)
	}
	return s
}

// ended waits for the server's end and returns its exit code.
func (s *server) ended() int {
	s.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case code := <-s.exit:
		s.exit <- code
		return code
	case <-timer.C:
		_ = s.cmd.Process.Kill()
		s.Errorf("the server did not end; its log: %s", s.log)
		return -2
	}
}

// post sends a request as it is and returns its answer.
func (s *server) post(op string, body string, change func(r *http.Request)) (int, string) {
	s.Helper()
	return s.postSeen(op, body, change, func(http.Header) {})
}

// postSeen is post that shows the answer's headers.
func (s *server) postSeen(op string, body string, change func(r *http.Request), seen func(http.Header)) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, "http://"+s.addr+"/api/"+op, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	token, err := os.ReadFile(config.TokenFile(s.dir))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if change != nil {
		change(r)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	seen(res.Header)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

type object = map[string]any

// call calls an operation and returns its data, or the code of its error.
func (s *server) call(op string, in object) (object, string) {
	s.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	_, text := s.post(op, string(body), nil)
	var out struct {
		OK    bool
		Data  object
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.Fatalf("%s: %s", op, text)
	}
	if !out.OK && out.Error.Code == "" {
		s.Fatalf("%s: %s", op, text)
	}
	return out.Data, out.Error.Code
}

func (s *server) must(op string, in object) object {
	s.Helper()
	data, code := s.call(op, in)
	if code != "" {
		s.Fatalf("%s: %s", op, code)
	}
	return data
}

func (s *server) create(id string, flags ...string) object {
	s.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	state := filepath.Join(s.dir, "agent-state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		s.Fatal(err)
	}
	return s.must("create_session", object{"session_id": id, "harness": "scripted", "model_id": "default", "cwd": s.dir, "command": exe,
		"args": append([]string{agentArg, "--state", state}, flags...)})
}

func (s *server) send(id, text string) string {
	s.Helper()
	return s.must("send_message", object{"session_id": id, "text": text})["message_id"].(string)
}

// await waits until the message is in the state.
func (s *server) await(id, message, state string) object {
	s.Helper()
	deadline := time.Now().Add(patience)
	for {
		st := s.must("message_status", object{"session_id": id, "message_id": message, "wait_ms": 1000})
		if st["state"] == state {
			return st
		}
		if st["terminal"] == true || time.Now().After(deadline) {
			s.Fatalf("the message is not %s: %v", state, st)
		}
	}
}

// gone waits until a process is no more.
func gone(t *testing.T, pid int, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for syscall.Kill(pid, 0) != syscall.ESRCH {
		if time.Since(began) > limit {
			t.Fatalf("process %d still lives after %s", pid, limit)
		}
		timer := time.NewTimer(5 * time.Millisecond)
		<-timer.C
	}
	return time.Since(began)
}

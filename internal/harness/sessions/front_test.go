package sessions_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

// frontArg makes the re-executed test binary the scripted agent behind a front that answers
// some calls by itself, as the files of a folder say:
//
//	say      what it does before authenticate goes on: lines "out TEXT", "err TEXT", "wait FILE"
//	refuse   when it is there, every change of an option demands a login
//	status   the result of authentication/status; "never" is no answer at all
const frontArg = "be-the-agent-behind-a-front"

// front is the folder of a front and the launch of its agent.
type front struct {
	*world
	dir    string
	launch harness.Launch
}

// front makes an agent with a front. Its login is the file login of the folder.
func (w *world) front(id string, flags ...string) front {
	w.Helper()
	f := front{world: w, dir: w.TempDir()}
	f.launch = w.launchOf(id, append([]string{"--auth-required", "--login-state", f.file("login")}, flags...)...)
	f.launch.Args = append([]string{frontArg, f.dir}, f.launch.Args[1:]...)
	return f
}

func (f front) file(name string) string { return filepath.Join(f.dir, name) }

func (f front) write(name, content string) {
	f.Helper()
	if err := os.WriteFile(f.file(name)+".new", []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
	if err := os.Rename(f.file(name)+".new", f.file(name)); err != nil { // it is never seen half
		f.Fatal(err)
	}
}

func (f front) remove(name string) {
	f.Helper()
	if err := os.Remove(f.file(name)); err != nil {
		f.Fatal(err)
	}
}

// starts creates the session of an agent that is logged in.
func (f front) starts() {
	f.Helper()
	f.write("login", "")
	if _, err := f.svc.Create(f.ctx, f.launch); err != nil {
		f.Fatalf("create: %v %v", err, harness.DetailOf(err))
	}
}

// logsIn creates the session of an agent that is not, and begins a login in which it says the
// lines of a script.
func (f front) logsIn(script ...string) {
	f.Helper()
	f.write("say", strings.Join(script, "\n"))
	_, err := f.svc.Create(f.ctx, f.launch)
	f.refused(err, harness.AuthRequired)
	f.choose(f.launch.SessionID, f.authenticate(f.launch.SessionID))
}

// playFront is the program of a front.
func playFront(dir string, flags []string) int {
	in, out := io.Pipe()
	stdout := &lineWriter{to: os.Stdout}
	go func() {
		defer out.Close()
		lines := bufio.NewReader(os.Stdin)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			relay(dir, line, stdout, out)
		}
	}()
	return fakeacp.Main(flags, os.Environ(), in, stdout, os.Stderr)
}

// relay answers a line or passes it on.
func relay(dir string, line []byte, stdout, agent io.Writer) {
	var call struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(line, &call)
	read := func(name string) (string, bool) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		return string(b), err == nil
	}
	switch call.Method {
	case "authenticate":
		if script, there := read("say"); there {
			go func() {
				follow(script, stdout)
				_, _ = agent.Write(line)
			}()
			return
		}
	case "session/set_config_option":
		if _, there := read("refuse"); there {
			fmt.Fprintf(stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}`+"\n", call.ID)
			return
		}
	case "authentication/status":
		if status, there := read("status"); there {
			if status != "never" {
				fmt.Fprintf(stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", call.ID, status)
			}
			return
		}
	}
	_, _ = agent.Write(line)
}

func follow(script string, stdout io.Writer) {
	for step := range strings.SplitSeq(script, "\n") {
		verb, text, _ := strings.Cut(step, " ")
		switch verb {
		case "out":
			fmt.Fprintln(stdout, text)
		case "err":
			fmt.Fprintln(os.Stderr, text)
		case "wait":
			tick := time.NewTicker(5 * time.Millisecond)
			for range tick.C {
				if _, err := os.Stat(text); err == nil {
					break
				}
			}
			tick.Stop()
		}
	}
}

// lineWriter keeps lines of several writers whole.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// The front is the agent that it hides, but for what its folder says.
func TestAFrontPassesOn(t *testing.T) {
	w := newWorld(t)
	w.front("s").starts()
	if st := w.say("s", "hello"); st.Result == nil || st.Result.Text != "echo:hello" {
		t.Errorf("%s", text(st))
	}
}

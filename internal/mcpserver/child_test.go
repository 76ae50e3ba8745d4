package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// The test binary is its own Bridge: with childEnv set it serves and does nothing else.
const (
	childEnv  = "AKK_MCPSERVER_TEST_CHILD"
	effectEnv = "AKK_MCPSERVER_TEST_EFFECTS" // a file that "slow" appends to
	patience  = 30 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(serveAsChild())
	}
	os.Exit(m.Run())
}

func serveAsChild() int {
	in, out, err := mcpserver.TakeStdio()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	fmt.Println("a library prints to stdout")
	println("the runtime prints")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	err = mcpserver.Serve(ctx, mcpserver.Config{
		Name: "agent-knock-knock-host-bridge", Version: "0.0.0-test",
		Registry: testTools(os.Getenv(effectEnv)), In: in, Out: out, Instance: "bridge-child",
		Log:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnReady: func() { fmt.Fprintln(os.Stderr, "READY") },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err, fault.CodeOf(err))
		return 1
	}
	return 0
}

type millis struct {
	MS int `json:"ms"`
}

const millisSchema = `{"type":"object","properties":{"ms":{"type":"integer","minimum":0}},"additionalProperties":false}`

// pause waits without looking at ctx, as a handler in a system call does.
func pause(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

// testTools is the table of the tests; effects names the file that "slow" appends to.
func testTools(effects string) *toolkit.Registry {
	r := toolkit.New()
	var mu sync.Mutex
	items := 0
	toolkit.Register(r, toolkit.Spec{Name: "slow", Description: "Works, then keeps its call id.", Effect: toolkit.Mutating,
		Input: json.RawMessage(millisSchema)},
		func(ctx context.Context, call toolkit.Call, in millis) (any, error) {
			toolkit.Committed(ctx)
			f, err := os.OpenFile(effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			pause(in.MS)
			if _, err := fmt.Fprintln(f, call.ID); err != nil {
				return nil, err
			}
			return map[string]string{"call": call.ID}, nil
		})
	toolkit.Register(r, toolkit.Spec{Name: "add", Description: "Adds one.", Effect: toolkit.Mutating,
		Input: json.RawMessage(millisSchema)},
		func(_ context.Context, call toolkit.Call, in millis) (any, error) {
			pause(in.MS)
			mu.Lock()
			defer mu.Unlock()
			items++
			return map[string]any{"items": items, "call": call.ID}, nil
		})
	toolkit.Register(r, toolkit.Spec{Name: "count", Description: "Counts.", Effect: toolkit.ReadOnly,
		Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
		func(context.Context, toolkit.Call, struct{}) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			return map[string]int{"items": items}, nil
		})
	toolkit.Register(r, toolkit.Spec{Name: "wait", Description: "Waits until it is told to stop.", Effect: toolkit.ReadOnly,
		Input: json.RawMessage(millisSchema)},
		func(ctx context.Context, call toolkit.Call, in millis) (any, error) {
			call.Progress(1, 2, "half")
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Duration(in.MS) * time.Millisecond):
				return map[string]bool{"waited": true}, nil
			}
		})
	toolkit.Register(r, toolkit.Spec{Name: "echo", Description: "Gives its text back.", Effect: toolkit.ReadOnly,
		Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"number":{"type":"integer"}},"additionalProperties":false}`)},
		func(_ context.Context, _ toolkit.Call, in struct {
			Text   string `json:"text"`
			Number int64  `json:"number"`
		}) (any, error) {
			return in, nil
		})
	return r
}

// child is a Bridge in its own process.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	early  []string // read before rest was asked
	stderr *lockedBuffer
	out    *os.File // our end of stdout
	waited chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startChild starts a Bridge; unread leaves its stdout alone.
func startChild(t *testing.T, effects string, unread bool) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(exe), lines: make(chan string, 4096), stderr: &lockedBuffer{}, waited: make(chan error, 1)}
	c.cmd.Env = append(os.Environ(), childEnv+"=1", effectEnv+"="+effects)
	c.cmd.Stderr = c.stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	hostEnd, childEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout = childEnd
	c.out = hostEnd
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	childEnd.Close()
	if unread {
		t.Cleanup(func() { hostEnd.Close() })
	} else {
		go func() {
			defer hostEnd.Close()
			defer close(c.lines)
			scan := bufio.NewScanner(hostEnd)
			scan.Buffer(nil, 16<<20)
			for scan.Scan() {
				c.lines <- scan.Text()
			}
		}()
	}
	ended := make(chan struct{})
	go func() { c.waited <- c.cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		c.cmd.Process.Kill() // it may have ended: then this does nothing
		<-ended
	})
	return c
}

// closeStdout closes our end of an unread stdout.
func (c *child) closeStdout() { c.out.Close() }

func (c *child) raw(b string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, b); err != nil {
		c.t.Fatalf("write to the Bridge: %v; stderr: %s", err, c.stderr)
	}
}

func (c *child) line(limit time.Duration) (string, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case l, ok := <-c.lines:
		return l, ok
	case <-timer.C:
		return "", false
	}
}

// untilID reads lines up to the reply to id, and requires each to be JSON-RPC.
func (c *child) untilID(id string) (before []string, reply string) {
	c.t.Helper()
	for {
		l, ok := c.line(patience)
		if !ok {
			c.t.Fatalf("no reply to %s; got %q; stderr: %s", id, before, c.stderr)
		}
		if mustFrame(c.t, l).id() == id {
			return before, l
		}
		before = append(before, l)
	}
}

func (c *child) rest() (lines []string) {
	c.t.Helper()
	lines = append(lines, c.early...)
	for {
		timer := time.NewTimer(patience)
		select {
		case l, ok := <-c.lines:
			timer.Stop()
			if !ok {
				return lines
			}
			lines = append(lines, l)
		case <-timer.C:
			c.t.Fatalf("stdout stays open; stderr: %s", c.stderr)
		}
	}
}

// exit waits for the end and returns the exit code.
func (c *child) exit() int {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-c.waited:
		c.waited <- err
		var ee *exec.ExitError
		if err != nil && !errors.As(err, &ee) {
			c.t.Fatal(err)
		}
		return c.cmd.ProcessState.ExitCode()
	case <-timer.C:
		c.t.Fatalf("the Bridge did not end; stderr: %s", c.stderr)
	}
	return -1
}

// frame is a line of the server.
type frame struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (f frame) id() string { return string(f.ID) }

func (f frame) code() int {
	if f.Error == nil {
		return 0
	}
	return f.Error.Code
}

func mustFrame(t *testing.T, line string) frame {
	t.Helper()
	var f frame
	dec := json.NewDecoder(strings.NewReader(line))
	if err := dec.Decode(&f); err != nil || f.JSONRPC != "2.0" || dec.More() {
		t.Fatalf("stdout has a line that is not JSON-RPC: %q", line)
	}
	return f
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"case","version":"0"}}}` + "\n"
	initDone   = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	handshake  = initialize + initDone
)

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n" }

func toolCall(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}` + "\n"
}

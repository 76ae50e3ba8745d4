package fakehost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bridge says how to start the product under test.
type Bridge struct {
	Bin      string // agent-knock-knock
	Profile  string
	StoreDir string
	Args     []string // further flags
	Env      []string // added to the environment of the test
	// Command replaces "host-bridge --profile ... " altogether when it is set.
	Command []string
}

// Bridge is the usual start of bin for this Host.
func (h *Host) Bridge(bin string, args ...string) Bridge {
	return Bridge{Bin: bin, Profile: h.Profile, StoreDir: h.Store, Args: args, Env: h.Env}
}

func (b Bridge) args() []string {
	if b.Command != nil {
		return b.Command
	}
	return append([]string{"host-bridge", "--profile", b.Profile, "--host", HostName,
		"--host-version", HostVersion, "--store-dir", b.StoreDir}, b.Args...)
}

// Process is a started Bridge whose pipes the test owns. It is killed at the end of the
// test if it still runs.
type Process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	stderr tail
	done   chan struct{}
	err    error
}

// Spawn starts the Bridge without speaking to it.
func Spawn(tb testing.TB, b Bridge) *Process {
	tb.Helper()
	p := &Process{tb: tb, cmd: exec.Command(b.Bin, b.args()...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), b.Env...)
	p.cmd.Stderr = &p.stderr
	// Pipes of our own: exec's would be closed by Wait while a test still reads.
	inR, inW, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.Stdin, p.Stdout = inR, outW, inW, outR
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("fakehost: %v", err)
	}
	inR.Close()
	outW.Close()
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.cmd.Process.Kill() // an error means that it has ended
		<-p.done
		inW.Close()
		outR.Close()
		if tb.Failed() {
			tb.Logf("stderr of %s:\n%s", b.Bin, p.Stderr())
		}
	})
	return p
}

// PID is the Bridge's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stderr is the last part of what the Bridge wrote to standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Done is closed when the Bridge has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends sig to the Bridge alone.
func (p *Process) Signal(sig syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.tb.Fatalf("fakehost: signal %v: %v", sig, err)
	}
}

// Kill ends the Bridge with SIGKILL and waits until it is reaped.
func (p *Process) Kill() {
	p.tb.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// WaitExit waits for the end of the Bridge and returns its exit status, -1 after a
// signal; the test fails after limit.
func (p *Process) WaitExit(limit time.Duration) int {
	p.tb.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.tb.Fatalf("fakehost: the Bridge still runs after %v; stderr:\n%s", limit, p.Stderr())
		return -1
	}
}

const connectLimit = 20 * time.Second

// Client is an MCP session with a Bridge.
type Client struct {
	*Process
	session *mcp.ClientSession

	succeeded *sync.Map // names of tools
}

// Start starts a Bridge and initialises an MCP session with it.
func Start(tb testing.TB, b Bridge) *Client {
	tb.Helper()
	c, p, err := Try(tb, b)
	if err != nil {
		tb.Fatalf("fakehost: no MCP session: %v; stderr:\n%s", err, p.Stderr())
	}
	return c
}

// Try is Start for a Bridge that may refuse to start: then the Client is nil.
func Try(tb testing.TB, b Bridge) (*Client, *Process, error) {
	tb.Helper()
	p := Spawn(tb, b)
	ctx, cancel := context.WithTimeout(tb.Context(), connectLimit)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: HostName, Version: HostVersion}, nil)
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: p.Stdout, Writer: p.Stdin, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, p, err
	}
	return &Client{succeeded: &sync.Map{}, Process: p, session: session}, p, nil
}

// Session is the MCP session, for what Call does not cover.
func (c *Client) Session() *mcp.ClientSession { return c.session }

// Result is the answer of a tool.
type Result struct {
	JSON    json.RawMessage // structuredContent; null when there is none
	Text    string          // the text content
	IsError bool
}

// Decode reads the structured content into v; the test fails when that is impossible.
func (r Result) Decode(tb testing.TB, v any) {
	tb.Helper()
	if err := json.Unmarshal(r.JSON, v); err != nil {
		tb.Fatalf("fakehost: %v in %s", err, r.JSON)
	}
}

// Code is the error code in structuredContent.error, "" when there is none.
func (r Result) Code() string {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if !r.IsError || json.Unmarshal(r.JSON, &body) != nil {
		return ""
	}
	return body.Error.Code
}

// Call calls a tool by its full name. An error is one of the protocol: the Bridge refused
// the call itself, or is gone. A tool's own failure is a Result with IsError.
func (c *Client) Call(ctx context.Context, tool string, args any) (Result, error) {
	res, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return Result{}, err
	}
	out := Result{IsError: res.IsError}
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			out.Text += t.Text
		}
	}
	out.JSON, err = json.Marshal(res.StructuredContent)
	if !out.IsError {
		c.succeeded.Store(tool, true)
	}
	return out, err
}

// Succeeded returns the tools of which a call succeeded, in order of their names.
func (c *Client) Succeeded() []string {
	var out []string
	c.succeeded.Range(func(tool, _ any) bool {
		out = append(out, tool.(string))
		return true
	})
	slices.Sort(out)
	return out
}

// MustCall is Call for a call that has to succeed.
func (c *Client) MustCall(tool string, args any) Result {
	c.tb.Helper()
	res, err := c.Call(c.tb.Context(), tool, args)
	if err != nil {
		c.tb.Fatalf("%s: %v; stderr:\n%s", tool, err, c.Stderr())
	}
	if res.IsError {
		c.tb.Fatalf("%s failed: %s %s", tool, res.Text, res.JSON)
	}
	return res
}

// Close ends the session as a Host does, by closing standard input, and waits for the
// Bridge's end. It returns the exit status.
func (c *Client) Close(limit time.Duration) int {
	c.tb.Helper()
	c.Stdin.Close() // the Bridge may have closed its end first
	return c.WaitExit(limit)
}

// maxStderr bounds what is kept of standard error.
const maxStderr = 64 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	dropped int
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - maxStderr; over > 0 {
		t.buf.Next(over)
		t.dropped += over
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped > 0 {
		return fmt.Sprintf("[%d bytes before]%s", t.dropped, t.buf.String())
	}
	return t.buf.String()
}

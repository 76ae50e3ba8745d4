package fakehost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/profile"
)

const limit = 15 * time.Second

// The test binary is also the MCP server that the client tests start.
const serveEnv = "FAKEHOST_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

func serve() int {
	fmt.Fprintln(os.Stderr, "bridge args:", os.Args[1:])
	s := mcp.NewServer(&mcp.Implementation{Name: "bridge", Version: "0"}, nil)
	type in struct {
		Code string `json:"code,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, i in) (*mcp.CallToolResult, any, error) {
		if i.Code == "" {
			return nil, map[string]any{"ok": true}, nil
		}
		return &mcp.CallToolResult{IsError: true}, map[string]any{"error": map[string]any{"code": i.Code}}, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, context.Canceled) {
		return 3
	}
	return 0
}

func TestTheProfileIsOneThatTheProductAccepts(t *testing.T) {
	h := New(t, nil)
	l, err := profile.Load(h.Profile)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Profile.CheckHost(HostName, HostVersion); err != nil {
		t.Error(err)
	}
	if err := profile.CheckExecutable(l.Profile); err != nil {
		t.Error(err)
	}
	got, err := profile.ResolveSession(l.Profile, func(name string) (string, bool) {
		for _, e := range h.Env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v, true
			}
		}
		return "", false
	})
	if err != nil || got != h.Session {
		t.Errorf("session %q, %v", got, err)
	}
}

// call runs the callback program as a Bridge would.
func call(t *testing.T, h *Host, delivery, body string) (stdout string, status int) {
	t.Helper()
	cmd := exec.Command(h.Callback, "--session", h.Session, "--delivery", delivery, "--message", "m-"+delivery, "--idem", "i")
	cmd.Env, cmd.Stdin = h.Env, strings.NewReader(body)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return out.String(), exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		t.Fatal(err)
	}
	return out.String(), 0
}

func TestTheCallbackNotesEveryCallBeforeItAnswers(t *testing.T) {
	h := New(t, nil)
	out, status := call(t, h, "d1", "héllo ${x}\n")
	var ack struct {
		Result  struct{ Status, Acceptance_id string }
		Request struct{ Delivery_id, Message_id string }
	}
	if err := json.Unmarshal([]byte(out), &ack); err != nil || status != 0 {
		t.Fatalf("%v, %d: %s", err, status, out)
	}
	if ack.Result.Status != "accepted" || ack.Result.Acceptance_id == "" || ack.Request.Delivery_id != "d1" || ack.Request.Message_id != "m-d1" {
		t.Errorf("%+v", ack)
	}
	d := h.WaitDeliveries(1, limit)[0]
	if d.Body != "héllo ${x}\n" || d.Session != h.Session || d.Idem != "i" || d.Mode != Accept || !slices.Contains(d.Env, EnvLog) {
		t.Errorf("%+v", d)
	}
}

func TestTheModeCanBeSwitchedBetweenCallsAndByAttempt(t *testing.T) {
	h := New(t, nil)
	h.SetMode("retry,accept")
	for i, want := range []string{`"retry"`, `"accepted"`, `"accepted"`} {
		if out, _ := call(t, h, "d1", ""); !strings.Contains(out, want) {
			t.Errorf("attempt %d: %s", i+1, out)
		}
	}
	if out, _ := call(t, h, "d2", ""); !strings.Contains(out, `"retry"`) {
		t.Errorf("another delivery begins anew: %s", out)
	}
	for mode, want := range map[Mode]struct {
		in     string
		status int
	}{
		Exit7: {`"accepted"`, 7}, WrongID: {`"another-delivery"`, 0}, Garbage: {"{not json", 0},
		Silent: {"", 0}, Crash: {"", 7}, "no-such-mode": {"", 2}, Deaf: {`"accepted"`, 0},
	} {
		h.SetMode(mode)
		out, status := call(t, h, "d-"+string(mode), "body")
		if !strings.Contains(out, want.in) || status != want.status || (want.in == "" && out != "") {
			t.Errorf("%s: status %d, %q", mode, status, out)
		}
	}
}

// S10: a child in its own session keeps stdout open after the program has ended.
func TestAnOrphanIsFoundByTheCensusUntilItIsGone(t *testing.T) {
	h := New(t, nil)
	h.SetMode(Orphan)
	call(t, h, "d1", "")
	left := survivors(t, h.CaseID)
	if len(left) != 1 || !strings.Contains(left[0].Args, "sleep") {
		t.Fatalf("survivors: %v", left)
	}
	if err := syscall.Kill(left[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	WaitNoSurvivors(t, h.CaseID, limit)
	WaitNoSurvivors(t, "no such case", 0)
}

func TestTheClientCallsToolsAndEndsTheBridgeThroughStdin(t *testing.T) {
	h := New(t, nil)
	b := h.Bridge(os.Args[0], "--toolsets", "terminal")
	b.Env = append(b.Env, serveEnv+"=1")
	c := Start(t, b)
	var ok struct{ OK bool }
	c.MustCall("echo", map[string]any{}).Decode(t, &ok)
	if !ok.OK {
		t.Error("no structured content")
	}
	res, err := c.Call(t.Context(), "echo", map[string]any{"code": "conflict"})
	if err != nil || !res.IsError || res.Code() != "conflict" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := c.Call(t.Context(), "no_such_tool", nil); err == nil {
		t.Error("an unknown tool is no protocol error")
	}
	if !strings.Contains(c.Stderr(), "host-bridge --profile "+h.Profile) {
		t.Errorf("stderr: %s", c.Stderr())
	}
	if len(survivors(t, h.CaseID)) != 1 {
		t.Error("the Bridge does not carry the case id")
	}
	if status := c.Close(limit); status != 0 {
		t.Errorf("exit status %d", status)
	}
	WaitNoSurvivors(t, h.CaseID, limit)
}

func TestAKilledBridgeIsReaped(t *testing.T) {
	h := New(t, nil)
	b := h.Bridge(os.Args[0])
	b.Env = append(b.Env, serveEnv+"=1")
	p := Spawn(t, b)
	p.Kill()
	if p.WaitExit(limit) != -1 {
		t.Error("not ended by a signal")
	}
}

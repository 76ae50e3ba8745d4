package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// Spec part 2.8: an agent whose login needs a terminal. A person at the Host reads what the
// program says and enters the code; without one the model is given the questions.
func TestALoginInATerminalThroughTheHostAndThroughTheModel(t *testing.T) {
	const code = "open-sesame-4711"
	h := newHeadless(t)
	var asked atomic.Int32
	p := h.start("2025-11-25", func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if asked.Add(1) == 1 {
			return choose(req, "Terminal login")
		}
		if m := req.Params.Message; !strings.Contains(m, "paste the code:") || !strings.Contains(m, "https://login.example.test/device") {
			return nil, fmt.Errorf("asked %q", m)
		}
		return &mcp.ElicitResult{Action: "accept", Content: obj{"input": code}}, nil
	})
	login := func(p *proxy, harness, style string) string {
		args := h.agentArgs("--auth-required", "--auth-terminal", "--login-state", filepath.Join(h.dir, "login-"+harness), "--login-style", style)
		args["harness"] = harness
		return p.refused("create_session", args, "authentication_required")["detail"].(obj)["session_id"].(string)
	}
	s := login(p, "one", "")
	if out := p.must("authenticate", obj{"session_id": s}); out["state"] != "ready" || strings.Contains(fmt.Sprint(out), code) {
		t.Errorf("after %d questions: %v", asked.Load(), out)
	}
	if st := p.must("send_message", obj{"session_id": s, "text": "hello"}); text(st) != "echo:hello" {
		t.Errorf("%v", st)
	}

	p = h.start("", nil)
	s = login(p, "two", "hang")
	out := p.must("authenticate", obj{"session_id": s})
	answer := obj{"session_id": s, "request_id": out["questions"].([]any)[0].(obj)["request_id"], "option_id": "fake-terminal"}
	p.must("answer_question", answer)
	out = p.must("authenticate", obj{"session_id": s})
	q := question1(t, out)
	if q["kind"] != "auth_terminal" || !strings.Contains(fmt.Sprint(q["message"]), "waiting [self:") || !strings.Contains(fmt.Sprint(out["output"]), "[spawned:") {
		t.Fatalf("%v", out)
	}
	p.must("answer_question", obj{"session_id": s, "request_id": q["request_id"], "answer": "cancel"})
	if out := p.must("auth_status", obj{"session_id": s}); out["state"] != "cancelled" || out["authenticated"] != false {
		t.Errorf("%v", out)
	}
	until(t, "nothing of the login program is left", func() bool {
		left, err := fakehost.Survivors(h.caseID)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range left {
			if strings.Contains(l.Args, "--login ") || strings.Contains(l.Args, "trap ") {
				return false
			}
		}
		return true
	})
}

// question1 is the only question of a login.
func question1(t *testing.T, out obj) obj {
	t.Helper()
	list, _ := out["questions"].([]any)
	if out["state"] != "waiting_input" || len(list) != 1 {
		t.Fatalf("%v", out)
	}
	return list[0].(obj)
}

// Case 55: an authenticate call that is taken back ends only its waiting; the login goes on
// until its time is over, and then the session is closed and says why.
func TestATakenBackAuthenticateLeavesTheLoginWhichTimesOut(t *testing.T) {
	h := newHeadless(t)
	config, err := os.OpenFile(filepath.Join(h.dir, "h.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.WriteString("authentication:\n  timeout_seconds: 5\n")
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var chosen atomic.Bool
	p := h.start("2025-11-25", func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		chosen.Store(true)
		return choose(req, "Log in")
	})
	s := p.refused("create_session", h.agentArgs("--auth-required", "--auth-hang"), "authentication_required")["detail"].(obj)["session_id"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := p.try(ctx, "authenticate", obj{"session_id": s})
		done <- err
	}()
	other := h.start("", nil)
	until(t, "the agent's login runs", func() bool {
		st := other.must("auth_status", obj{"session_id": s})
		return chosen.Load() && st["state"] != "method_selection" && st["state"] != "none"
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("a call that was taken back has a result")
	}
	var st obj
	until(t, "the login timed out", func() bool {
		st = other.must("auth_status", obj{"session_id": s})
		if st["state"] == "cancelled" || st["state"] == "failed" {
			t.Fatalf("the end of the call ended the login: %v", st)
		}
		return st["state"] == "timed_out"
	})
	if e, _ := st["error"].(obj); e["code"] != "authentication_timed_out" {
		t.Errorf("%v", st)
	}
	if st := other.must("message_status", obj{"session_id": s}); st["state"] != "closed" {
		t.Errorf("%v", st)
	}
	other.refused("send_message", obj{"session_id": s, "text": "x"}, "session_closed")
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

func journal(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// Cases 22, 23: a send that is taken back cancels, a wait that is taken back only lets go.
func TestATakenBackSendCancelsAndATakenBackWaitLetsGo(t *testing.T) {
	h := newHeadless(t)
	p := h.start("", nil)
	seen := filepath.Join(h.dir, "journal")
	s := p.create("--journal", seen)

	back := func(tool string, args obj, id func() string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, _, err := p.try(ctx, tool, args)
			done <- err
		}()
		message := id()
		cancel()
		if err := <-done; err == nil {
			t.Errorf("%s that was taken back has a result", tool)
		}
		return message
	}
	id := back("send_message", obj{"session_id": s, "text": "HOLD"}, func() string { return p.running(s) })
	if st := p.must("wait", obj{"session_id": s, "message_id": id}); st["state"] != "cancelled" {
		t.Errorf("%v", st)
	}
	if !strings.Contains(journal(t, seen), "session/cancel") {
		t.Error("the agent was not told")
	}

	other := filepath.Join(h.dir, "journal2")
	s = p.create("--journal", other)
	go func() { _, _, _ = p.try(t.Context(), "send_message", obj{"session_id": s, "text": "PERM"}) }() // ends with its question
	p.running2(s)
	var st obj
	until(t, "a question", func() bool {
		st = p.must("message_status", obj{"session_id": s, "message_id": p.running2(s)})
		q, _ := st["questions"].([]any)
		return len(q) == 1
	})
	id = st["message_id"].(string)
	p.refused("send_message", obj{"session_id": s, "text": "another"}, "busy") // case 17
	request := st["questions"].([]any)[0].(obj)["request_id"]

	hold := p.create("--journal", other+"b")
	go func() {
		_, _, _ = p.try(context.WithoutCancel(t.Context()), "send_message", obj{"session_id": hold, "text": "HOLD"})
	}()
	held := p.running(hold)
	back("wait", obj{"session_id": hold, "message_id": held}, func() string {
		return p.must("message_status", obj{"session_id": hold, "message_id": held})["message_id"].(string)
	})
	if st := p.must("message_status", obj{"session_id": hold, "message_id": held}); st["state"] != "running" {
		t.Errorf("%v", st)
	}
	if strings.Contains(journal(t, other+"b"), "session/cancel") {
		t.Error("the end of a wait reached the agent")
	}
	p.must("answer_question", obj{"session_id": s, "message_id": id, "request_id": request, "option_id": "allow_once"})
	if st := p.must("wait", obj{"session_id": s, "message_id": id}); text(st) != "[allowed:allow_once]" {
		t.Errorf("%v", st)
	}
	if st := p.must("cancel_message", obj{"session_id": hold}); st["state"] != "cancelled" || st["terminal"] != true {
		t.Errorf("%v", st)
	}
	if st := p.must("cancel_message", obj{"session_id": hold}); st["status"] != "idle" {
		t.Errorf("%v", st)
	}
}

// running2 is running for a message that may have a question.
func (p *proxy) running2(session string) (id string) {
	p.t.Helper()
	until(p.t, "a message that is not done", func() bool {
		id, _ = p.must("message_status", obj{"session_id": session})["active_message_id"].(string)
		return id != ""
	})
	return id
}

// Cases 24, 11: the end of a proxy, by a closed stdin or SIGKILL, ends nothing else.
func TestTheEndOfAProxyLeavesTheMessageAndTheServer(t *testing.T) {
	h := newHeadless(t)
	p := h.start("", nil)
	s, pid := p.create(), p.pid()
	for _, end := range []func(p *proxy){
		func(p *proxy) {
			if err := p.Stdin.Close(); err != nil {
				t.Error(err)
			}
			p.WaitExit(settle)
		},
		func(p *proxy) { p.Kill() },
	} {
		p = h.start("", nil)
		if got := p.pid(); got != pid {
			t.Fatalf("the server is %d, was %d", got, pid)
		}
		go func() {
			_, _, _ = p.try(context.WithoutCancel(t.Context()), "send_message", obj{"session_id": s, "text": "HOLD"})
		}()
		id := p.running(s)
		end(p)
		next := h.start("", nil)
		if got := next.pid(); got != pid {
			t.Fatalf("the server is %d, was %d", got, pid)
		}
		if st := next.must("message_status", obj{"session_id": s, "message_id": id}); st["state"] != "running" {
			t.Errorf("%v", st)
		}
		next.must("cancel_message", obj{"session_id": s, "message_id": id})
	}

	// One whose person is being asked: nobody answered, so the next Host answers.
	asked := make(chan struct{})
	p = h.start("2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	go func() {
		_, _, _ = p.try(context.WithoutCancel(t.Context()), "send_message", obj{"session_id": s, "text": "PERM"})
	}()
	select {
	case <-asked:
	case <-time.After(settle):
		t.Fatal("nobody was asked")
	}
	id := p.running2(s)
	if err := p.Stdin.Close(); err != nil {
		t.Error(err)
	}
	p.WaitExit(settle)
	next := h.start("", nil)
	st := next.must("wait", obj{"session_id": s, "message_id": id})
	questions, _ := st["questions"].([]any)
	if st["state"] != "waiting_input" || len(questions) != 1 {
		t.Fatalf("%v", st)
	}
	next.must("answer_question", obj{"session_id": s, "message_id": id, "request_id": questions[0].(obj)["request_id"], "option_id": "allow_once"})
	if st := next.must("wait", obj{"session_id": s, "message_id": id}); text(st) != "[allowed:allow_once]" || st["state"] != "completed" {
		t.Errorf("%v", st)
	}
}

// Cases 49, 50, 51: a login through the Host, and one that the model answers.
func TestALoginThroughTheHostAndThroughTheModel(t *testing.T) {
	h := newHeadless(t)
	ready := filepath.Join(h.dir, "ready")
	var asked atomic.Int32
	p := h.start("2025-11-25", func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if asked.Add(1) == 1 {
			return choose(req, "Log in")
		}
		if !strings.Contains(req.Params.Message, "https://login.example.test/oauth?state=fake") {
			return nil, fmt.Errorf("no address in %q", req.Params.Message)
		}
		if err := os.WriteFile(ready, nil, 0o600); err != nil {
			return nil, err
		}
		return &mcp.ElicitResult{Action: "accept", Content: obj{"opened": true}}, nil
	})
	failed := p.refused("create_session", h.agentArgs("--auth-required", "--auth-url-stdout", "--ready-file", ready), "authentication_required")
	detail := failed["detail"].(obj)
	s, _ := detail["session_id"].(string)
	if s == "" || detail["next_action"] != "authenticate" {
		t.Fatalf("%v", failed)
	}
	if out := p.must("authenticate", obj{"session_id": s}); out["state"] != "ready" || asked.Load() != 2 {
		t.Errorf("after %d questions: %v", asked.Load(), out)
	}
	if st := p.must("send_message", obj{"session_id": s, "text": "hello"}); text(st) != "echo:hello" {
		t.Errorf("%v", st)
	}

	p = h.start("", nil)
	asksModel := func(harness string) obj {
		args := h.agentArgs("--auth-required")
		args["harness"] = harness
		s = p.refused("create_session", args, "authentication_required")["detail"].(obj)["session_id"].(string)
		out := p.must("authenticate", obj{"session_id": s})
		if out["state"] != "waiting_input" {
			t.Fatalf("%v", out)
		}
		q := out["questions"].([]any)[0].(obj)
		return obj{"session_id": s, "request_id": q["request_id"], "option_id": q["options"].([]any)[0].(obj)["option_id"]}
	}
	// Case 54: the same account again at once. The model is told, and not asked to ask again.
	if e := p.refused("answer_question", asksModel("scripted"), "authentication_rate_limited"); e["detail"].(obj)["retry_after_seconds"] == nil {
		t.Errorf("%v", e)
	}
	p.must("answer_question", asksModel("another"))
	if out := p.must("authenticate", obj{"session_id": s}); out["state"] != "ready" && out["state"] != "none" {
		t.Errorf("%v", out)
	}
	if st := p.must("auth_status", obj{"session_id": s}); st["authenticated"] == false {
		t.Errorf("%v", st)
	}
	if st := p.must("send_message", obj{"session_id": s, "text": "hello"}); text(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
}

// Cases 57–60: a template is registered, found, and becomes a session by explicit arguments.
func TestATemplateIsInformationThatTheModelTurnsIntoASession(t *testing.T) {
	h := newHeadless(t)
	p := h.start("", nil)
	marker := filepath.Join(h.dir, "executed")
	template := obj{"name": "review-bot", "harness": "scripted", "description": "Codes in Go", "model": "default", "command": h.agent, "args": []string{"a", "b"},
		"env": map[string]string{"HTTP_PROXY": "http://stale", "FOO": "bar"}, "network_mode": "proxy", "proxy_port": 8118, "runtime": "docker", "docker_image": "image:1",
		"before_start": "touch " + marker, "cwd": "/nowhere"}
	made := p.must("create_template", obj{"template": template})["template"].(obj)
	const address = "http://host.docker.internal:8118"
	env := made["env"].(obj)
	if env["http_proxy"] != address || env["https_proxy"] != address || !strings.HasPrefix(fmt.Sprint(env["no_proxy"]), "localhost,127.0.0.1,::1,10.0.0.0/8") || env["HTTP_PROXY"] != nil || env["FOO"] != "bar" {
		t.Errorf("%v", env)
	}
	p.refused("create_template", obj{"template": template}, "template_exists")
	for key, value := range map[string]any{"host_network": true, "network_mode": "none"} {
		bad := obj{}
		for k, v := range template {
			bad[k] = v
		}
		bad["name"], bad[key] = "bad-"+strings.ReplaceAll(key, "_", "-"), value
		ctx, stop := context.WithTimeout(t.Context(), slowest)
		defer stop()
		if out, code, err := p.try(ctx, "create_template", obj{"template": bad}); err != nil || code != "invalid_template" && code != "invalid_param" {
			t.Errorf("%s: %v %s %v", key, err, code, out)
		}
	}
	found := func(args obj) []any {
		out := p.must("search_template", args)
		list, _ := out["templates"].([]any)
		return list
	}
	for _, args := range []obj{{}, {"name": "review-bot"}, {"query": "CODES"}, {"query": "REVIEW"}, {"harness": "scripted", "name": "review-bot"}} {
		if list := found(args); len(list) != 1 || list[0].(obj)["before_start"] != "touch "+marker {
			t.Errorf("%v: %v", args, list)
		}
	}
	if list := found(obj{"name": "review-bot", "harness": "codex"}); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if pong := p.must("ping", obj{}); pong["sessions"] != 0.0 {
		t.Errorf("%v", pong)
	}
	if _, err := os.Stat(marker); !os.IsNotExist(err) {
		t.Errorf("an instruction was executed: %v", err)
	}
	one := found(obj{"name": "review-bot"})[0].(obj)
	one["env"].(obj)[fakehost.EnvCase] = h.caseID
	s := p.must("create_session", obj{"model_id": one["model"], "harness": one["harness"], "command": one["command"], "args": one["args"], "env": one["env"], "cwd": h.work})["session_id"].(string)
	for prompt, want := range map[string]string{"CWD": h.work, "ARGS": "a|b", "ENV http_proxy": address, "ENV FOO": "bar"} {
		if st := p.must("send_message", obj{"session_id": s, "text": prompt}); !strings.Contains(text(st), want) {
			t.Errorf("%s: %v", prompt, text(st))
		}
	}
	// Cases 2, 3, 4.
	p.refused("create_session", obj{"model_id": "default"}, "invalid_param")
	p.refused("create_session", obj{"model_id": " ", "cwd": h.work}, "invalid_param")
	if e := p.refused("create_session", obj{"model_id": "default", "cwd": h.work, "template": "review-bot"}, "invalid_param"); !strings.Contains(fmt.Sprint(e["message"]), "template") {
		t.Errorf("%v", e)
	}
	p.refused("create_session", obj{"model_id": "default", "cwd": h.work, "ssh_command": "x"}, "launch_internal")
}

type serverRecord struct {
	ServerPID     int    `json:"server_pid"`
	SupervisorPID int    `json:"supervisor_pid"`
	LogPath       string `json:"log_path"`
}

func (h *headless) registry() (all map[string]serverRecord) {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.clients, "servers.json"))
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// Cases 10, 11, 14: two proxies at one moment start one server, and its supervisor's death
// is its own.
func TestTwoProxiesStartOneServerWhichEndsWithItsSupervisor(t *testing.T) {
	h := newHeadless(t)
	a, b := h.start("", nil), h.start("2025-06-18", nil)
	var pids [2]int
	var both sync.WaitGroup
	for i, p := range []*proxy{a, b} {
		both.Go(func() {
			out, code, err := p.try(t.Context(), "ping", obj{})
			if err != nil || code != "" {
				t.Errorf("%v %s %v", err, code, out)
				return
			}
			pids[i] = int(out["pid"].(float64))
		})
	}
	both.Wait()
	all := h.registry()
	r := all[h.url]
	if t.Failed() || pids[0] != pids[1] || len(all) != 1 || r.ServerPID != pids[0] {
		t.Fatalf("%v %v", pids, all)
	}
	for _, p := range []*proxy{a, b} {
		if st := p.must("send_message", obj{"session_id": p.create(), "text": "hello"}); text(st) != "echo:hello" {
			t.Errorf("%v", st)
		}
	}
	for path, mode := range map[string]os.FileMode{h.clients: os.ModeDir | 0o700, r.LogPath: 0o600, filepath.Join(h.clients, "servers.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if err := syscall.Kill(r.SupervisorPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	fakehost.WaitNoSurvivors(t, h.caseID, settle, "harness mcp")
	if again := a.pid(); again == pids[0] { // the next call finds nobody and starts another
		t.Errorf("the server is still %d", again)
	}
}

// program writes a shell script that answers --version --json like a server and then runs body.
func (h *headless) program(body string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, "server-entry")
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{\"harness_protocol\":4}'; exit 0; fi\n" + body + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// Cases 12, 14: a server that dies at its start is told with the masked end of its log.
func TestAServerThatDiesAtItsStartIsToldWithoutItsSecrets(t *testing.T) {
	h := newHeadless(t)
	h.env = []string{"HARNESS_ACP_BRIDGE_SERVER_ENTRY=" + h.program(
		`printf 'API_KEY=sk-abc'; sleep 0.05; printf '123456789\n'; echo 'max_tokens: 4096 你好'; printf 'API_KEY=sk-abc123456789\n' >&2; echo 'the end' >&2; exit 1`)}
	p := h.start("", nil)
	e := p.refused("ping", obj{}, "startup_failed")
	detail, _ := e["detail"].(obj)
	tail := fmt.Sprint(detail["log_tail"])
	if strings.Contains(tail, "abc123456789") || !strings.Contains(tail, "the end") || !strings.Contains(tail, "max_tokens: 4096 你好") || len(tail) > 8<<10 {
		t.Errorf("%q", tail)
	}
	path := fmt.Sprint(detail["log_path"])
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	if log := journal(t, path); strings.Contains(log, "abc1") || strings.Contains(log, "23456789") || !strings.Contains(log, "你好") || strings.Count(log, "started the server") != 1 {
		t.Errorf("%s", log)
	}
	h.env[0] = "HARNESS_ACP_BRIDGE_SERVER_ENTRY=" + filepath.Join(h.dir, "no-such-program")
	h.start("", nil).refused("ping", obj{}, "startup_failed") // and nothing else is tried
	fakehost.WaitNoSurvivors(t, h.caseID, settle, "harness mcp")
}

// Cases 6–9: what answers at the address and is no server of protocol 4 is left alone, and
// nothing is started where it may not be.
func TestAForeignListenerIsLeftAlone(t *testing.T) {
	h := newHeadless(t)
	for name, reply := range map[string]string{
		"older":    `{"ok":true,"data":{"protocol_version":3,"pid":1}}`,
		"page":     `<html>hello</html>`,
		"envelope": `{"ok":false,"error":{"code":"internal","message":"no"}}`,
		"empty":    ``,
	} {
		t.Run(name, func(t *testing.T) {
			var others atomic.Int32
			l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/ping" || r.Method != http.MethodPost {
					others.Add(1)
				}
				_, _ = io.WriteString(w, reply)
			}))
			defer l.Close()
			h := h.in(t)
			h.url = l.URL
			p := h.start("", nil)
			p.refused("ping", obj{}, "incompatible_server")
			p.refused("create_session", h.agentArgs(), "incompatible_server")
			if n := others.Load(); n != 0 {
				t.Errorf("%d other requests", n)
			}
			res, err := http.Get(l.URL + "/alive")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
		})
	}
	h.url = "http://" + freeAddress(t)
	h.env = []string{"HARNESS_ACP_BRIDGE_AUTOSTART=false"}
	p := h.start("", nil)
	p.refused("ping", obj{}, "autostart_disabled")
	p.refused("create_session", obj{"model_id": "default"}, "invalid_param") // case 2: nobody was asked
	fakehost.WaitNoSurvivors(t, h.caseID, settle, "harness mcp")
	if found, err := filepath.Glob(filepath.Join(h.clients, "server*")); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}

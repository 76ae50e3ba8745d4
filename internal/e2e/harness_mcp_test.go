package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
)

// obj is arguments, or a result.
type obj = map[string]any

// headless is one user's headless agents: an address, a client directory and a state
// directory of their own. Everything in it ends with the test.
type headless struct {
	t                  testing.TB
	bin, agent         string
	dir, clients, work string
	url, caseID        string
	env                []string // further, of each proxy
}

func newHeadless(t testing.TB) *headless {
	t.Helper()
	dir := t.TempDir()
	h := &headless{t: t, bin: install(t), agent: gobuild.Program(t, module+"internal/testkit/fakeacp/cmd/fakeacp"), dir: dir,
		clients: filepath.Join(dir, "clients"), work: filepath.Join(dir, "work"), url: "http://" + freeAddress(t), caseID: "headless-" + filepath.Base(dir) + fmt.Sprint(os.Getpid()) + t.Name()}
	for path, text := range map[string]string{
		filepath.Join(h.work, "README"): "",
		filepath.Join(dir, "h.yaml"):    "state_dir: " + filepath.Join(dir, "state") + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(h.end) // after the proxies, which are started later
	return h
}

// in is the same for a subtest.
func (h *headless) in(t testing.TB) *headless {
	other := *h
	other.t = t
	return &other
}

// freeAddress is one at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// end ends the server through its supervisor and makes sure that nothing is left.
func (h *headless) end() {
	if h.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(h.clients, "server-*.log"))
		for _, path := range logs {
			b, _ := os.ReadFile(path)
			h.t.Logf("%s:\n%s", path, b)
		}
	}
	for deadline := time.Now().Add(settle); ; <-time.After(20 * time.Millisecond) {
		left, err := fakehost.Survivors(h.caseID)
		if err != nil || len(left) == 0 {
			return
		}
		late := time.Now().After(deadline)
		for _, p := range left { // the mark in their environment says that they are this test's
			if late {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			} else if strings.Contains(p.Args, "harness supervise") {
				_ = syscall.Kill(p.PID, syscall.SIGTERM)
			}
		}
		if late {
			h.t.Errorf("still alive after %v: %v", settle, left)
			return
		}
	}
}

// proxy is harness mcp with a Host that speaks to it.
type proxy struct {
	*fakehost.Process
	t        testing.TB
	h        *headless
	session  *mcp.ClientSession
	progress chan string
}

type person = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// settings are the environment of each proxy.
func (h *headless) settings() []string {
	return append([]string{"HOME=" + h.dir, "HARNESS_ACP_BRIDGE_URL=" + h.url, "HARNESS_ACP_BRIDGE_CLIENT_DIR=" + h.clients,
		"HARNESS_ACP_BRIDGE_CONFIG=" + filepath.Join(h.dir, "h.yaml"), fakehost.EnvCase + "=" + h.caseID}, h.env...)
}

func (h *headless) spawn() *fakehost.Process {
	h.t.Helper()
	return fakehost.Spawn(h.t, fakehost.Bridge{Bin: h.bin, Command: []string{"harness", "mcp"}, Env: h.settings()})
}

// start starts a proxy. version is of MCP, "" the newest; without asked the Host cannot ask.
func (h *headless) start(version string, asked person) *proxy {
	h.t.Helper()
	p := &proxy{Process: h.spawn(), t: h.t, h: h, progress: make(chan string, 64)}
	ctx, cancel := context.WithTimeout(h.t.Context(), settle)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "a-host", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: asked,
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.progress <- r.Params.Message
		},
	})
	var err error
	p.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: p.Stdout, Writer: p.Stdin, MaxLineLength: -1}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatalf("no session: %v\n%s", err, p.Stderr())
	}
	return p
}

// try calls a tool. code is of its failure, whose body out then is.
func (p *proxy) try(ctx context.Context, tool string, args obj) (out obj, code string, err error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("token-" + tool)
	res, err := p.session.CallTool(ctx, params)
	if err != nil {
		return nil, "", err
	}
	if len(res.Content) != 1 {
		return nil, "", fmt.Errorf("%d parts of content", len(res.Content))
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, "", fmt.Errorf("%w in %s", err, text)
	}
	if res.IsError {
		if e, ok := out["error"].(obj); ok && out["ok"] == false {
			code, _ = e["code"].(string)
			return e, code, nil
		}
		return out, "failed message", nil
	}
	return out, "", nil
}

func (p *proxy) must(tool string, args obj) obj {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), slowest)
	defer stop()
	out, code, err := p.try(ctx, tool, args)
	if err != nil || code != "" {
		p.t.Fatalf("%s: %v %s %v\n%s", tool, err, code, out, p.Stderr())
	}
	return out
}

// refused is must for a call that has to fail.
func (p *proxy) refused(tool string, args obj, want string) obj {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), slowest)
	defer stop()
	out, code, err := p.try(ctx, tool, args)
	if err != nil || code != want {
		p.t.Fatalf("%s: %v, code %q, want %q: %v", tool, err, code, want, out)
	}
	return out
}

// agentArgs are the arguments of create_session for a scripted agent.
func (h *headless) agentArgs(flags ...string) obj {
	args := []string{}
	return obj{"model_id": "default", "harness": "scripted", "cwd": h.work, "command": h.agent, "args": append(args, flags...),
		"env": map[string]string{fakehost.EnvCase: h.caseID}}
}

func (p *proxy) create(flags ...string) string {
	p.t.Helper()
	return p.must("create_session", p.h.agentArgs(flags...))["session_id"].(string)
}

func (p *proxy) pid() int {
	p.t.Helper()
	return int(p.must("ping", obj{})["pid"].(float64))
}

// running waits until the session works on a message, and returns its id.
func (p *proxy) running(session string) string {
	p.t.Helper()
	for deadline := time.Now().Add(settle); ; <-time.After(10 * time.Millisecond) {
		if id, ok := p.must("message_status", obj{"session_id": session})["active_message_id"].(string); ok && id != "" {
			if p.must("message_status", obj{"session_id": session, "message_id": id})["state"] == "running" {
				return id
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatal("no message runs")
		}
	}
}

func text(status obj) string {
	result, _ := status["result"].(obj)
	s, _ := result["text"].(string)
	return s
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(settle); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", settle, what)
		}
	}
}

// catalogue checks the tools and what is said of their effects.
func (p *proxy) catalogue() {
	p.t.Helper()
	list, err := p.session.ListTools(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		reads := slices.Contains([]string{"ping", "search_template", "auth_status", "message_status", "wait"}, tool.Name)
		if a == nil || a.ReadOnlyHint != reads || tool.InputSchema == nil || tool.OutputSchema == nil {
			p.t.Errorf("%s: %+v", tool.Name, a)
		}
		if template := strings.HasSuffix(tool.Name, "_template"); template && (a.OpenWorldHint == nil || *a.OpenWorldHint || !reads && (a.DestructiveHint == nil || *a.DestructiveHint)) {
			p.t.Errorf("%s: %+v", tool.Name, a)
		}
	}
	if got := strings.Join(names, " "); got != "ping search_template create_template create_session close_session authenticate auth_status set_session_options send_message cancel_message message_status answer_question wait" {
		p.t.Errorf("%s", got)
	}
}

// Cases 1, 5, 16: a Host, the proxy, a server that it starts, and an agent.
func TestAHostGetsAnAnswerFromAHeadlessAgentThroughAServerThatStartsItself(t *testing.T) {
	h := newHeadless(t)
	p := h.start("", nil)
	p.catalogue()
	pong := p.must("ping", obj{})
	if pong["protocol_version"] != 4.0 || pong["sessions"] != 0.0 || pong["status"] != "ok" {
		t.Errorf("%v", pong)
	}
	s := p.create("one", "two")
	for prompt, want := range map[string]string{"hello": "echo:hello", "ARGS": "one|two", "CWD": h.work} {
		st := p.must("send_message", obj{"session_id": s, "text": prompt})
		if text(st) != want || st["state"] != "completed" || st["terminal"] != true || st["stop_reason"] != "end_turn" {
			t.Errorf("%s: %v", prompt, st)
		}
	}
	if got := p.refused("send_message", obj{"session_id": s, "text": "ERR -32603"}, "failed message"); got["state"] != "failed" || got["terminal"] != true {
		t.Errorf("%v", got)
	}
	select {
	case m := <-p.progress:
		t.Errorf("a progress notification: %q", m)
	default:
	}
	if got := p.must("close_session", obj{"session_id": s}); got["status"] != "closed" {
		t.Errorf("%v", got)
	}
	if got := p.must("close_session", obj{"session_id": s}); got["already_closed"] != true {
		t.Errorf("%v", got)
	}
}

// Case 37: a Host that cannot ask leaves the question to the model.
func TestAQuestionIsLeftToTheModelWhenTheHostCannotAsk(t *testing.T) {
	h := newHeadless(t)
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		p := h.start(version, nil)
		s := p.create()
		st := p.must("send_message", obj{"session_id": s, "text": "PERM"})
		questions, _ := st["questions"].([]any)
		if st["state"] != "waiting_input" || st["terminal"] != false || len(questions) != 1 {
			t.Fatalf("%s: %v", version, st)
		}
		q := questions[0].(obj)
		if next := st["next_action"].(obj); next["tool"] != "answer_question" || next["then"] != "wait" {
			t.Errorf("%v", next)
		}
		answer := obj{"session_id": s, "message_id": st["message_id"], "request_id": q["request_id"], "option_id": "no-such"}
		p.refused("answer_question", answer, "invalid_option")
		answer["option_id"] = "deny_once"
		p.must("answer_question", answer)
		if st := p.must("wait", obj{"session_id": s, "message_id": st["message_id"]}); text(st) != "[denied:deny_once]" || st["state"] != "completed" {
			t.Errorf("%s: %v", version, st)
		}
		p.refused("answer_question", answer, "no_pending_request")
	}
}

// choose answers a form with the choice whose label is the word, or else has it.
func choose(req *mcp.ElicitRequest, word string) (*mcp.ElicitResult, error) {
	b, err := json.Marshal(req.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	var form struct {
		Properties map[string]struct {
			Enum  []string
			OneOf []struct{ Const, Title string }
		}
	}
	if err := json.Unmarshal(b, &form); err != nil {
		return nil, err
	}
	for _, same := range []func(label, word string) bool{func(l, w string) bool { return l == w }, strings.Contains} {
		for field, p := range form.Properties {
			for _, label := range p.Enum {
				if same(label, word) {
					return &mcp.ElicitResult{Action: "accept", Content: obj{field: label}}, nil
				}
			}
			for _, c := range p.OneOf {
				if same(c.Title, word) {
					return &mcp.ElicitResult{Action: "accept", Content: obj{field: c.Const}}, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("nothing like %q in %s", word, b)
}

// personal is longer than a Host needs that answers by itself.
const personal = 700 * time.Millisecond

// Cases 38, 39: in every era of MCP the person's choice reaches the agent as the exact id,
// and a no as a no.
func TestAPersonAnswersThroughTheHost(t *testing.T) {
	h := newHeadless(t)
	says := func(action string) person {
		return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-time.After(personal) // a person needs time
			return &mcp.ElicitResult{Action: action}, nil
		}
	}
	picks := func(word string) person {
		return func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return choose(req, word) }
	}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, c := range []struct {
			name, prompt string
			asked        person
			want         string
		}{
			{"accept", "PERM", picks("Allow once"), "[allowed:allow_once]"},
			{"refusing option", "PERM", picks("Deny"), "[denied:deny_once]"},
			{"decline", "PERM", says("decline"), "[denied:deny_once]"},
			{"three", "PERM3", picks("Allow once"), "[allowed:allow_once][allowed:allow_once][allowed:allow_once]"},
			{"form", "ELICIT-FORM", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: obj{"value": "blue"}}, nil
			}, `[accept:{"value":"blue"}]`},
		} {
			t.Run(version+" "+c.name, func(t *testing.T) {
				p := h.in(t).start(version, c.asked)
				s := p.create()
				if st := p.must("send_message", obj{"session_id": s, "text": c.prompt}); text(st) != c.want || st["state"] != "completed" {
					t.Errorf("%v", st)
				}
				p.must("close_session", obj{"session_id": s})
			})
		}
		t.Run(version+" cancel", func(t *testing.T) {
			p := h.in(t).start(version, says("cancel"))
			st := p.must("send_message", obj{"session_id": p.create(), "text": "PERM"})
			if st["terminal"] != true || strings.Contains(text(st), "allowed") || strings.Contains(text(st), "denied") {
				t.Errorf("%v", st)
			}
		})
	}
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/harness/quirks"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realacp"
)

// behind is a real agent behind the proxy and a server that starts itself.
type behind struct {
	*headless
	model *fakemodel.Server
	kit   *realacp.Agent
	quirk quirks.Agent
}

func newBehind(t *testing.T, harness string) *behind {
	t.Helper()
	model := fakemodel.Start(t)
	kit := realacp.Prepare(t, harness, model.URL())
	quirk, ok := quirks.Find(harness)
	if !ok {
		t.Fatal("no such row")
	}
	return &behind{newHeadless(t), model, kit, quirk}
}

// launch are the arguments of create_session: the product's own table starts the agent.
func (b *behind) launch() obj {
	env := maps.Clone(b.kit.Env)
	env[fakehost.EnvCase] = b.caseID
	mode := "auto"
	if b.kit.AskMode == "workspace-write" {
		mode = "edit"
	}
	return obj{"harness": b.kit.Harness, "model_id": b.kit.Model, "cwd": b.kit.Cwd, "env": env, "permission_mode": mode}
}

// working waits until the model answers the prompt, so that its agent is in the turn.
func (b *behind) working(prompt string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	if !b.model.WaitFor(ctx, func(all []fakemodel.Request) bool {
		return slices.ContainsFunc(all, func(r fakemodel.Request) bool { return r.Kind == "main" && r.User == prompt && r.Outcome == "" })
	}) {
		b.t.Fatalf("the model was not asked %q within %v: %s", prompt, patience, dump(b.model.Requests()))
	}
}

// agents are the processes of this case that are neither the Host's proxies nor the server.
func (b *behind) agents() (left []fakehost.Survivor) {
	b.t.Helper()
	all, err := fakehost.Survivors(b.caseID)
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s fakehost.Survivor) bool {
		return strings.HasPrefix(s.Args, "agent-knock-knock harness") || strings.HasPrefix(s.Args, b.bin)
	})
}

// patient is must for calls of an agent on a loaded machine.
func (p *proxy) patient(tool string, args obj) (obj, string) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), 2*patience)
	defer stop()
	out, code, err := p.try(ctx, tool, args)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", tool, err, p.Stderr())
	}
	return out, code
}

func (p *proxy) says(session, prompt string) obj {
	p.t.Helper()
	out, code := p.patient("send_message", obj{"session_id": session, "text": prompt})
	if code != "" {
		p.t.Fatalf("%s: %s %v", prompt, code, out)
	}
	return out
}

// question is the only open one of a status.
func question(t testing.TB, st obj) obj {
	t.Helper()
	list, _ := st["questions"].([]any)
	if st["state"] != "waiting_input" || len(list) != 1 {
		t.Fatalf("nobody is asked: %v", st)
	}
	return list[0].(obj)
}

// answered answers the open question of a message and waits for its end.
func (p *proxy) answered(st, answer obj) obj {
	p.t.Helper()
	id := obj{"session_id": st["session_id"], "message_id": st["message_id"]}
	maps.Copy(answer, id)
	answer["request_id"] = question(p.t, st)["request_id"]
	if out, code := p.patient("answer_question", answer); code != "" {
		p.t.Fatalf("%s %v", code, out)
	}
	out, code := p.patient("wait", id)
	if code != "" {
		p.t.Fatalf("%s %v", code, out)
	}
	return out
}

func optionID(t testing.TB, q obj, kind string) string {
	t.Helper()
	for _, o := range q["options"].([]any) {
		if o := o.(obj); o["kind"] == kind {
			return o["option_id"].(string)
		}
	}
	t.Fatalf("no %s in %v", kind, q)
	return ""
}

// writes is a prompt whose command leaves a file, and the file.
func (b *behind) writes(name string) (prompt, path string) {
	path = filepath.Join(b.kit.Cwd, name)
	return fmt.Sprintf("RUN:echo hi > %s;; SAY:went on", path), path
}

// accepted checks a message whose command ran.
func (b *behind) accepted(st obj, path string) {
	b.t.Helper()
	if data, err := os.ReadFile(path); string(data) != "hi\n" || text(st) != "went on" || st["state"] != "completed" {
		b.t.Errorf("accept: %q %v, %v", data, err, st)
	}
	tools, _ := st["result"].(obj)["tool_calls"].([]any)
	if len(tools) != 1 || tools[0].(obj)["status"] != "completed" {
		b.t.Errorf("accept: tools %v", tools)
	}
}

// rejected checks a message whose command was refused: each agent goes on in its own way.
func (b *behind) rejected(st obj, path string) {
	b.t.Helper()
	if _, err := os.Stat(path); err == nil {
		b.t.Error("reject: the command ran")
	}
	if list, _ := st["rejected_requests"].([]any); len(list) != 1 {
		b.t.Errorf("reject: %v", st)
	}
	got := fmt.Sprint(st["state"], " ", st["cancel_reason"], " ", text(st))
	want := map[quirks.Ending]string{quirks.GoesOn: "completed <nil> went on", quirks.EndsEmpty: "completed <nil> ",
		quirks.EndsCancelled: "cancelled harness_cancelled "}[b.quirk.RejectionEnds]
	if got != want {
		b.t.Errorf("reject: %q, want %q: %v", got, want, st)
	}
}

// Cases 63, 69 to 72 and 74, each over the proxy, the server that it starts, and a real agent.
func TestRealACPAgentsThroughTheProxy(t *testing.T) {
	for _, harness := range realacp.Harnesses() {
		t.Run(harness, func(t *testing.T) {
			b := newBehind(t, harness)
			p := b.start("", nil) // cannot ask a person
			made, code := p.patient("create_session", b.launch())
			if code != "" {
				t.Fatalf("%s %v", code, made)
			}
			s := made["session_id"].(string)
			if st := p.says(s, "SAY:PONG"); text(st) != "PONG" || st["state"] != "completed" {
				t.Errorf("hello: %v", st)
			}
			b.permissions(p, s)
			b.people(s)
			b.cancel(p, s)
			s = b.serverKilled(p, s)

			if out, code := p.patient("close_session", obj{"session_id": s}); code != "" || out["status"] != "closed" {
				t.Errorf("close: %s %v", code, out)
			}
			if left := b.agents(); len(left) != 0 {
				t.Errorf("after close_session: %v", left)
			}
		})
	}
}

// permissions: the model answers what the agent asks.
func (b *behind) permissions(p *proxy, s string) {
	b.t.Helper()
	prompt, path := b.writes("accepted.txt")
	st := p.says(s, prompt)
	b.accepted(p.answered(st, obj{"option_id": optionID(b.t, question(b.t, st), "allow_once")}), path)
	prompt, path = b.writes("rejected.txt")
	b.rejected(p.answered(p.says(s, prompt), obj{"answer": "reject"}), path)
}

// people: a person answers through another Host of the same server.
func (b *behind) people(s string) {
	b.t.Helper()
	var yes atomic.Bool
	p := b.start("2025-11-25", func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if yes.Load() {
			for _, word := range []string{"llow once", "es, proceed", "Allow", "Yes"} {
				if out, err := choose(req, word); err == nil {
					return out, nil
				}
			}
		}
		<-time.After(personal) // a person needs time
		return &mcp.ElicitResult{Action: "decline"}, nil
	})
	yes.Store(true)
	prompt, path := b.writes("elicited.txt")
	b.accepted(p.says(s, prompt), path)
	yes.Store(false)
	prompt, path = b.writes("declined.txt")
	b.rejected(p.says(s, prompt), path)
}

// cancel: a message that runs ends as cancelled, and the session takes the next one.
func (b *behind) cancel(p *proxy, s string) {
	b.t.Helper()
	done := make(chan obj, 1)
	prompt := "STREAM:600@100"
	go func() {
		out, _, _ := p.try(context.WithoutCancel(b.t.Context()), "send_message", obj{"session_id": s, "text": prompt})
		done <- out
	}()
	b.working(prompt)
	out, code := p.patient("cancel_message", obj{"session_id": s})
	if code != "" || out["state"] != "cancelled" || out["cancel_reason"] != "user_cancel" {
		b.t.Errorf("cancel: %s %v", code, out)
	}
	if out := <-done; out["state"] != "cancelled" {
		b.t.Errorf("the call that was cancelled: %v", out)
	}
	if st := p.says(s, "SAY:still here"); text(st) != "still here" {
		b.t.Errorf("after the cancel: %v", st)
	}
}

// anotherMinute waits until the clock shows one: some agents name their files by it.
func anotherMinute() {
	<-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
}

// serverKilled kills the server in the middle of a turn. The call that waits hears the truth
// from the next server, and another session takes the conversation up.
func (b *behind) serverKilled(p *proxy, s string) (next string) {
	t := b.t
	t.Helper()
	type end struct {
		out  obj
		code string
		err  error
	}
	done := make(chan end, 1)
	const prompt = "STREAM:601@100"
	go func() {
		out, code, err := p.try(context.WithoutCancel(t.Context()), "send_message", obj{"session_id": s, "text": prompt})
		done <- end{out, code, err}
	}()
	b.working(prompt)
	before := p.pid()
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	until(t, "the agent ends with its server", func() bool { return len(b.agents()) == 0 })
	t.Logf("%s: nothing of the agent was left %v after its server was killed", b.kit.Harness, time.Since(killed).Round(10*time.Millisecond))
	got := <-done
	problem, _ := got.out["error"].(obj)
	if got.err != nil || got.code != "failed message" || problem["code"] != "interrupted" || got.out["orphaned"] != true {
		t.Fatalf("the call that waited: %+v", got)
	}
	if after := p.pid(); after == before {
		t.Fatalf("the server is still %d", after)
	}

	refused := p.refused("send_message", obj{"session_id": s, "text": "SAY:x"}, "interrupted")
	d, _ := refused["detail"].(obj)
	if d["next_action"] != "create_session" || d["resume_session_id"] == nil {
		t.Fatalf("%v", refused)
	}
	if b.quirk.ForgetsWithinMinute {
		anotherMinute()
	}
	again := b.launch()
	again["resume_session_id"] = d["resume_session_id"]
	made, code := p.patient("create_session", again)
	if code != "" {
		t.Fatalf("%s %v", code, made)
	}
	next = made["session_id"].(string)
	resumed := made["resumed"] == true
	if st := p.says(next, "SAY:back"); text(st) != "back" || st["state"] != "completed" {
		t.Errorf("after the kill: %v", st)
	}
	remembers := slices.ContainsFunc(b.model.Requests(), func(r fakemodel.Request) bool {
		return r.Kind == "main" && r.User == "SAY:back" && slices.Contains(r.Earlier, "SAY:PONG")
	})
	if !resumed || !remembers {
		t.Errorf("resumed: %v, remembers: %v: %s", resumed, remembers, dump(b.model.Requests()))
	}
	t.Logf("%s %v: resumed %v, remembers the earlier turn: %v", b.kit.Harness, made["harness_version"], resumed, remembers)
	return next
}

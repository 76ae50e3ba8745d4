//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realacp"
)

// TestMain: the launcher of these tests runs agents under this binary.
func TestMain(m *testing.M) {
	proc.MaybeRunner()
	os.Exit(m.Run())
}

// talker is a real agent on the client and the launcher of the product.
type talker struct {
	t     *testing.T
	local *launch.Local
	kit   *realacp.Agent
	quirk quirks.Agent
	model *fakemodel.Server

	process *launch.Process
	conn    *acp.Conn
	caps    acp.AgentCaps
	sid     string

	mu     sync.Mutex
	turn   string
	text   acp.Transcript
	asked  chan *acp.Request
	heard  chan struct{} // something was said in this turn
	replay int           // updates of history
	loose  []string      // text that belongs to no turn
}

func (a *talker) Handle(e acp.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := e.(type) {
	case *acp.Request:
		if e.Permission != nil {
			a.text.Tool(e.Permission.Tool)
		}
		a.asked <- e
	case *acp.Update:
		switch {
		case e.Replay:
			a.replay++
		case e.Turn == a.turn && a.turn != "":
			if err := a.text.Update(e); err != nil {
				a.t.Error(err)
			}
			if e.Kind == acp.AgentMessage && e.Chunk != nil && strings.Contains(e.Chunk.Text, "chunk") {
				select {
				case a.heard <- struct{}{}:
				default:
				}
			}
		case e.Kind == acp.AgentMessage && e.Chunk != nil:
			a.loose = append(a.loose, e.Chunk.Text)
		}
	}
}

func newTalker(t *testing.T, harness string) *talker {
	t.Helper()
	model := fakemodel.Start(t)
	kit := realacp.Prepare(t, harness, model.URL())
	spawner := proc.NewSpawner()
	runners := proc.NewRunners(spawner, 1)
	t.Cleanup(func() { runners.Close(); spawner.Close() })
	quirk, ok := quirks.Find(harness)
	if !ok {
		t.Fatal("no such row")
	}
	a := &talker{t: t, kit: kit, quirk: quirk, model: model, asked: make(chan *acp.Request, 100), heard: make(chan struct{}, 1),
		local: launch.NewLocal(runners, os.Environ(), launch.Options{})}
	t.Cleanup(a.stop)
	return a
}

func (a *talker) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.t.Context()), patience)
}

// up starts the agent and shakes hands.
func (a *talker) up() {
	a.t.Helper()
	ctx, cancel := a.within()
	defer cancel()
	process, err := a.local.Start(ctx, launch.Spec{Argv: a.kit.Argv, Dir: a.kit.Cwd, Env: a.quirk.Environment(a.kit.Env)})
	if err != nil {
		a.t.Fatal(err)
	}
	a.process = process
	a.conn = acp.Open(context.WithoutCancel(ctx), process.Stdout(), process.Stdin(), a, acp.Options{})
	in, err := a.conn.Initialize(ctx, acp.Info{Name: "akk-e2e", Version: "0"}, acp.ClientCaps{ElicitForm: true, BooleanOptions: true})
	a.must(err)
	a.caps = in.Caps
	if a.kit.Login != "" {
		a.must(a.conn.Authenticate(ctx, a.kit.Login, nil))
	}
}

func (a *talker) must(err error) {
	a.t.Helper()
	if err != nil {
		tail := ""
		if a.process != nil {
			tail = strings.Join(a.process.StderrTail(), "\n")
		}
		var rpc *acp.RPCError
		if errors.As(err, &rpc) {
			tail += " data: " + string(rpc.Data)
		}
		a.t.Fatalf("%v\nstderr: %s", err, tail)
	}
}

func (a *talker) stop() {
	if a.process == nil {
		return
	}
	ctx, cancel := a.within()
	defer cancel()
	if exit := a.process.Close(ctx); exit.Left != 0 {
		a.t.Errorf("%+v", exit)
	}
	a.conn.Close()
	a.process = nil
}

func (a *talker) begin(label, text string) *acp.Turn {
	a.t.Helper()
	a.mu.Lock()
	a.turn, a.text, a.replay, a.loose = label, acp.Transcript{}, 0, nil
	a.mu.Unlock()
	turn, err := a.conn.StartPrompt(a.sid, label, acp.Text(text))
	a.must(err)
	return turn
}

func (a *talker) settled(turn *acp.Turn) (acp.PromptResult, acp.Summary) {
	a.t.Helper()
	ctx, cancel := a.within()
	defer cancel()
	res, err := turn.Wait(ctx)
	a.must(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	return res, a.text.Summary()
}

func (a *talker) question(turn *acp.Turn) *acp.Request {
	a.t.Helper()
	select {
	case q := <-a.asked:
		return q
	case <-turn.Settled():
		res, sum := a.settled(turn)
		a.t.Fatalf("nobody was asked: %s, %+v; the model was asked %+v", res.StopReason, sum, a.model.Requests())
	case <-time.After(patience):
		a.t.Fatalf("nobody was asked within %s", patience)
	}
	return nil
}

// Cases 69 to 72 and 74: what real agents do, on the client and the launcher alone.
func TestRealACPAgentsTalk(t *testing.T) {
	for _, harness := range realacp.Harnesses() {
		t.Run(harness, func(t *testing.T) {
			a := newTalker(t, harness)
			a.up()
			ctx, cancel := a.within()
			defer cancel()
			session, err := a.conn.NewSession(ctx, acp.SessionParams{CWD: a.kit.Cwd})
			a.must(err)
			a.sid = session.ID
			if a.kit.AskMode != "" {
				a.must(a.conn.SetMode(ctx, a.sid, a.kit.AskMode))
			}

			res, sum := a.settled(a.begin("hello", "SAY:PONG"))
			if res.StopReason != acp.EndTurn || sum.Text != "PONG" {
				t.Errorf("hello: %s, %+v", res.StopReason, sum)
			}

			accepted := filepath.Join(a.kit.Cwd, "accepted.txt")
			turn := a.begin("accept", fmt.Sprintf("RUN:echo hi > %s;; SAY:done", accepted))
			q := a.question(turn)
			if q.Permission == nil || q.Turn != "accept" {
				t.Fatalf("asked %+v", q)
			}
			_, err = a.conn.Reply(q.Ref, acp.Select(optionOf(t, q, "allow_once")))
			a.must(err)
			res, sum = a.settled(turn)
			if text, err := os.ReadFile(accepted); string(text) != "hi\n" || sum.Text != "done" || res.StopReason != acp.EndTurn {
				t.Errorf("accept: %q %v, %s, %+v", text, err, res.StopReason, sum)
			}
			if len(sum.Tools) != 1 || sum.Tools[0].Status != "completed" {
				t.Errorf("accept: tools %+v", sum.Tools)
			}

			rejected := filepath.Join(a.kit.Cwd, "rejected.txt")
			turn = a.begin("reject", fmt.Sprintf("RUN:echo hi > %s;; SAY:went on", rejected))
			_, err = a.conn.Reply(a.question(turn).Ref, acp.Reject())
			a.must(err)
			res, sum = a.settled(turn)
			if _, err := os.Stat(rejected); err == nil {
				t.Error("reject: the command ran")
			}
			// Codex says a warning of its own in every turn.
			ends := map[quirks.Ending]string{quirks.GoesOn: "end_turn true", quirks.EndsEmpty: "end_turn false", quirks.EndsCancelled: "cancelled false"}
			if got := fmt.Sprint(res.StopReason, " ", sum.Text == "went on"); got != ends[a.quirk.RejectionEnds] {
				t.Errorf("reject: %s, %q", got, sum.Text)
			}

			turn = a.begin("cancel", "STREAM:600@100")
			select {
			case <-a.heard:
			case <-time.After(patience):
				t.Fatal("nothing was said")
			}
			_, err = a.conn.Cancel(a.sid)
			a.must(err)
			res, sum = a.settled(turn)
			if res.StopReason != acp.Cancelled || !strings.Contains(sum.Text, "chunk 1 of") || strings.Contains(sum.Text, "chunk 600 of") {
				t.Errorf("cancel: %s, %+v", res.StopReason, sum)
			}
			res, sum = a.settled(a.begin("after", "SAY:still here"))
			if res.StopReason != acp.EndTurn || sum.Text != "still here" {
				t.Errorf("after cancel: %s, %+v", res.StopReason, sum)
			}

			// The agent is killed in a turn; another process takes the session up.
			turn = a.begin("killed", "STREAM:600@100")
			select {
			case <-a.heard:
			case <-time.After(patience):
				t.Fatal("nothing was said")
			}
			a.process.Kill()
			if _, err := turn.Wait(ctx); !fault.Is(err, acp.Transport) {
				t.Errorf("killed: %v", err)
			}
			a.stop()
			a.up()
			if a.quirk.ForgetsWithinMinute {
				anotherMinute()
			}
			again, done := a.within()
			defer done()
			open := a.conn.LoadSession
			if a.caps.Resume {
				open = a.conn.ResumeSession
			}
			_, err = open(again, a.sid, acp.SessionParams{CWD: a.kit.Cwd})
			a.must(err)
			res, sum = a.settled(a.begin("again", "SAY:back"))
			if res.StopReason != acp.EndTurn || sum.Text != "back" {
				t.Errorf("after resume: %s, %+v", res.StopReason, sum)
			}
		})
	}
}

func optionOf(t *testing.T, q *acp.Request, kind string) string {
	t.Helper()
	for _, o := range q.Permission.Options {
		if o.Kind == kind {
			return o.ID
		}
	}
	t.Fatalf("no %s among %+v", kind, q.Permission.Options)
	return ""
}

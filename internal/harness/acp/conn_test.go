package acp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

// Case 16.
func TestATurnIsAnswered(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		res := r.mustPrompt("msg-1", "hello")
		equal(t, "stop reason", res.StopReason, acp.EndTurn)
		equal(t, "text", r.transcript("msg-1").Text, "echo:hello")
		equal(t, "settled", await[*acp.Settled](r, 0).Turn, "msg-1")
	})
}

// Case 36. What we ask for is version 1, whatever the agent could do.
func TestAnotherProtocolVersionIsRefused(t *testing.T) {
	inBubble(t, "--protocol=2", acp.Options{}, func(r *rig) {
		_, err := r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		equal(t, "code", fault.CodeOf(err), acp.WrongVersion)
		if !strings.Contains(r.sent[0], `"protocolVersion":1`) {
			t.Errorf("asked %s", r.sent[0])
		}
	})
}

func TestWhatTheAgentCanDoIsRead(t *testing.T) {
	inBubble(t, "--auth-token --auth-terminal --login-state=/nowhere", acp.Options{}, func(r *rig) {
		in, err := r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "load", in.Caps.Load, true)
		equal(t, "resume", in.Caps.Resume, true)
		equal(t, "fork", in.Caps.Fork, false)
		equal(t, "name", in.Agent.Name+" "+in.Agent.Version, "fake-acp 1.2.3")
		equal(t, "methods", len(in.AuthMethods), 2)
		equal(t, "terminal", in.AuthMethods[1].Type+" "+strings.Join(in.AuthMethods[1].Args, " "), "terminal --login --login-state /nowhere")
	})
}

// Case 17 at this level: the agent never sees a second prompt.
func TestASecondPromptIsRefusedWhileOneIsOpen(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		turn := r.start("msg-1", "HOLD 5")
		_, err := r.prompt("msg-2", "hello")
		equal(t, "code", fault.CodeOf(err), acp.Busy)
		// A03: nor is the session loaded under the open prompt.
		_, err = r.conn.LoadSession(r.t.Context(), r.sid, acp.SessionParams{CWD: "/proj"})
		equal(t, "code of load", fault.CodeOf(err), acp.Busy)
		res, err := r.wait(turn)
		equal(t, "first", fmt.Sprint(res.StopReason, err), "end_turn<nil>")
		equal(t, "prompts sent", r.countSent("session/prompt"), 1)
		r.mustPrompt("msg-2", "hello")
		equal(t, "second", r.transcript("msg-2").Text, "echo:hello")
	})
}

// Case 20: the whole text, not its end.
func TestALongAnswerIsKeptWhole(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "BIG 5")
		if got := r.transcript("msg-1").Text; got != fakeacp.BigText(5) {
			t.Errorf("%d bytes came, %d were said", len(got), 5<<20)
		}
	})
}

// Case 21.
func TestTextIsGroupedByMessage(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "GROUPS")
		s := r.transcript("msg-1")
		equal(t, "text", s.Text, "The answer.")
		equalLists(t, "messages", texts(s), []string{"=Warning: something. ", "g1=I will look. ", "g2=The answer."})
	})
}

// Case 27.
func TestWhatComesAfterTheAnswerBelongsToNoTurn(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "LATE; SAY first")
		late := await[*acp.Update](r, 1)
		equal(t, "late text", late.Chunk.Text, "late text")
		equal(t, "its turn", late.Turn, "")
		r.mustPrompt("msg-2", "SAY second")
		equal(t, "first", r.transcript("msg-1").Text, "first")
		equal(t, "second", r.transcript("msg-2").Text, "second")
	})
}

// A05: every update is handled, in order, before the caller sees the answer.
func TestTheAnswerComesAfterEveryUpdate(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.on = func(e acp.Event) {
			if _, ok := e.(*acp.Update); ok {
				time.Sleep(time.Millisecond) // in the bubble this only lets the others run first
			}
		}
		r.mustPrompt("msg-1", "STREAM 1000 0")
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "%d ", i)
		}
		if got := r.transcript("msg-1").Text; got != want.String() {
			t.Errorf("got %d bytes of %d", len(got), want.Len())
		}
	})
}

// Cases 31 and 32: none of this ends anything.
func TestOddOutputIsRecordedAndNothingMore(t *testing.T) {
	inBubble(t, "--prose", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "GARBAGE; OBJECT; NOTIFY; VENDOR; UNKNOWN-RESPONSE; NULL-ID-ERROR; UNKNOWN-UPDATE; UNKNOWN-CANCEL; SAY fine")
		s := r.transcript("msg-1")
		equal(t, "text", s.Text, "fine")
		equalLists(t, "unsupported", s.Unsupported, []string{"update notice"})
		var stray, odd, notes []string
		for _, e := range all[*acp.Stray](r) {
			stray = append(stray, e.Text)
		}
		for _, e := range all[*acp.Odd](r) {
			odd = append(odd, string(e.Kind))
		}
		for _, e := range all[*acp.Notification](r) {
			notes = append(notes, e.Method)
		}
		equalLists(t, "stray", stray, []string{"Loaded cached credentials.", "Loaded cached credentials."})
		equalLists(t, "odd", odd, []string{"not_an_object", "response_to_nothing", "response_to_nothing"})
		equalLists(t, "notifications", notes, []string{"agent/heartbeat", "_x/y", "$/cancel_request"})
	})
}

func TestASecondAnswerIsIgnored(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "TWICE; SAY one")
		r.mustPrompt("msg-2", "SAY two")
		equal(t, "settled", len(all[*acp.Settled](r)), 2)
		equal(t, "odd", await[*acp.Odd](r, 0).Kind, acp.OddUnknownID)
		equal(t, "text", r.transcript("msg-2").Text, "two")
	})
}

// Case 33. A line of exactly the limit is fine, one byte more ends the connection.
func TestALineHasALimit(t *testing.T) {
	const limit = 4096
	inBubble(t, "", acp.Options{Limits: acp.Limits{LineBytes: limit}}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", fmt.Sprint("LINE ", limit))
		if text := r.transcript("msg-1").Text; len(text) < limit/2 {
			t.Errorf("%d bytes came", len(text))
		}
		_, err := r.prompt("msg-2", fmt.Sprint("LINE ", limit+1))
		equal(t, "code", fault.CodeOf(err), acp.LineTooLarge)
		equal(t, "closed", fault.CodeOf(await[*acp.Closed](r, 0).Err), acp.LineTooLarge)
		_, err = r.prompt("msg-3", "hello")
		equal(t, "code afterwards", fault.CodeOf(err), acp.LineTooLarge)
	})
}

func TestOutputThatNobodyHandlesHasALimit(t *testing.T) {
	inBubble(t, "", acp.Options{Limits: acp.Limits{QueueBytes: 64 << 10}}, func(r *rig) {
		r.open(acp.ClientCaps{})
		release := make(chan struct{})
		r.on = func(e acp.Event) {
			if u, ok := e.(*acp.Update); ok && u.Kind == acp.AgentMessage {
				<-release
			}
		}
		turn := r.start("msg-1", "BIG 1")
		for r.conn.Err() == nil {
			time.Sleep(time.Second)
		}
		close(release)
		_, err := r.wait(turn)
		equal(t, "code", fault.CodeOf(err), acp.OutputLimit)
	})
}

func TestEndlessProseEndsTheConnection(t *testing.T) {
	inBubble(t, "", acp.Options{Limits: acp.Limits{StrayLines: 2}}, func(r *rig) {
		r.open(acp.ClientCaps{})
		_, err := r.prompt("msg-1", "GARBAGE a; GARBAGE b; GARBAGE c; SAY never")
		equal(t, "code", fault.CodeOf(err), acp.Garbage)
		equal(t, "stray lines", len(all[*acp.Stray](r)), 2)
	})
}

// Case 28 at this level: a turn without an answer is settled by the end, before Closed.
func TestTheEndOfTheAgentSettlesEveryTurn(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		_, err := r.prompt("msg-1", "SAY partly; EXIT 7")
		equal(t, "code", fault.CodeOf(err), acp.Transport)
		<-r.conn.Done()
		settled := await[*acp.Settled](r, 0)
		equal(t, "settled", settled.Turn+" "+string(fault.CodeOf(settled.Err)), "msg-1 transport")
		equal(t, "text", r.transcript("msg-1").Text, "partly")
	})
}

// Case 30.
func TestErrorsKeepTheirCode(t *testing.T) {
	inBubble(t, "--auth-required", acp.Options{}, func(r *rig) {
		_, _ = r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		_, err := r.conn.NewSession(r.t.Context(), acp.SessionParams{CWD: "/proj"})
		equal(t, "before the login", fault.CodeOf(err), acp.AuthRequired)
		if err := r.conn.Authenticate(r.t.Context(), "fake-login", nil); err != nil {
			t.Fatal(err)
		}
		r.open(acp.ClientCaps{})
		_, err = r.prompt("msg-1", "ERR -32603 it broke")
		var rpc *acp.RPCError
		if !errors.As(err, &rpc) || fault.CodeOf(err) != acp.RPCFailed {
			t.Fatalf("got %v", err)
		}
		equal(t, "rpc", fmt.Sprint(rpc.Method, rpc.Code, rpc.Message, string(rpc.Data)), `session/prompt-32603it broke{"scripted":true}`)
		_, err = r.prompt("msg-2", "ERR -32000")
		equal(t, "logged out", fault.CodeOf(err), acp.AuthRequired)
	})
}

// A12: a call has its caller's limit, the agent is told, and a late answer does no harm.
func TestACallThatIsNotAnsweredEndsWithItsContext(t *testing.T) {
	inBubble(t, "--slow-new=90s", acp.Options{}, func(r *rig) {
		_, _ = r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := r.conn.NewSession(ctx, acp.SessionParams{CWD: "/proj"})
		equal(t, "code", fault.CodeOf(err), fault.Timeout)
		equal(t, "after", time.Since(began), time.Minute)
		equal(t, "late answer", await[*acp.Odd](r, 0).Kind, acp.OddLateAnswer)
		equal(t, "told", r.countSent("$/cancel_request"), 1)
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "hello")
	})
}

// A06, case 72: history is never part of a turn.
func TestALoadedSessionsHistoryIsMarked(t *testing.T) {
	inBubble(t, "--replay=3", acp.Options{}, func(r *rig) {
		_, _ = r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		s, err := r.conn.LoadSession(r.t.Context(), "old-session", acp.SessionParams{CWD: "/proj"})
		if err != nil {
			t.Fatal(err)
		}
		r.sid = s.ID
		for i := range 3 {
			u := await[*acp.Update](r, i)
			equal(t, "replay", fmt.Sprint(u.Replay, u.Turn), "true")
		}
		r.mustPrompt("msg-1", "SAY new")
		u := await[*acp.Update](r, 3)
		equal(t, "new", fmt.Sprint(u.Replay, u.Turn, u.Chunk.Text), "falsemsg-1new")
		equal(t, "text", r.transcript("msg-1").Text, "new")
	})
}

// A07: what an agent does not know is an error of that call alone.
func TestOptionalMethodsMayBeMissing(t *testing.T) {
	inBubble(t, "--no-optional", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		_, err := r.conn.SetConfigOption(r.t.Context(), r.sid, "model", "fake-2")
		for _, e := range []error{err, r.conn.SetMode(r.t.Context(), r.sid, "agent"), r.conn.SetModel(r.t.Context(), r.sid, "m"), r.conn.CloseSession(r.t.Context(), r.sid)} {
			var rpc *acp.RPCError
			if !errors.As(e, &rpc) || rpc.Code != acp.CodeNoMethod {
				t.Errorf("got %v", e)
			}
		}
		r.mustPrompt("msg-1", "hello")
	})
}

func TestOptionsAreChangedAndReadBack(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		options, err := r.conn.SetConfigOption(r.t.Context(), r.sid, "model", "fake-2")
		if err != nil || len(options) != 3 {
			t.Fatal(options, err)
		}
		equal(t, "model", options[1].Category+" "+options[1].Current+" "+options[1].Choices[0].Value, "model fake-2 fake-1")
		_, err = r.conn.SetConfigOption(r.t.Context(), r.sid, "model", "nope")
		var rpc *acp.RPCError
		if !errors.As(err, &rpc) || rpc.Code != acp.CodeInvalidParams {
			t.Errorf("got %v", err)
		}
		raw, err := r.conn.Call(r.t.Context(), "_fake/echo", map[string]int{"n": 1})
		equal(t, "vendor call", fmt.Sprint(string(raw), err), `{"n":1}<nil>`)
	})
}

func TestOlderModesAndModelsAreRead(t *testing.T) {
	inBubble(t, "--legacy", acp.Options{}, func(r *rig) {
		in, err := r.conn.Initialize(r.t.Context(), acp.Info{Name: "test"}, acp.ClientCaps{})
		if err != nil || in.Agent.Name == "" {
			t.Fatal(err)
		}
		s, err := r.conn.NewSession(r.t.Context(), acp.SessionParams{CWD: "/proj"})
		if err != nil || s.Config != nil || s.Modes == nil || s.Models.Current != "fake-1" {
			t.Fatalf("%+v %v", s, err)
		}
	})
}

func TestAnAgentThatDoesNotReadBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, toAgent := io.Pipe() // nobody reads it
		fromAgent, _ := io.Pipe()
		r := newRig(t)
		r.conn = acp.Open(t.Context(), fromAgent, toAgent, r, acp.Options{Limits: acp.Limits{OutBytes: 1 << 10}})
		defer r.conn.Close()
		first, err := r.conn.StartPrompt("s1", "msg-1", acp.Text(strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.conn.StartPrompt("s2", "msg-2", acp.Text("more"))
		equal(t, "code", fault.CodeOf(err), acp.Transport)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = first.Wait(ctx)
		equal(t, "the first waits", fault.CodeOf(err), fault.Timeout)
	})
}

func TestTheEndOfTheOwnerEndsTheConnection(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		turn := r.start("msg-1", "HANG")
		why := errors.New("the server stops")
		r.conn.Abort(why)
		_, err := turn.Wait(r.t.Context())
		if !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		<-r.conn.Done()
		if !errors.Is(await[*acp.Closed](r, 0).Err, why) {
			t.Errorf("closed for another reason")
		}
	})
}

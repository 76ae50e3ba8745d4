package harnesstools

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/autostart"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// desk is a server with one message that has one permission question.
type desk struct {
	mu      sync.Mutex
	open    bool
	answers []map[string]json.RawMessage
}

func (d *desk) Ensure(context.Context) (autostart.Found, error) {
	return autostart.Found{Pong: client.Pong{PID: 1, Data: json.RawMessage(`{"features":["wait_ms"]}`)}}, nil
}

func (d *desk) Call(_ context.Context, op string, in any, _ time.Duration) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op == "answer_question" {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		var a map[string]json.RawMessage
		if err := json.Unmarshal(b, &a); err != nil {
			return nil, err
		}
		d.answers, d.open = append(d.answers, a), false
		return json.RawMessage(`{"status":"accepted"}`), nil
	}
	if !d.open {
		return json.RawMessage(`{"session_id":"s","message_id":"m","state":"completed","terminal":true,"result":{"text":"done"}}`), nil
	}
	return json.RawMessage(`{"session_id":"s","message_id":"m","state":"running","terminal":false,"questions":[{"request_id":"q1","kind":"permission","permission":true,
		"title":"rm","options":[{"option_id":"proceed_once","name":"Allow","kind":"allow_once"},{"option_id":"no","name":"Deny","kind":"reject_once"}]}]}`), nil
}

func (d *desk) withdraw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = false
}

// host answers every form with one function.
type host struct {
	asked  int
	titled bool
	inline bool
	elicit func(ctx context.Context, q toolkit.Elicitation) (toolkit.Answer, error)
}

func (h *host) Forms() bool     { return true }
func (h *host) URLs() bool      { return false }
func (h *host) Titled() bool    { return h.titled }
func (h *host) Inline() bool    { return h.inline }
func (h *host) Elicited(string) {}
func (h *host) Elicit(ctx context.Context, q toolkit.Elicitation) (toolkit.Answer, error) {
	h.asked++
	return h.elicit(ctx, q)
}

func says(action, content string) func(context.Context, toolkit.Elicitation) (toolkit.Answer, error) {
	return func(context.Context, toolkit.Elicitation) (toolkit.Answer, error) {
		return toolkit.Answer{Action: action, Content: json.RawMessage(content)}, nil
	}
}

// meet follows the message of a desk with a Host. robot is the time below which a no is no
// person's.
func meet(t *testing.T, d *desk, h *host, elicit string, robot time.Duration) (*service, *message, func(first handled) (map[string]any, any, error)) {
	t.Helper()
	d.open = true
	o := Options{Caller: d, Finder: d, Elicit: elicit, Log: slog.New(slog.DiscardHandler), Pace: Pace{Robot: robot, Watch: time.Millisecond, FirstPoll: time.Millisecond}}
	s := &service{gate: newGateway(d, d), options: o, pace: o.Pace.orDefaults(), dialog: make(chan struct{}, 1)}
	m := &message{s: s, tool: "send_message", session: "s", id: "m"}
	if _, err := s.gate.find(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return s, m, func(first handled) (map[string]any, any, error) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		v, err := s.follow(ctx, toolkit.Call{Host: h}, m, first)
		if verdict, ok := v.(toolkit.Verdict); ok {
			v = verdict.Value
		}
		var out map[string]any
		if b, encErr := json.Marshal(v); encErr == nil {
			_ = json.Unmarshal(b, &out) // what is no object is looked at as it is
		}
		return out, v, err
	}
}

// Case 41.
func TestAHostThatSaysNoLikeAMachineIsNotBelievedAndAskedNoMore(t *testing.T) {
	for _, action := range []string{"decline", "cancel"} {
		d, h := &desk{}, &host{elicit: says(action, "")}
		_, _, follow := meet(t, d, h, client.ElicitAuto, time.Hour)
		for range 2 {
			out, _, err := follow(handled{})
			if err != nil || out["state"] != "waiting_input" || len(d.answers) != 0 || h.asked != 1 {
				t.Fatalf("%s: %v %v %v, asked %d times", action, out, err, d.answers, h.asked)
			}
			if reason := out["detail"].(map[string]any)["reason"]; reason != hostAnsweredFast && reason != hostCannotAsk {
				t.Errorf("%v", reason)
			}
		}
	}
	// An acceptance counts however fast it is, and so does a no when it is said that a person sits there.
	d, h := &desk{}, &host{elicit: says("accept", `{"decision":"1. Allow [allow_once]"}`)}
	_, _, follow := meet(t, d, h, client.ElicitAuto, time.Hour)
	if out, _, err := follow(handled{}); err != nil || out["state"] != "completed" || string(d.answers[0]["option_id"]) != `"proceed_once"` {
		t.Errorf("%v %v %v", out, err, d.answers)
	}
	d, h = &desk{}, &host{elicit: says("decline", "")}
	_, _, follow = meet(t, d, h, client.ElicitAlways, time.Hour)
	if out, _, err := follow(handled{}); err != nil || out["state"] != "completed" || string(d.answers[0]["answer"]) != `"reject"` {
		t.Errorf("%v %v %v", out, err, d.answers)
	}
}

// Cases 38, 39: what a person says, and what the server is told.
func TestAPersonsAnswerIsMappedExactly(t *testing.T) {
	for _, c := range []struct {
		titled                      bool
		action, content, key, value string
	}{
		{true, "accept", `{"decision":"o1"}`, "option_id", `"proceed_once"`},
		{true, "accept", `{"decision":"o2"}`, "option_id", `"no"`},
		{false, "accept", `{"decision":"2. Deny [reject_once]"}`, "option_id", `"no"`},
		{true, "decline", "", "answer", `"reject"`},
		{true, "cancel", "", "answer", `"cancel"`},
	} {
		d, h := &desk{}, &host{titled: c.titled, elicit: says(c.action, c.content)}
		_, _, follow := meet(t, d, h, client.ElicitAuto, time.Nanosecond)
		out, _, err := follow(handled{})
		if err != nil || out["state"] != "completed" || len(d.answers) != 1 || string(d.answers[0][c.key]) != c.value || string(d.answers[0]["message_id"]) != `"m"` || string(d.answers[0]["request_id"]) != `"q1"` {
			t.Errorf("%+v: %v %v %v", c, out, err, d.answers)
		}
	}
}

// Case 40.
func TestAChoiceThatWasNotOfferedIsRefusedAndTheQuestionStaysOpen(t *testing.T) {
	for _, content := range []string{`{"decision":"o9"}`, `{"decision":"proceed_once"}`, `{"decision":1}`, `{}`, ``, `[]`} {
		d, h := &desk{}, &host{titled: true, elicit: says("accept", content)}
		_, _, follow := meet(t, d, h, client.ElicitAuto, time.Nanosecond)
		if out, _, err := follow(handled{}); !fault.Is(err, client.UnofferedOption) || len(d.answers) != 0 || !d.open {
			t.Errorf("%s: %v %v %v", content, out, err, d.answers)
		} else if detail := harness.DetailOf(err); detail["message_id"] != "m" || detail["next_action"] != "wait" {
			t.Errorf("%v", detail)
		}
	}
}

// Case 45: a question that goes away takes its dialog with it, and a late answer is dropped.
func TestAWithdrawnQuestionEndsItsDialog(t *testing.T) {
	d := &desk{}
	h := &host{elicit: func(ctx context.Context, _ toolkit.Elicitation) (toolkit.Answer, error) {
		d.withdraw()
		<-ctx.Done()
		return toolkit.Answer{}, ctx.Err()
	}}
	_, _, follow := meet(t, d, h, client.ElicitAuto, time.Hour)
	if out, _, err := follow(handled{}); err != nil || out["state"] != "completed" || len(d.answers) != 0 {
		t.Errorf("%v %v %v", out, err, d.answers)
	}
	h.elicit = func(context.Context, toolkit.Elicitation) (toolkit.Answer, error) {
		d.withdraw()
		return toolkit.Answer{Action: "accept", Content: json.RawMessage(`{"decision":"1. Allow [allow_once]"}`)}, nil
	}
	_, _, follow = meet(t, d, h, client.ElicitAuto, time.Hour)
	if out, _, err := follow(handled{}); err != nil || out["state"] != "completed" || len(d.answers) != 0 {
		t.Errorf("%v %v %v", out, err, d.answers)
	}
}

// A Host that takes no requests gets the question as the result; only what this process
// sealed for this call comes back.
func TestAnInlineQuestionComesBackOnlyWithItsSeal(t *testing.T) {
	d, h := &desk{}, &host{titled: true, inline: true}
	s, m, follow := meet(t, d, h, client.ElicitAuto, time.Nanosecond)
	_, v, err := follow(handled{})
	in, ok := v.(toolkit.InputNeeded)
	if err != nil || !ok || len(in.Questions) != 1 || h.asked != 0 {
		t.Fatalf("%v %v", v, err)
	}
	th, err := s.unseal(in.State, "send_message", "s")
	if err != nil || th.MessageID != "m" || th.RequestID != "q1" {
		t.Fatalf("%+v %v", th, err)
	}
	tampered := "x" + in.State[1:]
	for _, bad := range []struct{ state, tool, session string }{{in.State, "wait", "s"}, {in.State, "send_message", "other"}, {tampered, "send_message", "s"},
		{strings.TrimRight(in.State, "."), "authenticate", "s"}, {"", "send_message", "s"}, {".", "send_message", "s"}} {
		if _, err := s.unseal(bad.state, bad.tool, bad.session); !fault.Is(err, client.ElicitationFailed) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	other, _, _ := meet(t, &desk{}, h, client.ElicitAuto, time.Nanosecond)
	other.key[0] = 1
	if _, err := other.unseal(in.State, "send_message", "s"); !fault.Is(err, client.ElicitationFailed) {
		t.Errorf("another process: %v", err)
	}
	call := toolkit.Call{Host: h, Resumed: &toolkit.Resumed{State: in.State, Answers: map[string]toolkit.Answer{"q1": {Action: "accept", Content: json.RawMessage(`{"decision":"o2"}`)}}}}
	first, err := s.resume(t.Context(), call, m, th)
	if err != nil || first.settled != "q1" || len(d.answers) != 1 || string(d.answers[0]["option_id"]) != `"no"` {
		t.Fatalf("%+v %v %v", first, err, d.answers)
	}
	if out, _, err := follow(first); err != nil || out["state"] != "completed" {
		t.Errorf("%v %v", out, err)
	}
}

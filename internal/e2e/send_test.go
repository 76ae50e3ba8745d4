package e2e

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// TestTheMainJob is the sentence that the product exists for: a Host lists, sends, goes on,
// and later its callback program is run with the answer on stdin; the acknowledgement is
// proved and status shows it. Nothing is typed twice. (Spec cases 16, 37.)
func TestTheMainJob(t *testing.T) {
	for _, agent := range []string{standin.Codex, standin.Claude} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.agent(agent)
			c := w.start()
			term := idle(t, c)
			if term.Agent != agent || term.Workspace != p.Cwd {
				t.Errorf("row %+v", term)
			}
			task := "SAY:the answer is 42 and costs ${HOME}"
			got := send(t, c, term.TerminalID, task)
			if got.Status != "async_pending" || !got.DoNotRetry {
				t.Fatalf("send: %+v", got)
			}
			d := w.host.WaitDeliveries(1, settle)[0]
			if d.Body != "the answer is 42 and costs ${HOME}" || d.Session != w.host.Session {
				t.Errorf("callback: %+v", d)
			}
			s := waitCallback(t, c, got.TurnID, "delivered")
			if s.Turn.Status != "idle" || s.Turn.Evidence == "" || s.Callbacks[0].Attempts != 1 {
				t.Errorf("status: %s", dump(s))
			}
			p.typedOnce(task)
			if code := c.Close(settle); code != 0 {
				t.Errorf("exit status %d", code)
			}
			if n := len(w.host.Deliveries()); n != 1 {
				t.Errorf("%d callbacks", n)
			}
		})
	}
}

func TestASecondTaskGoesIntoTheSameSession(t *testing.T) {
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c)
	first := send(t, c, term.TerminalID, "SAY:one")
	waitCallback(t, c, first.TurnID, "delivered")
	idle(t, c)
	second := send(t, c, term.TerminalID, "SAY:two")
	waitCallback(t, c, second.TurnID, "delivered")
	if first.TurnID == second.TurnID || p.submits() != 2 {
		t.Errorf("turns %s %s, %d submissions", first.TurnID, second.TurnID, p.submits())
	}
	if bodies := w.host.Deliveries(); bodies[0].Body != "one" || bodies[1].Body != "two" {
		t.Errorf("%+v", bodies)
	}
}

func TestABusyTerminalIsRefusedByNameAndGetsNoKey(t *testing.T) { // spec case 39
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c)
	task := "GATE:go ;; SAY:done"
	first := send(t, c, term.TerminalID, task)
	res, err := c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": term.TerminalID, "request": "SAY:no"})
	if err != nil || res.Code() != "terminal_blocked" || !strings.Contains(res.Text, first.TurnID) {
		t.Fatalf("%v %s", err, res.Text)
	}
	p.typedOnce(task)
	p.Release(t, "go")
	waitCallback(t, c, first.TurnID, "delivered")
}

func TestAnAgentThatFailsIsReportedAsFailed(t *testing.T) {
	for _, agent := range []string{standin.Codex, standin.Claude} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, nil)
			w.agent(agent)
			c := w.start()
			got := send(t, c, idle(t, c).TerminalID, "FAIL:400")
			s := waitCallback(t, c, got.TurnID, "delivered")
			if s.Turn.Status != "failed" || s.Callbacks[0].Kind != "failure" {
				t.Errorf("%s", dump(s))
			}
			if d := w.host.Deliveries()[0]; !strings.Contains(d.Body, got.TurnID) {
				t.Errorf("the body names no turn: %q", d.Body)
			}
		})
	}
}

func TestAnInterruptedTaskIsReportedOnceAndFreesTheTerminal(t *testing.T) { // E03
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c)
	got := send(t, c, term.TerminalID, "SLEEP:600 ;; SAY:never")
	waitStatus(t, c, got.TurnID, "waiting_for_agent")
	w.tmux.Tmux("send-keys", "-t", p.ID, "Escape") // the human
	s := waitCallback(t, c, got.TurnID, "delivered")
	if s.Turn.Status != "failed" || s.Callbacks[0].Kind != "interrupted" {
		t.Errorf("%s", dump(s))
	}
	idle(t, c)
	if n := len(w.host.Deliveries()); n != 1 {
		t.Errorf("%d callbacks", n)
	}
}

func TestAPromptOfTheAgentKnocksAndAHumansAnswerGoesOn(t *testing.T) { // spec case 50
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "RUN:touch x.txt ;; SAY:made it")
	s := waitStatus(t, c, got.TurnID, "waiting_for_controller")
	if s.Turn.Prompt == nil || !strings.Contains(s.Screen, "touch x.txt") {
		t.Errorf("%s", dump(s))
	}
	w.host.WaitDeliveries(1, settle)
	w.tmux.Tmux("send-keys", "-t", p.ID, "y") // the human
	s = waitStatus(t, c, got.TurnID, "idle")
	d := w.host.WaitDeliveries(2, settle)
	if d[1].Body != "made it" || len(s.Callbacks) != 2 {
		t.Errorf("%s\n%+v", dump(s), d)
	}
	if in := p.Input(t); in.Enters != 1 || in.Typed != "y" {
		t.Errorf("the agent read %+v", in)
	}
}

func TestALongMultiLineTaskArrivesByteForByte(t *testing.T) { // T02, T06, spec case 41
	w := newWorld(t, nil)
	p := w.agent(standin.Claude)
	c := w.start()
	task := "-l leads; ends with semi;\n\tTab and  two  blanks, héllo 日本\n" + strings.Repeat("long line of a large prompt\n", 8000) + "SAY:read it all;"
	got := send(t, c, idle(t, c).TerminalID, task)
	s := waitCallback(t, c, got.TurnID, "delivered")
	if s.Turn.Status != "idle" {
		t.Fatalf("%s", dump(s))
	}
	p.typedOnce(task)
}

func TestTheCallbackProgramDecidesWhatADeliveryIs(t *testing.T) { // C08, spec cases 23-25
	for mode, want := range map[fakehost.Mode]string{fakehost.Exit7: "delivered", fakehost.WrongID: "uncertain", fakehost.Garbage: "uncertain",
		fakehost.Silent: "uncertain", fakehost.Reject: "failed", fakehost.Deaf: "delivered"} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, nil)
			w.host.SetMode(mode)
			w.agent(standin.Codex)
			c := w.start()
			term := idle(t, c)
			got := send(t, c, term.TerminalID, "SAY:x")
			s := waitCallback(t, c, got.TurnID, want)
			if s.Turn.Status != "idle" { // C06: a failed callback keeps no Turn busy
				t.Errorf("%s", dump(s))
			}
			idle(t, c)
			if n := len(w.host.Deliveries()); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

func TestAStalledTurnIsClosedByNameAndItsTerminalIsFree(t *testing.T) {
	w := newWorld(t, nil)
	p := w.agent(standin.Codex, "ignore-enter")
	p.WaitEvent(t, "ready", 1, settle)
	c := w.start()
	term := idle(t, c).TerminalID
	got := send(t, c, term, "SAY:x")
	s := statusOf(t, c, got.TurnID)
	if a := list(t, c).Terminals[0].Actions["close"]; a.Arguments["turn_id"] != got.TurnID || s.Turn.Status != "stalled" {
		t.Fatalf("close is not offered: %s", dump(list(t, c)))
	}
	var closed struct {
		Closed  bool   `json:"closed"`
		Before  string `json:"previous_status"`
		Stopped bool   `json:"coding_agent_stopped"`
	}
	for range 2 { // a second call changes nothing
		c.MustCall("agent_knock_knock_close", map[string]any{"turn_id": got.TurnID, "reason": "the human took over"}).Decode(t, &closed)
	}
	if !closed.Closed || closed.Stopped || closed.Before != "closed" {
		t.Errorf("%+v", closed)
	}
	if l := list(t, c); l.Terminals[0].Current != nil {
		t.Errorf("the terminal is still kept: %s", dump(l))
	}
	p.typedOnce("SAY:x") // closing pressed no key
}

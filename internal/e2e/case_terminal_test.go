package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

func TestATaskThatTheAgentOnlyParksIsNotCalledAcceptedAndNotRepeated(t *testing.T) { // T17
	for _, agent := range []string{standin.Codex, standin.Claude} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.agent(agent, "queued-forever")
			p.WaitEvent(t, "ready", 1, settle)
			c := w.start()
			got := send(t, c, idle(t, c).TerminalID, "SAY:x")
			if got.Submission == "accepted" || !got.DoNotRetry {
				t.Errorf("%+v", got)
			}
			p.typedOnce("SAY:x")
			if code := c.Close(settle); code != 0 {
				t.Errorf("exit %d", code)
			}
			if s := statusOf(t, w.start(), got.TurnID); s.Turn.Submission == "accepted" {
				t.Errorf("%s", dump(s))
			}
			p.typedOnce("SAY:x")
		})
	}
}

func TestANarrowPaneInAnOddWorkspaceTakesALongWordWhole(t *testing.T) { // T19, T21, H5 states 5 and 6
	for _, agent := range []string{standin.Codex, standin.Claude} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, nil)
			s := standin.New(t, agent)
			s.Cwd = filepath.Join(s.Cwd, "a b_c:d", "日本")
			if err := os.MkdirAll(s.Cwd, 0o700); err != nil {
				t.Fatal(err)
			}
			p := &pane{t: t, Setup: s}
			p.Pane = w.tmux.Run(faketmux.Spec{Width: 40, Height: 24, Argv: []string{"sh", "-c", s.Command()}})
			s.WaitEvent(t, "ready", 1, settle)
			c := w.start()
			term := idle(t, c)
			if term.Workspace != s.Cwd {
				t.Errorf("workspace %q, want %q", term.Workspace, s.Cwd)
			}
			task := "SAY:done\n  two  spaces " + strings.Repeat("x", 200)
			got := send(t, c, term.TerminalID, task)
			if st := waitCallback(t, c, got.TurnID, "delivered"); st.Turn.Status != "idle" {
				t.Errorf("%s", dump(st))
			}
			p.typedOnce(task)
		})
	}
}

func TestAQuestionThatWasRefusedLeavesTheTurnWaiting(t *testing.T) { // spec case 35, C06
	w := newWorld(t, nil)
	w.host.SetMode(fakehost.Reject)
	p := w.agent(standin.Codex)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "RUN:touch x.txt ;; SAY:made it")
	s := waitCallback(t, c, got.TurnID, "failed")
	if s.Turn.Status != "waiting_for_controller" || s.Turn.Prompt == nil {
		t.Errorf("%s", dump(s))
	}
	w.host.SetMode(fakehost.Accept)
	w.tmux.Tmux("send-keys", "-t", p.ID, "y") // a person answers
	waitCallback(t, c, got.TurnID, "delivered")
	if d := w.host.Deliveries(); d[len(d)-1].Body != "made it" {
		t.Errorf("%+v", d)
	}
}

func TestTwoAgentsInOnePaneAreNoTarget(t *testing.T) { // spec case 44
	w := newWorld(t, nil)
	a, b := standin.New(t, standin.Codex), standin.New(t, standin.Claude)
	both := &pane{t: t, Setup: a}
	both.Pane = w.tmux.Run(faketmux.Spec{Argv: []string{"sh", "-c", "(" + b.Command() + ") </dev/tty & " + strings.TrimPrefix(a.Command(), "exec ")}})
	a.WaitEvent(t, "ready", 1, settle)
	b.WaitEvent(t, "ready", 1, settle)
	c := w.start()
	l := list(t, c)
	if len(l.Terminals) != 2 {
		t.Fatalf("%s", dump(l))
	}
	for _, r := range l.Terminals {
		if r.State != "unknown" || r.Actions["send"].Tool != "" || !strings.Contains(r.Reason, "2 agent processes") {
			t.Errorf("%s", dump(r))
		}
		refused(t, c, map[string]any{"terminal_id": r.TerminalID, "request": "SAY:x"}, "terminal_unusable")
	}
	if n := len(a.Input(t).Pastes) + len(b.Input(t).Pastes); n != 0 {
		t.Errorf("%d pastes", n)
	}
}

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// place starts a prepared stand-in in a pane of a server.
func place(t *testing.T, server *faketmux.Server, s *standin.Setup) *pane {
	t.Helper()
	p := &pane{t: t, Setup: s}
	p.Pane = server.Run(faketmux.Spec{Argv: []string{"sh", "-c", s.Command()}})
	s.WaitEvent(t, "ready", 1, settle)
	return p
}

// ready waits until n terminals can take a task, and returns them by process.
func ready(t *testing.T, l func() listing, n int) map[string]row {
	t.Helper()
	var byPID map[string]row
	faketmux.Wait(t, "ready terminals", func() bool {
		byPID = map[string]row{}
		for _, r := range l().Terminals {
			if r.Actions["send"].Tool != "" {
				byPID[r.TerminalID[strings.LastIndex(r.TerminalID, ":")+1:]] = r
			}
		}
		return len(byPID) == n
	}, func() string { return dump(l()) })
	return byPID
}

func TestTwoServersWithTheSamePaneNameAreTwoTerminals(t *testing.T) { // spec case 43
	w := newWorld(t, nil)
	other := faketmux.New(t)
	a, b := place(t, w.tmux, standin.New(t, standin.Codex)), place(t, other, standin.New(t, standin.Codex))
	c := w.start("--tmux-socket", other.Socket())
	rows := ready(t, func() listing { return list(t, c) }, 2)
	first, second := rows[strconv.Itoa(a.PID)], rows[strconv.Itoa(b.PID)]
	if first.TerminalID == second.TerminalID || strings.TrimSuffix(first.TerminalID, strconv.Itoa(a.PID)) != strings.TrimSuffix(second.TerminalID, strconv.Itoa(b.PID)) {
		t.Fatalf("terminals %q and %q: want two that differ by their process alone", first.TerminalID, second.TerminalID)
	}
	got := send(t, c, second.TerminalID, "SAY:to the second")
	waitCallback(t, c, got.TurnID, "delivered")
	b.typedOnce("SAY:to the second")
	a.untouched()
	if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "to the second" {
		t.Errorf("%+v", d)
	}
}

func TestTwoAgentsInOneWorkspaceGetEachItsOwnAnswer(t *testing.T) { // E06
	for _, agent := range []string{standin.Codex, standin.Claude} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, nil)
			one, two := standin.New(t, agent), standin.New(t, agent)
			two.Home, two.Cwd = one.Home, one.Cwd // one home, one worktree, as a person has them
			a, b := place(t, w.tmux, one), place(t, w.tmux, two)
			c := w.start()
			rows := ready(t, func() listing { return list(t, c) }, 2)
			first := send(t, c, rows[strconv.Itoa(a.PID)].TerminalID, "GATE:go ;; SAY:answer of a")
			second := send(t, c, rows[strconv.Itoa(b.PID)].TerminalID, "GATE:go ;; SAY:answer of b")
			b.Release(t, "go") // the later one ends first
			waitCallback(t, c, second.TurnID, "delivered")
			a.Release(t, "go")
			waitCallback(t, c, first.TurnID, "delivered")
			d := w.host.Deliveries()
			if len(d) != 2 || d[0].Body != "answer of b" || d[1].Body != "answer of a" {
				t.Errorf("%+v", d)
			}
			a.typedOnce("GATE:go ;; SAY:answer of a")
			b.typedOnce("GATE:go ;; SAY:answer of b")
		})
	}
}

func TestAnIdleTerminalThatTakesNoTaskSaysWhy(t *testing.T) { // H5 state 3
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	idle(t, c)
	w.tmux.Tmux("copy-mode", "-t", p.ID)
	var r row
	faketmux.Wait(t, "the mode in the list", func() bool { r = list(t, c).Terminals[0]; return r.Actions["send"].Tool == "" }, func() string { return dump(r) })
	if r.Reason == "" {
		t.Errorf("no reason: %s", dump(r))
	}
	p.untouched()
}

func TestASessionTargetIsStrict(t *testing.T) { // spec part 2.10, case 42
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	type inSession struct {
		sent
		SessionID string `json:"session_id"`
	}
	var first, second inSession
	c.MustCall("agent_knock_knock_send", map[string]any{"terminal_id": idle(t, c).TerminalID, "request": "SAY:one"}).Decode(t, &first)
	waitCallback(t, c, first.TurnID, "delivered")
	idle(t, c)
	session := first.SessionID
	c.MustCall("agent_knock_knock_send", map[string]any{"session_id": session, "request": "SAY:two"}).Decode(t, &second)
	waitCallback(t, c, second.TurnID, "delivered")
	if second.SessionID != session || p.submits() != 2 {
		t.Errorf("%+v, %d submissions", second, p.submits())
	}
	w.tmux.Tmux("respawn-pane", "-k", "-t", p.ID, p.Command()) // another process, another thread
	p.WaitEvent(t, "ready", 2, settle)
	idle(t, c)
	res, err := c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"session_id": session, "request": "SAY:three"})
	if err != nil || !res.IsError || (res.Code() != "not_found" && res.Code() != "terminal_unusable") {
		t.Errorf("%v %q", err, res.Text)
	}
	res, err = c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"session_id": "session-20260101T000000-00000000", "request": "SAY:three"})
	if err != nil || res.Code() != "not_found" {
		t.Errorf("an unknown session: %v %q", err, res.Text)
	}
	if p.submits() != 2 {
		t.Errorf("%d submissions", p.submits())
	}
}

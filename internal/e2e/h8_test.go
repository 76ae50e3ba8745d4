package e2e

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// ask sends one task to the only agent and returns its Turn.
func ask(t *testing.T, w *world, p *pane, c *fakehost.Client, request string) string {
	t.Helper()
	got := send(t, c, readyPane(t, c, p), request)
	if got.Status != "async_pending" {
		t.Fatalf("%+v", got)
	}
	return got.TurnID
}

// heardOnce fails unless the Host heard exactly the bodies, once each, and the Turn shows
// one callback of the kind.
func heardOnce(t *testing.T, w *world, c *fakehost.Client, turn, kind string, bodies ...string) {
	t.Helper()
	s := waitCallback(t, c, turn, "delivered")
	if len(s.Callbacks) != 1 || s.Callbacks[0].Kind != kind {
		t.Errorf("want one callback, a %s: %s", kind, dump(s))
	}
	var heard []string
	for _, d := range w.host.Deliveries() {
		heard = append(heard, d.Body)
	}
	if len(heard) != len(bodies) {
		t.Fatalf("the Host heard %q, want %q", heard, bodies)
	}
	for i, body := range bodies {
		if !strings.Contains(heard[i], body) {
			t.Errorf("the Host heard %q, want %q", heard, bodies)
		}
	}
}

// agentWith starts a stand-in of the modes and waits until it takes input.
func agentWith(t *testing.T, w *world, kind string, modes ...string) *pane {
	t.Helper()
	p := w.agent(kind, modes...)
	p.WaitEvent(t, "ready", 1, settle)
	return p
}

// The screen turns idle, and 0.6 s later comes half of the record of the answer, 0.4 s
// later the rest, then records of other kinds and a sub-agent's answer. The answer before
// is in the same file.
func TestH8ALateRecordGivesTheAnswerOfThisTurnOnce(t *testing.T) { // H8 a, E01, E02
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			modes := []string{"late-flush=600ms+400ms"}
			if kind == standin.Claude {
				modes = append(modes, "sidechain")
			}
			p := agentWith(t, w, kind, modes...)
			c := w.start()
			heardOnce(t, w, c, ask(t, w, p, c, "SAY:ANSWER-1"), "completion", "ANSWER-1")
			heardOnce(t, w, c, ask(t, w, p, c, "SAY:ANSWER-2 日本"), "completion", "ANSWER-1", "ANSWER-2 日本")
			for _, d := range w.host.Deliveries() {
				if d.Body != "ANSWER-1" && d.Body != "ANSWER-2 日本" {
					t.Errorf("the Host heard %q", d.Body)
				}
			}
		})
	}
}

// Without the record of the end nothing is done, however idle the screen looks; the
// deadline ends the wait.
func TestH8AnAnswerThatNeverComesIsNeverDoneAndStallsAtTheDeadline(t *testing.T) { // H8 b
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := agentWith(t, w, kind, "late-flush=never")
			c := w.start()
			var got sent
			c.MustCall("agent_knock_knock_send", map[string]any{"terminal_id": readyPane(t, c, p), "request": "SAY:lost",
				"agentTimeoutMinutes": 0.1, "agentHardTimeoutMinutes": 0.15}).Decode(t, &got)
			p.WaitEvent(t, "end", 1, settle)
			if s := statusOf(t, c, got.TurnID); s.Turn.Status != "waiting_for_agent" {
				t.Errorf("with an idle screen and no record: %s", dump(s))
			}
			s := waitStatus(t, c, got.TurnID, "stalled")
			heardOnce(t, w, c, got.TurnID, "stalled", got.TurnID)
			if strings.Contains(w.host.Deliveries()[0].Body, "lost") || s.Turn.Reason == "" {
				t.Errorf("%s", dump(s))
			}
		})
	}
}

func TestH8AnAbortedTurnIsInterruptedOnce(t *testing.T) { // H8 c, E03
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := agentWith(t, w, kind)
			c := w.start()
			id := ask(t, w, p, c, "SAY:first")
			waitCallback(t, c, id, "delivered")
			id = ask(t, w, p, c, "STREAM:200@200 ;; SAY:never")
			p.WaitText("chunk 2 of 200")
			w.tmux.Tmux("send-keys", "-t", p.ID, "Escape") // the human
			p.WaitEvent(t, "interrupt", 1, settle)
			heardOnce(t, w, c, id, "interrupted", "first", "interrupted")
			if s := statusOf(t, c, id); s.Turn.Status != "failed" {
				t.Errorf("%s", dump(s))
			}
		})
	}
}

// Claude Code takes an interrupted prompt back into its composer when nothing was said yet,
// and records no end at all.
func TestH8AnInterruptionWithoutAnyRecordKeepsNoTerminal(t *testing.T) { // H8 c, E03
	t.Parallel()
	w := newWorld(t, nil)
	p := agentWith(t, w, standin.Claude)
	c := w.start()
	id := ask(t, w, p, c, "SLEEP:600 ;; SAY:never")
	w.tmux.Tmux("send-keys", "-t", p.ID, "Escape") // the human
	p.WaitEvent(t, "interrupt", 1, settle)
	s := waitCallback(t, c, id, "delivered")
	if s.Turn.Status == "idle" || s.Turn.Status == "waiting_for_agent" || len(s.Callbacks) != 1 {
		t.Errorf("%s", dump(s))
	}
}

// The end of another turn stands in the same file, before ours.
func TestH8TheEndOfAnotherTurnIsNotOurs(t *testing.T) { // H8 d
	t.Parallel()
	w := newWorld(t, nil)
	p := agentWith(t, w, standin.Codex, "foreign-turn", "late-flush=300ms")
	c := w.start()
	id := ask(t, w, p, c, "SAY:ours")
	heardOnce(t, w, c, id, "completion", "ours")
	if d := w.host.Deliveries()[0]; d.Body != "ours" {
		t.Errorf("the Host heard %q", d.Body)
	}
}

// The agent dies right before or right after the record of its end.
func TestH8ADeadAgentIsDoneOrStalledByWhatItsRecordsSay(t *testing.T) { // H8 e, E09
	for _, kind := range []string{standin.Codex, standin.Claude} {
		for at, want := range map[string][2]string{ // status and kind
			"accepted": {"stalled", "stalled"}, // before a word
			"answer":   {"stalled", "stalled"}, // before the answer is recorded
			"final":    {"stalled", "stalled"}, // the answer is recorded, the end is not
			"end":      {"idle", "completion"}, // both are
		} {
			t.Run(kind+" dies at "+at, func(t *testing.T) {
				t.Parallel()
				if kind == standin.Claude && at == "final" {
					want = [2]string{"idle", "completion"} // its answer says itself that it ends the turn
				}
				w := newWorld(t, nil)
				p := agentWith(t, w, kind, "die="+at)
				c := w.start()
				got := send(t, c, readyPane(t, c, p), "SLEEP:0.3 ;; SAY:last words")
				s := waitStatus(t, c, got.TurnID, want[0])
				body := "last words"
				if want[0] == "stalled" {
					body = got.TurnID
				}
				heardOnce(t, w, c, got.TurnID, want[1], body)
				if want[0] == "stalled" && !strings.Contains(s.Turn.Reason, "ended") {
					t.Errorf("the reason is %q", s.Turn.Reason)
				}
			})
		}
	}
}

// A complete line that cannot be read stands before the answer: what follows it may be
// anything, so nothing is guessed, and the Host hears why at the deadline.
func TestH8ABrokenRecordIsTroubleAndNoGuess(t *testing.T) { // H8 f
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := agentWith(t, w, kind, "broken-record")
			c := w.start()
			var got sent
			c.MustCall("agent_knock_knock_send", map[string]any{"terminal_id": readyPane(t, c, p), "request": "SAY:guess",
				"agentTimeoutMinutes": 0.1, "agentHardTimeoutMinutes": 0.15}).Decode(t, &got)
			waitStatus(t, c, got.TurnID, "stalled")
			heardOnce(t, w, c, got.TurnID, "stalled", got.TurnID)
			var s struct {
				Turn struct {
					Trouble string `json:"evidence_trouble"`
				} `json:"turn"`
			}
			c.MustCall("agent_knock_knock_status", map[string]any{"turn_id": got.TurnID}).Decode(t, &s)
			if s.Turn.Trouble == "" || strings.Contains(w.host.Deliveries()[0].Body, "guess") {
				t.Errorf("trouble %q, body %q", s.Turn.Trouble, w.host.Deliveries()[0].Body)
			}
		})
	}
}

package e2e

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// What becomes of a callback is no business of the Turn, and the other way round.
func TestACallbackThatAlwaysFailsKeepsNoTurnBusyAndNoQuestionUnanswerable(t *testing.T) { // C06
	t.Parallel()
	for mode, status := range map[fakehost.Mode]string{fakehost.Crash: "uncertain", fakehost.Reject: "failed", fakehost.Retry: "pending"} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.host.SetMode(mode)
			p := w.agent(standin.Codex)
			c := w.start()
			first := send(t, c, readyPane(t, c, p), "RUN:touch x ;; SAY:one")
			waitStatus(t, c, first.TurnID, "waiting_for_controller")
			w.host.WaitDeliveries(1, settle)
			w.tmux.Tmux("send-keys", "-t", p.ID, "y") // the question can still be answered
			waitStatus(t, c, first.TurnID, "idle")
			second := send(t, c, readyPane(t, c, p), "SAY:two") // and the next task goes in
			waitStatus(t, c, second.TurnID, "idle")
			w.host.WaitDeliveries(2, settle)
			waitCallback(t, c, second.TurnID, status)
			if n := p.submits(); n != 2 {
				t.Errorf("%d submissions", n)
			}
		})
	}
}

// A question that is retried would hold back the answer of its Turn for minutes.
func TestAnUnheardQuestionDoesNotHoldBackTheAnswer(t *testing.T) { // spec case 50
	t.Parallel()
	w := newWorld(t, nil)
	w.host.SetMode(fakehost.Retry)
	p := w.agent(standin.Claude)
	c := w.start()
	got := send(t, c, readyPane(t, c, p), "RUN:touch x ;; SAY:made it")
	waitStatus(t, c, got.TurnID, "waiting_for_controller")
	w.host.WaitDeliveries(1, settle)
	faketmux.Wait(t, "the end of the first attempt", func() bool {
		s := statusOf(t, c, got.TurnID)
		return s.Callbacks[0].Status == "pending" && s.Callbacks[0].Attempts == 1
	}, func() string { return dump(statusOf(t, c, got.TurnID)) })
	w.host.SetMode(fakehost.Accept)
	w.tmux.Tmux("send-keys", "-t", p.ID, "1") // the human
	s := waitCallback(t, c, got.TurnID, "delivered")
	if len(s.Callbacks) != 2 || s.Callbacks[0].Status != "superseded" || s.Callbacks[0].Attempts != 1 {
		t.Errorf("%s", dump(s))
	}
	if d := w.host.Deliveries(); len(d) != 2 || d[1].Body != "made it" {
		t.Errorf("%+v", d)
	}
}

// The attempts of one delivery carry the same ids; the pause before the second is 5 s
// whether or not a Bridge restarts in it.
func TestARetryKeepsItsTimeAndItsIdsAndARestartResumesIt(t *testing.T) { // spec cases 30, 36
	for name, restart := range map[string]func(*testing.T, *world, *fakehost.Client) *fakehost.Client{
		"no restart": func(_ *testing.T, _ *world, c *fakehost.Client) *fakehost.Client { return c },
		"an orderly restart": func(t *testing.T, w *world, c *fakehost.Client) *fakehost.Client {
			if code := c.Close(settle); code != 0 {
				t.Errorf("exit %d", code)
			}
			return w.start()
		},
		"a killed Bridge": func(_ *testing.T, w *world, c *fakehost.Client) *fakehost.Client {
			c.Kill()
			return w.start()
		},
		"a Bridge that starts after the due time": func(t *testing.T, w *world, c *fakehost.Client) *fakehost.Client {
			c.Kill()
			due := time.Now().Add(5 * time.Second)
			faketmux.Wait(t, "the due time", func() bool { return time.Now().After(due) }, func() string { return "" })
			if n := len(w.host.Deliveries()); n != 1 {
				t.Errorf("%d attempts without a Bridge", n)
			}
			return w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.host.SetMode("retry,accept")
			p := w.agent(standin.Codex)
			c := w.start()
			got := send(t, c, readyPane(t, c, p), "SAY:again")
			var s status
			faketmux.Wait(t, "the end of the first attempt", func() bool {
				s = statusOf(t, c, got.TurnID)
				return len(s.Callbacks) == 1 && s.Callbacks[0].Status == "pending" && s.Callbacks[0].Attempts == 1
			}, func() string { return dump(s) })
			if s.Turn.Status != "idle" || s.Callbacks[0].LastError == "" {
				t.Errorf("after the first attempt: %s", dump(s))
			}
			c = restart(t, w, c)
			s = waitCallback(t, c, got.TurnID, "delivered")
			if s.Callbacks[0].Attempts != 2 {
				t.Errorf("%s", dump(s))
			}
			d := w.host.Deliveries()
			if len(d) != 2 || d[0].Delivery != d[1].Delivery || d[0].Message != d[1].Message || d[0].Idem != d[1].Idem || d[0].SHA256 != d[1].SHA256 {
				t.Fatalf("the attempts: %+v", d)
			}
			if gap := d[1].T.Sub(d[0].T); gap < 4500*time.Millisecond {
				t.Errorf("the second attempt came %v after the first", gap)
			}
		})
	}
}

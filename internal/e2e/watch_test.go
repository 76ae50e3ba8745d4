package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// watched is what the tests read of a Watch.
type watched struct {
	ID         string `json:"watch_id"`
	Status     string `json:"status"`
	Mode       string `json:"watch_mode"`
	Confidence string `json:"confidence"`
	Callback   struct {
		Pending    int `json:"pending"`
		Delivered  int `json:"delivered"`
		Failed     int `json:"failed"`
		Superseded int `json:"superseded"`
	} `json:"callback"`
	Settlement *struct {
		Reason string `json:"reason_code"`
		Detail string `json:"detail"`
		Text   string `json:"completion_text"`
	} `json:"settlement"`
	Actions map[string]struct {
		Tool string `json:"tool"`
	} `json:"available_actions"`
}

// human types a line into a pane as a person does, past the product, and presses Enter
// until the agent has taken it: right behind typed text an Enter is a part of the text.
func human(t testing.TB, w *world, p *pane, text string) {
	t.Helper()
	taken := func() (n int) {
		for _, e := range p.EventLog(t) {
			if e.Ev == "submit" || e.Ev == "slash" {
				n++
			}
		}
		return n
	}
	before := taken()
	w.tmux.Tmux("send-keys", "-t", p.ID, "-l", "--", text)
	p.WaitText(text[max(0, len(text)-20):])
	pressed := time.Time{}
	faketmux.Wait(t, "the agent to take "+text, func() bool {
		if taken() == before && time.Since(pressed) > 400*time.Millisecond {
			pressed = time.Now()
			w.tmux.Tmux("send-keys", "-t", p.ID, "Enter")
		}
		return taken() > before
	}, func() string { return dump(p.EventLog(t)) })
}

// offered waits until the only terminal offers an action, and returns its row.
func offered(t testing.TB, c *fakehost.Client, action string) row {
	t.Helper()
	var last listing
	faketmux.Wait(t, "the action "+action, func() bool {
		last = list(t, c)
		return len(last.Terminals) == 1 && last.Terminals[0].Actions[action].Tool != ""
	}, func() string { return dump(last) })
	return last.Terminals[0]
}

// startWatch watches the task that runs in the only terminal, with the arguments that list
// offers.
func startWatch(t testing.TB, c *fakehost.Client, more map[string]any) watched {
	t.Helper()
	action := offered(t, c, "watch").Actions["watch"]
	args := action.Arguments
	for k, v := range more {
		args[k] = v
	}
	var out struct {
		Watch watched `json:"watch"`
	}
	c.MustCall(action.Tool, args).Decode(t, &out)
	if out.Watch.Status != "active" {
		t.Fatalf("%s", dump(out))
	}
	return out.Watch
}

func watchOf(t testing.TB, c *fakehost.Client, id string) watched {
	t.Helper()
	var out struct {
		Watch watched `json:"watch"`
	}
	c.MustCall("agent_knock_knock_status", map[string]any{"watch_id": id}).Decode(t, &out)
	return out.Watch
}

// waitWatch waits until a Watch is as ok says.
func waitWatch(t testing.TB, c *fakehost.Client, id, what string, ok func(watched) bool) watched {
	t.Helper()
	var v watched
	faketmux.Wait(t, "a watch "+what, func() bool { v = watchOf(t, c, id); return ok(v) }, func() string { return dump(v) })
	return v
}

func settledAs(status string) func(watched) bool {
	return func(v watched) bool { return v.Status == status && v.Callback.Delivered > 0 && v.Callback.Pending == 0 }
}

// refusedWith calls a tool that must fail with the code.
func refusedWith(t testing.TB, c *fakehost.Client, tool string, args map[string]any, code string) {
	t.Helper()
	res, err := c.Call(t.Context(), tool, args)
	if err != nil || res.Code() != code {
		t.Errorf("%s gave %s, %v; want %s", tool, dump(res), err, code)
	}
}

// unchanged fails if the agent read anything since before.
func (p *pane) unchanged(before []byte) {
	p.t.Helper()
	if now := p.Input(p.t).Raw; !bytes.Equal(now, before) {
		p.t.Errorf("the agent read %q in the life of a Watch", now[len(before):])
	}
}

// holds reports whether any file below dir holds the text.
func holds(t testing.TB, dir, text string) (where string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			where = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}

func TestCase54AWatchLooksAtATaskOfAPersonAndNeverTypes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := w.agent(kind)
			c := w.start()
			r := idle(t, c)
			refusedWith(t, c, "agent_knock_knock_watch", map[string]any{"terminal_id": r.TerminalID}, "terminal_idle")
			human(t, w, p, "GATE:go ;; SAY:made of canarywords")
			before := offeredInput(t, c, p)
			v := startWatch(t, c, nil)
			refusedWith(t, c, "agent_knock_knock_watch", map[string]any{"terminal_id": r.TerminalID}, "active_watch_conflict")
			if row := offered(t, c, "unwatch"); row.Actions["watch"].Tool != "" || row.Actions["send"].Tool != "" {
				t.Errorf("%s", dump(row))
			}
			var l struct {
				Watches []watched `json:"watches"`
			}
			c.MustCall("agent_knock_knock_list", map[string]any{}).Decode(t, &l)
			if len(l.Watches) != 1 || l.Watches[0].ID != v.ID || l.Watches[0].Actions["unwatch"].Tool == "" {
				t.Errorf("%s", dump(l))
			}
			if where := holds(t, w.host.Store, "canarywords"); where != "" {
				t.Errorf("the person's prompt is in %s", where)
			}
			waitChild(t, c.PID(), "akk-monitor")
			var first, again struct {
				Watch watched `json:"watch"`
			}
			c.MustCall("agent_knock_knock_unwatch", map[string]any{"watch_id": v.ID}).Decode(t, &first)
			waitWatch(t, c, v.ID, "cancelled", settledAs("cancelled"))
			c.MustCall("agent_knock_knock_unwatch", map[string]any{"watch_id": v.ID}).Decode(t, &again)
			if first.Watch.Status != "cancelled" || again.Watch.Settlement == nil || again.Watch.Settlement.Reason != "manual_cancel" {
				t.Errorf("%s %s", dump(first), dump(again))
			}
			faketmux.Wait(t, "the end of the monitor", func() bool { return len(children(t, c.PID(), "akk-monitor")) == 0 }, func() string { return "it runs" })
			p.Release(t, "go")
			idle(t, c)
			if d := w.host.Deliveries(); len(d) != 1 || !strings.Contains(d[0].Body, v.ID) {
				t.Errorf("%+v", d)
			}
			p.unchanged(before)
		})
	}
}

// offeredInput is what the agent has read once its task can be watched.
func offeredInput(t testing.TB, c *fakehost.Client, p *pane) []byte {
	t.Helper()
	offered(t, c, "watch")
	return p.Input(t).Raw
}

// The Bridge is down while the task ends and the person moves on to another thread; the
// next Bridge finds the end in the log of the task.
func TestCase55AnEndInTheLogCountsAlthoughThePaneMovedOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := w.agent(kind)
			c := w.start()
			idle(t, c)
			human(t, w, p, "GATE:go ;; SAY:the answer")
			v := startWatch(t, c, nil)
			c.Kill()
			p.Release(t, "go")
			p.WaitText("the answer")
			p.WaitEvent(t, "ready", 1, settle)
			waitIdleLog(t, p, kind)
			human(t, w, p, "/clear")
			before := p.Input(t).Raw
			next := w.start()
			got := waitWatch(t, next, v.ID, "completed", settledAs("completed"))
			if got.Settlement.Reason != "anchored_task_completed" || got.Settlement.Text != "the answer" {
				t.Errorf("%s", dump(got))
			}
			if d := w.host.Deliveries(); len(d) != 1 || !strings.Contains(d[0].Body, "the answer") {
				t.Errorf("%+v", d)
			}
			p.unchanged(before)
		})
	}
}

// waitIdleLog waits until the end of the turn is on disk.
func waitIdleLog(t testing.TB, p *pane, kind string) {
	t.Helper()
	end := map[string]string{standin.Codex: `"task_complete"`, standin.Claude: `"turn_duration"`}[kind]
	faketmux.Wait(t, "the end of the turn in the log", func() bool {
		for _, path := range p.Logs() {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(end)) {
				return true
			}
		}
		return false
	}, func() string { return dump(p.Logs()) })
}

func TestCase55AReplacedLogInvalidatesAndAnInterruptedTaskFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   string
		act    func(*world, *pane)
		status string
		reason string
	}{
		"replaced codex":   {standin.Codex, replaceLog, "invalidated", "task_anchor_invalidated"},
		"replaced claude":  {standin.Claude, replaceLog, "invalidated", "task_anchor_invalidated"},
		"escape in codex":  {standin.Codex, escape, "failed", "anchored_task_failed"},
		"killed claude":    {standin.Claude, killAgent, "invalidated", "terminal_process_unavailable"},
		"respawned codex":  {standin.Codex, respawn, "invalidated", "terminal_process_unavailable"},
		"the tmux is gone": {standin.Codex, func(w *world, _ *pane) { w.tmux.Kill() }, "invalidated", "terminal_process_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := w.agent(c.kind)
			b := w.start()
			idle(t, b)
			human(t, w, p, "GATE:never ;; SAY:x")
			v := startWatch(t, b, nil)
			c.act(w, p)
			got := waitWatch(t, b, v.ID, c.status, settledAs(c.status))
			if got.Settlement.Reason != c.reason || len(w.host.Deliveries()) != 1 {
				t.Errorf("%s\n%+v", dump(got), w.host.Deliveries())
			}
		})
	}
}

func replaceLog(_ *world, p *pane) {
	p.t.Helper()
	for _, path := range p.Logs() {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+".new", b, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func escape(w *world, p *pane)     { w.tmux.Tmux("send-keys", "-t", p.ID, "Escape") }
func killAgent(_ *world, p *pane)  { kill(p.t, p.PID, syscall.SIGKILL) }
func respawn(w *world, p *pane)    { w.tmux.Tmux("respawn-pane", "-k", "-t", p.ID, "cat") }
func humanSays(w *world, p *pane)  { w.tmux.Tmux("send-keys", "-t", p.ID, approvalKey[p.Agent]) }
func runTask(marker string) string { return "RUN:touch x ;; SAY:" + marker }

// approvalKey is what a person presses to approve once.
var approvalKey = map[string]string{standin.Codex: "y", standin.Claude: "1"}

func TestCase56AnUnheardApprovalIsSupersededByTheEnd(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.host.SetMode(fakehost.Retry)
			p := w.agent(kind)
			c := w.start()
			idle(t, c)
			human(t, w, p, "GATE:go ;; "+runTask("made it"))
			v := startWatch(t, c, nil)
			p.Release(t, "go")
			d := w.host.WaitDeliveries(1, settle)
			if !strings.Contains(d[0].Body, "may not approve") || !strings.Contains(d[0].Body, v.ID) {
				t.Errorf("%q", d[0].Body)
			}
			waitWatch(t, c, v.ID, "with a pending approval", func(v watched) bool { return v.Callback.Pending == 1 })
			// What is shown cannot be approved through us.
			if row := list(t, c).Terminals[0]; row.Actions["unwatch"].Tool == "" {
				t.Errorf("%s", dump(row))
			}
			before := p.Input(t).Raw
			w.host.SetMode(fakehost.Accept)
			humanSays(w, p)
			got := waitWatch(t, c, v.ID, "completed", settledAs("completed"))
			all := w.host.Deliveries()
			last := all[len(all)-1]
			if got.Callback.Superseded+got.Callback.Delivered != 2 || !strings.Contains(last.Body, "made it") {
				t.Errorf("%s\n%+v", dump(got), all)
			}
			after := p.Input(t).Raw
			if len(after) != len(before)+1 { // the person's one key
				t.Errorf("the agent read %q", after[len(before):])
			}
		})
	}
}

func TestCase57AWatchOfAnOlderProfileRevisionFailsClosedAndOfAnotherSessionWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*world)
		settled func(watched) bool
	}{
		"revision": {func(w *world) {
			w.host.Profile = fakehost.WriteProfile(w.t, w.host.Dir, w.host.Callback, &fakehost.ProfileOptions{Revision: "2"})
		}, func(v watched) bool { return v.Callback.Failed == 1 }},
		"session": {func(w *world) {
			for i, kv := range w.host.Env {
				if strings.HasPrefix(kv, fakehost.EnvSession+"=") {
					w.host.Env[i] = fakehost.EnvSession + "=another-session"
				}
			}
		}, func(v watched) bool { return v.Callback.Pending == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := w.agent(standin.Codex)
			first := w.start()
			idle(t, first)
			human(t, w, p, "GATE:go ;; SAY:for the old one only")
			v := startWatch(t, first, nil)
			first.Kill()
			c.change(w)
			next := w.start()
			waitChild(t, next.PID(), "akk-monitor") // it watches on
			p.Release(t, "go")
			got := waitWatch(t, next, v.ID, "completed, not delivered", func(v watched) bool { return v.Status == "completed" && c.settled(v) })
			if d := w.host.Deliveries(); len(d) != 0 {
				t.Errorf("%s\n%+v", dump(got), d)
			}
			human(t, w, p, "GATE:again ;; SAY:for the new one") // a new Watch is heard
			second := startWatch(t, next, nil)
			p.Release(t, "again")
			waitWatch(t, next, second.ID, "completed", settledAs("completed"))
			if d := w.host.Deliveries(); len(d) != 1 || !strings.Contains(d[0].Body, "for the new one") {
				t.Errorf("%+v", d)
			}
		})
	}
}

// H3, for a Watch.
func TestAWatchSurvivesItsKilledMonitorAndItsKilledBridgeAndReportsOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			p := w.agent(kind)
			c := w.start()
			idle(t, c)
			human(t, w, p, "GATE:go ;; SAY:only once")
			v := startWatch(t, c, nil)
			before := p.Input(t).Raw
			old := waitChild(t, c.PID(), "akk-monitor")
			kill(t, old, syscall.SIGKILL)
			fresh := waitChild(t, c.PID(), "akk-monitor", old)
			family := descendants(t, c.PID())
			c.Kill()
			waitGone(t, family)
			next := w.start()
			waitChild(t, next.PID(), "akk-monitor", old, fresh)
			p.Release(t, "go")
			waitWatch(t, next, v.ID, "completed", settledAs("completed"))
			next.Close(settle)
			last := w.start()
			if got := watchOf(t, last, v.ID); got.Status != "completed" || got.Callback.Delivered != 1 {
				t.Errorf("%s", dump(got))
			}
			if d := w.host.Deliveries(); len(d) != 1 || !strings.Contains(d[0].Body, "only once") {
				t.Errorf("%+v", d)
			}
			p.unchanged(before)
		})
	}
}

func TestATerminalOfOursIsNotWatchedAndAWatchedOneTakesALaterTask(t *testing.T) { // spec part 10.6
	t.Parallel()
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	ours := working(t, w, c, "ours")
	r := list(t, c).Terminals[0]
	if r.Actions["watch"].Tool != "" {
		t.Errorf("%s", dump(r))
	}
	refusedWith(t, c, "agent_knock_knock_watch", map[string]any{"terminal_id": r.TerminalID}, "terminal_managed")
	p.Release(t, "go")
	waitCallback(t, c, ours.TurnID, "delivered")
	human(t, w, p, "GATE:two ;; SAY:a person's")
	v := startWatch(t, c, map[string]any{"mode": "terminal_activity", "hardTimeoutMinutes": 30})
	if v.Confidence != "best_effort" {
		t.Errorf("%s", dump(v))
	}
	p.Release(t, "two")
	got := waitWatch(t, c, v.ID, "completed", settledAs("completed"))
	if got.Settlement.Reason != "terminal_became_idle" {
		t.Errorf("%s", dump(got))
	}
	later := send(t, c, idle(t, c).TerminalID, "SAY:later")
	waitCallback(t, c, later.TurnID, "delivered")
}

func TestAWatchEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := w.agent(standin.Claude)
	c := w.start()
	idle(t, c)
	human(t, w, p, "GATE:never ;; SAY:x")
	v := startWatch(t, c, map[string]any{"hardTimeoutMinutes": 0.02})
	got := waitWatch(t, c, v.ID, "timed out", settledAs("timed_out"))
	if got.Settlement.Reason != "deadline_elapsed" {
		t.Errorf("%s", dump(got))
	}
	startWatch(t, c, nil) // the task can be watched again
}

//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// TestRealAgentsThroughEveryTool is one Host's day with one real agent: every tool of the
// catalogue is called through the Bridge, as the list offers it, and succeeds.
func TestRealAgentsThroughEveryTool(t *testing.T) { // spec part 2
	journey(t, []realagent.Mode{realagent.ClaudePlain, realagent.CodexEmbedded}, []step{
		{"the agent's own status panel is read", realInspected},
		{"a model is chosen from what is offered", realModelChosen},
		{"a command is approved", realApproved},
		{"a command is rejected", realRejected},
		{"an edit is rejected", realEditRejected},
		{"a running task is cancelled", realCancelBeforeTheAnswer},
		{"a question in words is answered in the same turn", realResponded},
		{"a stalled task is given more time", realRenewed},
		{"a stalled task is given up", realClosed},
		{"a callback that the Host refused to take is sent again", realCallbackRetried},
		{"a person's task is watched to its end", realWatched},
		{"a watch is ended before its task", realUnwatched},
		{"a new thread, and back to the old one", realThreadsChanged},
		{"a person switched the thread, and the session is untied", realBindingReconciled},
		{"a questionnaire is answered", realQuestionnaire}, // last: it leaves Codex in its Plan mode
	}, func(r *real) {
		var want []string
		for _, name := range catalogue.Names {
			want = append(want, catalogue.Prefix+name)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, r.c.Succeeded()); diff != "" {
			r.t.Errorf("tools that were not called (-) :\n%s", diff)
		}
	})
}

// use calls the tool of an action with the arguments that the list offers for it now, and
// more.
func (r *real) use(action string, more map[string]any, into any) {
	r.t.Helper()
	args := r.offered(action)
	for k, v := range more {
		args[k] = v
	}
	res, err := r.c.Call(r.t.Context(), catalogue.Prefix+action, args)
	if err != nil || res.IsError {
		r.t.Fatalf("%s %v: %v %s\nscreen:\n%s", action, args, err, res.Text, r.screen())
	}
	res.Decode(r.t, into)
}

func realInspected(r *real) {
	var got struct {
		Status string `json:"status"`
		Thread string `json:"native_thread_id"`
		Native struct {
			Fields []struct{ Name, Value string } `json:"fields"`
		} `json:"native_status"`
	}
	r.idle()
	r.use("native_inspect", nil, &got)
	if got.Status != "observed" || len(got.Native.Fields) < 3 || got.Thread != r.idle().Thread {
		r.t.Errorf("%s", dump(got))
	}
}

type setting struct {
	Model  string `json:"model"`
	Effort string `json:"reasoning_effort"`
}

func realModelChosen(r *real) {
	// Case 60: what was not shown cannot be chosen, and no key is pressed for it.
	screen := r.screen()
	res, err := r.c.Call(r.t.Context(), "agent_knock_knock_set_model", map[string]any{"terminal_id": r.idle().TerminalID, "model": "sonnet", "reasoning_effort": "low"})
	if err != nil || !res.IsError || r.screen() != screen {
		r.t.Errorf("without options: %v %s\n%s", err, res.JSON, r.screen())
	}
	var options struct {
		Status    string   `json:"status"`
		Effective *setting `json:"effective"`
		Models    []struct {
			Model   string   `json:"model"`
			Efforts []string `json:"reasoning_efforts"`
		} `json:"models"`
	}
	// The walk through the picker has seven seconds. On a machine that others use it may run
	// out, says so, and leaves the terminal at rest: a Host looks and asks again.
	for range 3 {
		r.use("model_options", nil, &options)
		if options.Status == "observed" {
			break
		}
		r.idle()
	}
	if options.Status != "observed" || options.Effective == nil {
		r.t.Fatalf("%s\nscreen:\n%s", dump(options), r.screen())
	}
	var want setting
	for _, m := range options.Models {
		if m.Model != options.Effective.Model && len(m.Efforts) > 0 {
			want = setting{m.Model, m.Efforts[0]}
		}
	}
	r.idle()
	var got struct {
		Outcome   string   `json:"outcome"`
		Effective *setting `json:"effective"`
	}
	r.use("set_model", map[string]any{"model": want.Model, "reasoning_effort": want.Effort}, &got)
	if got.Outcome != "changed" || got.Effective == nil || *got.Effective != want {
		r.t.Errorf("want %v, got %s\nscreen:\n%s", want, dump(got), r.screen())
	}
	r.idle()
}

// stalls sends a task that nobody answers and waits until its time is over.
func (r *real) stalls(gate string) sent {
	r.t.Helper()
	var got sent
	r.c.MustCall("agent_knock_knock_send", map[string]any{"terminal_id": r.idle().TerminalID, "request": "GATE:" + gate + " ;; SAY:late",
		"agentTimeoutMinutes": 0.02}).Decode(r.t, &got)
	r.reaches(got.TurnID, "stalled")
	return got
}

func realRenewed(r *real) {
	got := r.stalls("renew")
	var renewed struct {
		Renewed bool   `json:"renewed"`
		Status  string `json:"turn_status"`
	}
	r.use("renew", map[string]any{"minutes": 30}, &renewed)
	if !renewed.Renewed || renewed.Status != "waiting_for_agent" {
		r.t.Errorf("%s", dump(renewed))
	}
	r.model.Release("renew")
	s, bodies := r.knocks(got.TurnID, 2) // that it stalled, and the answer
	if s.Turn.Status != "idle" || bodies[1] != "late" {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
}

func realClosed(r *real) {
	got := r.stalls("close")
	var closed struct {
		Closed  bool `json:"closed"`
		Stopped bool `json:"coding_agent_stopped"`
	}
	r.use("close", map[string]any{"reason": "nobody waits for it"}, &closed)
	if !closed.Closed || closed.Stopped {
		r.t.Errorf("%s", dump(closed))
	}
	r.reaches(got.TurnID, "closed")
	r.model.Release("close")
	r.idle()
}

func realCallbackRetried(r *real) {
	r.host.SetMode(fakehost.Retry)
	got := r.send("SAY:heard at the second try")
	var s status
	r.until("a refused attempt", func() bool {
		s = statusOf(r.t, r.c, got.TurnID)
		return len(s.Callbacks) == 1 && s.Callbacks[0].Attempts >= 1 && s.Callbacks[0].Status == "pending"
	}, func() string { return dump(s) })
	r.host.SetMode(fakehost.Accept)
	var retried struct {
		Delivered bool `json:"delivered"`
	}
	r.c.MustCall("agent_knock_knock_retry_callback", map[string]any{"turn_id": got.TurnID}).Decode(r.t, &retried)
	if !retried.Delivered {
		r.t.Errorf("%s", dump(retried))
	}
	d := r.host.Deliveries() // both tries, under one identity
	last, first := d[len(d)-1], d[len(d)-2]
	if last.Delivery != first.Delivery || last.Idem != first.Idem || last.Body != "heard at the second try" {
		r.t.Errorf("%+v", d[len(d)-2:])
	}
	if s = statusOf(r.t, r.c, got.TurnID); s.Callbacks[0].Status != "delivered" || s.Callbacks[0].Attempts != 2 {
		r.t.Errorf("%s", dump(s))
	}
	r.idle()
}

type watchedTask struct {
	Watch struct {
		ID     string `json:"watch_id"`
		Status string `json:"status"`
	} `json:"watch"`
}

// personsTask is a task that the person at the terminal starts; it returns with the task
// running.
func (r *real) personsTask(gate string) watchedTask {
	r.t.Helper()
	r.enter("GATE:" + gate + " ;; SAY:done for the person")
	var w watchedTask
	r.use("watch", nil, &w)
	if w.Watch.Status != "active" {
		r.t.Fatalf("%s", dump(w))
	}
	return w
}

func realWatched(r *real) {
	before := len(r.host.Deliveries())
	w := r.personsTask("watched")
	r.model.Release("watched")
	r.until("the end of the watch", func() bool {
		r.c.MustCall("agent_knock_knock_status", map[string]any{"watch_id": w.Watch.ID}).Decode(r.t, &w)
		return w.Watch.Status == "completed"
	}, func() string { return dump(w) })
	r.until("its callback", func() bool { return len(r.host.Deliveries()) == before+1 }, func() string { return dump(r.host.Deliveries()) })
	r.idle()
}

func realUnwatched(r *real) {
	w := r.personsTask("unwatched")
	var ended watchedTask
	r.c.MustCall("agent_knock_knock_unwatch", map[string]any{"watch_id": w.Watch.ID}).Decode(r.t, &ended)
	if ended.Watch.Status != "cancelled" {
		r.t.Errorf("%s", dump(ended))
	}
	r.model.Release("unwatched")
	r.idle()
}

type transition struct {
	Status string `json:"status"`
	Thread string `json:"native_thread_id"`
	Reason string `json:"reason"`
}

func realThreadsChanged(r *real) {
	first := r.idle().Thread
	var fresh, back transition
	r.use("new_thread", nil, &fresh)
	if fresh.Status != "committed" || fresh.Thread == first || r.idle().Thread != fresh.Thread {
		r.t.Fatalf("from %s: %s\nscreen:\n%s", first, dump(fresh), r.screen())
	}
	got := r.send("SAY:in the new thread")
	r.knocks(got.TurnID, 1)
	r.idle()
	var l struct {
		Threads []struct {
			Thread    string `json:"native_thread_id"`
			Resumable bool   `json:"resumable"`
		} `json:"threads"`
	}
	r.use("list_resumable_threads", nil, &l)
	found := false
	for _, row := range l.Threads {
		found = found || row.Thread == first && row.Resumable
	}
	if !found {
		r.t.Fatalf("%s is not in %s", first, dump(l))
	}
	r.c.MustCall("agent_knock_knock_resume_thread", map[string]any{"terminal_id": r.idle().TerminalID, "native_thread_id": first}).Decode(r.t, &back)
	if back.Status != "committed" || r.idle().Thread != first {
		r.t.Errorf("%s\nscreen:\n%s", dump(back), r.screen())
	}
}

// realBindingReconciled: the person begins a thread of their own; what the record says is
// untied without a key, and the terminal takes the next task.
func realBindingReconciled(r *real) {
	was := r.idle().Thread
	r.keys("-l", "/clear ")
	r.until("the person's command", r.shows("/clear"), r.screen)
	r.keys("Enter")
	r.until("another thread", func() bool {
		now := r.row()
		return now.Thread != was && now.Actions["reconcile_binding"].Tool != ""
	}, func() string { return dump(r.row()) })
	var got struct {
		Outcome string `json:"outcome"`
		Input   bool   `json:"terminal_input_sent"`
	}
	r.use("reconcile_binding", nil, &got)
	if got.Outcome != "detached_conflicting_binding" || got.Input {
		r.t.Errorf("%s", dump(got))
	}
	next := r.send("SAY:in the person's thread")
	if _, bodies := r.knocks(next.TurnID, 1); bodies[0] != "in the person's thread" {
		r.t.Errorf("%q", bodies)
	}
	r.idle()
}

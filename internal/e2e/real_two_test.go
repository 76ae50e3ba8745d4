//go:build e2e

package e2e

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// TestRealAgentsInOneDirectoryAreNeverSwapped sends to two panes of one directory and
// one home in the same moment (E06). Each answer must come back for its own Turn; a pane
// whose thread cannot be told must refuse, and then nothing of the task may be anywhere.
func TestRealAgentsInOneDirectoryAreNeverSwapped(t *testing.T) {
	for name, more := range map[string]realagent.Options{
		"embedded":              {Mode: realagent.CodexEmbedded},
		"daemon":                {Mode: realagent.CodexDaemon},
		"embedded, plain title": {Mode: realagent.CodexEmbedded, PlainTitle: true},
		"daemon, plain title":   {Mode: realagent.CodexDaemon, PlainTitle: true},
		"claude":                {Mode: realagent.ClaudePlain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, more.Mode, &more)
			realagent.Start(t, r.tmux.Socket(), more.Mode, r.model.URL(), &realagent.Options{Session: "second", Beside: r.agent})
			rows := r.two()
			if _, offered := rows[0].Actions["send"]; offered && rows[0].Thread == rows[1].Thread {
				t.Errorf("two panes show one thread and take tasks: %s", dump(rows))
			}
			tasks := []string{"alpha task GATE:both ;; SAY:alpha answer", "beta task GATE:both ;; SAY:beta answer"}
			answers := []string{"alpha answer", "beta answer"}
			got := r.atOnce(rows, tasks)
			r.model.Release("both")
			heard := 0
			for i, result := range got {
				if result.IsError && result.Code() == "terminal_unusable" && !more.PlainTitle {
					// An agent may be without its status file for a moment, beside another
					// that starts: a refusal is right then, and says to look again.
					r.unknown(tasks[i])
					r.two()
					result = r.atOnce(rows[i:i+1], tasks[i:i+1])[0]
				}
				if result.IsError {
					if result.Code() != "terminal_unusable" || !more.PlainTitle {
						t.Errorf("%q was refused: %s", tasks[i], result.Text)
					}
					r.unknown(tasks[i])
					continue
				}
				var s sent
				result.Decode(t, &s)
				after, bodies := r.knocks(s.TurnID, 1)
				heard++
				switch {
				case after.Turn.Status == "idle" && bodies[0] != answers[i]:
					t.Errorf("the Turn of %q got %q", tasks[i], bodies[0])
				case after.Turn.Status != "idle" && strings.Contains(bodies[0], "answer"):
					t.Errorf("%s: %q", dump(after), bodies[0])
				}
				if shows := r.tmux.Tmux("capture-pane", "-p", "-t", rows[i].Target); !strings.Contains(shows, answers[i]) || strings.Contains(shows, answers[1-i]) {
					t.Errorf("the pane of %q shows\n%s", tasks[i], shows)
				}
				r.once(tasks[i])
			}
			t.Logf("%d of 2 tasks were taken", heard)
			if n := len(r.host.Deliveries()); n != heard || heard == 0 && !more.PlainTitle {
				t.Errorf("%d callbacks for %d tasks", n, heard)
			}
			r.close()
		})
	}
}

// two waits for two agents at rest in the list, in the order of their sessions.
func (r *real) two() []row {
	r.t.Helper()
	var rows []row
	r.until("two agents in the list", func() bool {
		rows = list(r.t, r.c).Terminals
		return len(rows) == 2 && rows[0].Screen == "idle" && rows[1].Screen == "idle"
	}, func() string { return dump(rows) })
	return rows
}

// atOnce sends one task to each terminal in the same moment.
func (r *real) atOnce(rows []row, tasks []string) []fakehost.Result {
	r.t.Helper()
	out := make([]fakehost.Result, len(rows))
	errs := make([]error, len(rows))
	var wg sync.WaitGroup
	for i, row := range rows {
		wg.Go(func() {
			out[i], errs[i] = r.c.Call(r.t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": row.TerminalID, "request": tasks[i]})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// unknown fails if the task is anywhere.
func (r *real) unknown(task string) {
	r.t.Helper()
	if slices.Contains(r.prompts(), task) {
		r.t.Errorf("the refused task %q is in the agent's records", task)
	}
	for _, q := range r.model.Requests() {
		if strings.Contains(q.User, task) {
			r.t.Errorf("the refused task %q reached the model", task)
		}
	}
}

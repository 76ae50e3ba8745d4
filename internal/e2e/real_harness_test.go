//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// patience bounds each wait for a real agent. On a quiet machine everything here takes a
// second or two.
const patience = 90 * time.Second

// real is a world with one real agent in it, its model and a running Bridge.
type real struct {
	*world
	t     testing.TB
	model *fakemodel.Server
	agent *realagent.Agent
	c     *fakehost.Client
}

// newReal brings everything up and waits until the list shows the agent as idle.
func newReal(t testing.TB, mode realagent.Mode, more *realagent.Options) *real {
	t.Helper()
	realagent.Need(t)
	r := &real{world: newWorld(t, nil), t: t, model: fakemodel.Start(t)}
	r.agent = realagent.Start(t, r.tmux.Socket(), mode, r.model.URL(), more)
	r.c = r.start()
	return r
}

// step is one thing that happens to a real agent. It leaves the agent at rest.
type step struct {
	name string
	do   func(*real)
}

// journey brings an agent up once in each mode and takes it through the steps, in order.
// When one fails, the rest of this agent's steps would prove nothing and are left out. end,
// when set, judges the whole.
func journey(t *testing.T, modes []realagent.Mode, steps []step, end func(*real)) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newReal(t, mode, nil)
			for _, step := range steps {
				if !t.Run(step.name, func(t *testing.T) { step.do(r.on(t)) }) {
					t.Fatalf("the agent may not be at rest; screen:\n%s", r.screen())
				}
			}
			if end != nil {
				end(r.on(t))
			}
			r.on(t).close()
		})
	}
}

// everyMode is each way in which a real agent runs.
func everyMode() []realagent.Mode { return slices.Sorted(maps.Keys(shapes)) }

// on is r whose failures belong to the subtest t.
func (r *real) on(t testing.TB) *real {
	sub := *r
	sub.t = t
	return &sub
}

// until waits until cond holds; a failure shows the last state and the screen.
func (r *real) until(what string, cond func() bool, state func() string) {
	r.t.Helper()
	for end := time.Now().Add(patience); !cond(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited %v in vain for %s; last seen:\n%s\nscreen:\n%s", patience, what, state(), r.screen())
		}
	}
}

func (r *real) screen() string {
	out, err := r.tmux.Try("capture-pane", "-p", "-t", r.agent.PaneID)
	if err != nil {
		return err.Error()
	}
	return strings.TrimRight(out, "\n")
}

// keys are what the human at the terminal presses.
func (r *real) keys(keys ...string) {
	r.t.Helper()
	r.tmux.Tmux(append([]string{"send-keys", "-t", r.agent.PaneID}, keys...)...)
}

// row is the agent's row in the list now.
func (r *real) row() row {
	r.t.Helper()
	for _, t := range list(r.t, r.c).Terminals {
		if strings.HasPrefix(t.Target, r.agent.Session+":") {
			return t
		}
	}
	return row{}
}

// idle waits until the agent can take a task.
func (r *real) idle() row {
	r.t.Helper()
	var last row
	r.until("an idle agent", func() bool {
		last = r.row()
		return last.Actions["send"].Tool != ""
	}, func() string { return dump(last) })
	return last
}

// send delegates a task to the agent at rest and fails unless it is pending.
func (r *real) send(task string) sent {
	r.t.Helper()
	got := send(r.t, r.c, r.idle().TerminalID, task)
	if got.Status != "async_pending" && got.Status != "submission_pending_acceptance" {
		r.t.Fatalf("send: %s\nscreen:\n%s", dump(got), r.screen())
	}
	return got
}

// refused sends a task that must be refused with the code, and proves that the agent got
// nothing of it: neither its records nor its requests nor its screen hold it.
func (r *real) refused(terminal, task, code string) {
	r.t.Helper()
	screen := r.screen()
	res, err := r.c.Call(r.t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": terminal, "request": task})
	if err != nil || res.Code() != code {
		r.t.Fatalf("error %v, code %q, text %q; want %s", err, res.Code(), res.Text, code)
	}
	r.unknown(task)
	for _, line := range strings.Split(r.screen(), "\n") {
		if strings.Contains(line, task) {
			r.t.Errorf("the refused task is on the screen; before:\n%s\nafter:\n%s", screen, r.screen())
		}
	}
}

// reaches waits until the Turn has the status.
func (r *real) reaches(turn, want string) status {
	r.t.Helper()
	var s status
	r.until("turn "+want, func() bool {
		s = statusOf(r.t, r.c, turn)
		return s.Turn.Status == want
	}, func() string { return dump(s) })
	return s
}

// knocks waits until n callbacks of the Turn are delivered and returns its status and
// their bodies.
func (r *real) knocks(turn string, n int) (status, []string) {
	r.t.Helper()
	var s status
	r.until(fmt.Sprintf("%d delivered callbacks", n), func() bool {
		s = statusOf(r.t, r.c, turn)
		done := 0
		for _, c := range s.Callbacks {
			if c.Status == "delivered" {
				done++
			}
		}
		return done >= n
	}, func() string { return dump(s) })
	if len(s.Callbacks) != n {
		r.t.Errorf("%d callbacks instead of %d: %s", len(s.Callbacks), n, dump(s))
	}
	var bodies []string
	for _, c := range s.Callbacks {
		for _, d := range r.host.Deliveries() {
			if d.Message == c.Message {
				bodies = append(bodies, d.Body)
			}
		}
	}
	if len(bodies) != n {
		r.t.Fatalf("%d of %d callbacks were heard: %q", len(bodies), n, bodies)
	}
	return s, bodies
}

// once fails unless the task is exactly one prompt in the agent's records and was asked
// of the model in exactly one conversation turn.
func (r *real) once(task string) {
	r.t.Helper()
	if r.agent.Mode == realagent.ClaudePlain {
		task = strings.ReplaceAll(task, "\t", "    ") // by Claude Code itself, from any paste
	}
	n := 0
	for _, p := range r.prompts() {
		if p == task {
			n++
		}
	}
	if n != 1 {
		r.t.Errorf("the agent's records hold the task %d times: %q", n, clipped(r.prompts()))
	}
	asked := 0
	for _, q := range r.model.Requests() {
		if q.Kind == "main" && q.Results == 0 && strings.Contains(q.User, task) {
			asked++
		}
	}
	if asked != 1 {
		r.t.Errorf("the model was asked %d times for one task", asked)
	}
}

func clipped(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, s[:min(len(s), 200)])
	}
	return out
}

// prompts are the texts that a person entered, by the agent's own records. They are read
// here anew: the product's reader is what is being tested.
func (r *real) prompts() []string {
	r.t.Helper()
	read, pattern := codexPrompt, "sessions/*/*/*/rollout-*.jsonl"
	if r.agent.Mode == realagent.ClaudePlain {
		read, pattern = claudePrompt, "projects/*/*.jsonl"
	}
	logs, err := filepath.Glob(filepath.Join(r.agent.AgentHome, pattern))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, path := range logs {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewReader(f); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break // the end, or a line that is being written
			}
			if p, ok := read(line); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

func codexPrompt(line []byte) (string, bool) {
	var rec struct {
		Payload struct {
			Type string
			Item struct {
				Type    string
				Content []struct{ Text string }
			}
		}
	}
	if json.Unmarshal(line, &rec) != nil || rec.Payload.Type != "item_completed" || rec.Payload.Item.Type != "UserMessage" {
		return "", false
	}
	var b strings.Builder
	for _, c := range rec.Payload.Item.Content {
		b.WriteString(c.Text)
	}
	return b.String(), true
}

func claudePrompt(line []byte) (string, bool) {
	var rec struct {
		Type    string
		IsMeta  bool
		Message struct{ Content json.RawMessage }
	}
	var text string
	if json.Unmarshal(line, &rec) != nil || rec.Type != "user" || rec.IsMeta || json.Unmarshal(rec.Message.Content, &text) != nil {
		return "", false // the results of tools are lists
	}
	return strings.TrimSpace(text), true
}

// alive fails unless the human's agent is the process that it was before.
func (r *real) alive() {
	r.t.Helper()
	pid := r.tmux.Tmux("display-message", "-p", "-t", r.agent.PaneID, "#{pane_pid} #{pane_dead}")
	if pid != fmt.Sprintf("%d 0", r.agent.PanePID) {
		r.t.Errorf("the agent's pane is %q, was pid %d", pid, r.agent.PanePID)
	}
}

// close ends the Bridge as a Host does.
func (r *real) close() {
	r.t.Helper()
	if code := r.c.Close(patience); code != 0 {
		r.t.Errorf("the Bridge ended with status %d", code)
	}
	r.alive()
}

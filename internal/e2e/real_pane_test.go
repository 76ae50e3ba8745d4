//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// inPane is newReal with an agent that the product's own pane command starts.
func inPane(t testing.TB, mode realagent.Mode, flags ...string) *real {
	t.Helper()
	realagent.Need(t)
	r := &real{world: newWorld(t, nil), t: t, model: fakemodel.Start(t)}
	r.agent = realagent.Start(t, r.tmux.Socket(), mode, r.model.URL(), &realagent.Options{Launcher: r.bin, LaunchFlags: flags})
	r.c = r.start()
	return r
}

// ended kills the pane and fails unless everything that lived in it is gone in time, the
// agent's server and what it started too.
func (r *real) ended() {
	r.t.Helper()
	family := descendants(r.t, r.agent.PanePID)
	if len(family) == 0 {
		r.t.Error("nothing lives in the pane")
	}
	r.tmux.Tmux("kill-pane", "-t", r.agent.PaneID)
	waitGone(r.t, family)
	fakehost.WaitNoSurvivors(r.t, r.agent.CaseID, patience)
}

// TestRealPaneCodexIsDrivenOverItsOwnServer: what pane starts is listed with its socket and
// the announced thread, takes a task, and leaves nothing behind.
func TestRealPaneCodexIsDrivenOverItsOwnServer(t *testing.T) {
	t.Parallel()
	r := inPane(t, realagent.CodexEmbedded)
	term := r.idle()
	if got, want := (shape{term.Agent, term.Version, term.Mode, term.Channel}), shapes[realagent.CodexRemote]; got != want {
		t.Errorf("the list says %+v, want %+v", got, want)
	}
	if term.Thread != r.agent.Launched.ThreadID || term.Thread == "" || r.agent.Launched.Mode != "remote" || len(r.agent.Launched.Notes) != 0 {
		t.Errorf("pane said %+v, the list says thread %q", r.agent.Launched, term.Thread)
	}
	got := r.send("SAY:over the socket")
	if _, bodies := r.knocks(got.TurnID, 1); bodies[0] != "over the socket" {
		t.Errorf("%q", bodies)
	}
	r.once("SAY:over the socket")
	r.until("the answer in the pane", func() bool { return strings.Contains(r.screen(), "• over the socket") }, r.screen)
	r.close()
	r.ended()
}

// TestRealPaneClaudeWithHooksIsDriven: the session is the announced one, hooks change
// nothing of what is proved, and a permission hook decides nothing.
func TestRealPaneClaudeWithHooksIsDriven(t *testing.T) {
	t.Parallel()
	r := inPane(t, realagent.ClaudePlain, "--hooks")
	if term := r.idle(); term.Thread != r.agent.Launched.ThreadID || term.Thread == "" || term.Mode != "interactive" {
		t.Errorf("pane said %+v, the list says %s", r.agent.Launched, dump(term))
	}
	got := r.send("SAY:hooked")
	s, bodies := r.knocks(got.TurnID, 1)
	if s.Turn.Status != "idle" || bodies[0] != "hooked" {
		t.Errorf("%s\n%q", dump(s), bodies)
	}
	realDialog(r)
	r.close()
	r.ended()
}

//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// shape is what the list must say of an agent.
type shape struct{ agent, version, mode, channel string }

var shapes = map[realagent.Mode]shape{
	realagent.CodexEmbedded: {"codex", "0.171.0", "embedded", "keyboard"},
	realagent.CodexDaemon:   {"codex", "0.171.0", "daemon", "codex_socket"},
	realagent.CodexRemote:   {"codex", "0.171.0", "remote", "codex_socket"},
	realagent.ClaudePlain:   {"claude", "2.1.197", "interactive", "keyboard"},
}

// TestRealAgentsDoTheMainJob: list, send, go on, hear the knock; then once more in the
// same conversation; then the Bridge ends and the agent does not notice.
func TestRealAgentsDoTheMainJob(t *testing.T) {
	for mode, want := range shapes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newReal(t, mode, nil)
			term := r.idle()
			if got := (shape{term.Agent, term.Version, term.Mode, term.Channel}); got != want {
				t.Errorf("the list says %+v, want %+v", got, want)
			}
			if term.Workspace != r.agent.Cwd || term.State != "idle" {
				t.Errorf("row %s", dump(term))
			}
			tasks := []string{
				"Two lines, héllo 日本 and ${HOME}.\nSAY:the answer is 42\\n\\n  it costs ${HOME}; \"naïve\" 日本語 €",
				"SAY:second",
			}
			answers := []string{"the answer is 42\n\n  it costs ${HOME}; \"naïve\" 日本語 €", "second"}
			for i, task := range tasks {
				got := r.send(task)
				if got.Status != "async_pending" || !got.DoNotRetry {
					t.Errorf("send: %s", dump(got))
				}
				s, bodies := r.knocks(got.TurnID, 1)
				if s.Turn.Status != "idle" || s.Turn.Evidence == "" || s.Turn.Submission != "accepted" || s.Callbacks[0].Kind != "completion" {
					t.Errorf("status: %s", dump(s))
				}
				if bodies[0] != answers[i] {
					t.Errorf("the callback said %q, want %q", bodies[0], answers[i])
				}
			}
			if got := r.prompts(); !slices.Equal(got, tasks) {
				t.Errorf("the agent's records hold the prompts %q, want %q", got, tasks)
			}
			for _, task := range tasks {
				r.once(task)
			}
			if n := len(r.host.Deliveries()); n != 2 {
				t.Errorf("%d callbacks", n)
			}
			r.close()
		})
	}
}

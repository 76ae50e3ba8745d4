//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

type approval struct {
	Outcome    string `json:"outcome"`
	Approved   bool   `json:"approved"`
	Already    bool   `json:"already_approved"`
	Via        string `json:"via"`
	PromptGone bool   `json:"prompt_gone"`
	By         string `json:"answered_by"`
}

// TestRealAgentsAreAnswered lets a Host answer what real agents ask: approvals, a plain
// question, and the same command asked twice.
func TestRealAgentsAreAnswered(t *testing.T) { // spec parts 2.11, 2.16, case 50
	journey(t, everyMode(), []step{
		{"a command is approved once", realApproved},
		{"the same command asked again is another question", realApprovedTwice},
		{"a command is rejected", realRejected},
		{"a question in words is answered in the same turn", realResponded},
	}, nil)
}

// decide waits for the n-th callback of the Turn, which asks, and answers as the action of
// that name in the list says.
func (r *real) decide(got sent, n int, action string) approval {
	r.t.Helper()
	r.knocks(got.TurnID, n)
	args := r.offered(action)
	if args["turn_id"] != got.TurnID {
		r.t.Errorf("the list offers %v", args)
	}
	var a approval
	r.c.MustCall("agent_knock_knock_approve", args).Decode(r.t, &a)
	via := "keyboard"
	if shapes[r.agent.Mode].channel == "codex_socket" {
		via = "codex_socket"
	}
	if a.Via != via || !a.PromptGone || a.By != "controller" {
		r.t.Errorf("%s\nscreen:\n%s", dump(a), r.screen())
	}
	return a
}

func (r *real) made(name string) bool {
	_, err := os.Stat(filepath.Join(r.agent.Cwd, name))
	return err == nil
}

func realApproved(r *real) {
	task := "RUN:touch approved.txt ;; SAY:made it"
	got := r.send(task)
	r.reaches(got.TurnID, "waiting_for_controller")
	if r.made("approved.txt") {
		r.t.Error("the command ran before it was approved")
	}
	if a := r.decide(got, 1, "approve"); a.Outcome != "approved" || !a.Approved {
		r.t.Errorf("%s", dump(a))
	}
	s, bodies := r.knocks(got.TurnID, 2)
	if s.Turn.Status != "idle" || bodies[1] != "made it" || !r.made("approved.txt") {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	var again approval
	r.c.MustCall("agent_knock_knock_approve", map[string]any{"turn_id": got.TurnID}).Decode(r.t, &again)
	if again.Approved || !again.Already {
		r.t.Errorf("%s", dump(again))
	}
	r.once(task)
}

func realApprovedTwice(r *real) {
	got := r.send("RUN:touch again.txt ;; RUN:touch again.txt ;; SAY:made it twice")
	r.decide(got, 1, "approve")
	r.decide(got, 2, "approve")
	s, bodies := r.knocks(got.TurnID, 3)
	if s.Turn.Status != "idle" || bodies[2] != "made it twice" {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
}

func realRejected(r *real) {
	got := r.send("RUN:touch rejected.txt ;; SAY:never")
	if a := r.decide(got, 1, "reject"); a.Outcome != "rejected" || a.Approved {
		r.t.Errorf("%s", dump(a))
	}
	s, _ := r.knocks(got.TurnID, 2)
	if s.Turn.Status != "failed" || s.Callbacks[1].Kind != "interrupted" || r.made("rejected.txt") {
		r.t.Errorf("%s", dump(s))
	}
	r.idle()
}

func realResponded(r *real) {
	got := r.send("SAY:Which one?")
	_, bodies := r.knocks(got.TurnID, 1)
	if bodies[0] != "Which one?" {
		r.t.Fatalf("%q", bodies)
	}
	r.idle()
	var again struct {
		sent
		Budget struct {
			Used int `json:"rounds_used"`
		} `json:"budget"`
	}
	r.c.MustCall("agent_knock_knock_respond", map[string]any{"turn_id": got.TurnID, "request": "SAY:the blue one"}).Decode(r.t, &again)
	if again.TurnID != got.TurnID || again.Budget.Used != 1 {
		r.t.Errorf("%s", dump(again))
	}
	s, bodies := r.knocks(got.TurnID, 2)
	if s.Turn.Status != "idle" || bodies[1] != "the blue one" {
		r.t.Errorf("%s\n%q", dump(s), bodies)
	}
	r.once("SAY:the blue one")
}

// TestRealAgentsRunWhatAnAdministratorAllowed: an exact command is approved without a
// callback, and one word more is asked.
func TestRealAgentsRunWhatAnAdministratorAllowed(t *testing.T) { // spec part 11, case 58
	for mode := range shapes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newReal(t, mode, nil)
			r.close()
			agent := "codex"
			if mode == realagent.ClaudePlain {
				agent = "claude"
			}
			policy := filepath.Join(t.TempDir(), "policy.json")
			text := `{"enabled":true,"rules":[{"id":"touch","agents":["` + agent + `"],"workspaces":["` + r.agent.Cwd + `"],"commands":[["touch","allowed.txt"]]}]}`
			if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			r.c = r.start("--auto-approve", policy)
			got := r.send("RUN:touch allowed.txt ;; SAY:done")
			s, bodies := r.knocks(got.TurnID, 1)
			if s.Turn.Status != "idle" || bodies[0] != "done" || !r.made("allowed.txt") {
				t.Errorf("%s\n%q", dump(s), bodies)
			}
			got = r.send("RUN:touch allowed.txt more.txt ;; SAY:never")
			if _, bodies := r.knocks(got.TurnID, 1); !strings.Contains(bodies[0], "more.txt") {
				t.Errorf("%q", bodies)
			}
			r.decide(got, 1, "reject")
			r.knocks(got.TurnID, 2)
			if r.made("more.txt") {
				t.Error("a command that nobody allowed ran")
			}
			r.close()
		})
	}
}

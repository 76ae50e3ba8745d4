package dispatch_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/policy"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// commander is the rig's agent with records that tell what waits.
type commander struct {
	*adapter
	pending func() (agent.Command, error)
}

func (c commander) PendingCommand(context.Context, agent.Ref, agent.Native, string) (agent.Command, error) {
	return c.pending()
}

// allowing gives the Service a policy that approves npm test in dir, and an agent whose
// records say what pending says.
func (r *rig) allowing(dir string, pending func() (agent.Command, error)) {
	r.t.Helper()
	text, err := json.Marshal(map[string]any{"enabled": true, "rules": []any{map[string]any{"id": "tests", "agents": []string{"codex"}, "workspaces": []string{dir}, "commands": [][]string{{"npm", "test"}}}}})
	if err != nil {
		r.t.Fatal(err)
	}
	c := r.Service.Config
	if c.Policy, err = policy.Parse(text, ""); err != nil {
		r.t.Fatal(err)
	}
	c.Scanner = discover.New([]string{r.agent.rec.Server.Socket()}, commander{r.agent, pending})
	r.Service = dispatch.New(c)
}

func TestACommandThatAnAdministratorNamedIsApprovedWithoutAsking(t *testing.T) { // spec case 58, part 11
	r := newRig(t)
	dir := t.TempDir()
	tn := r.accepted()
	r.allowing(dir, func() (agent.Command, error) {
		return agent.Command{Line: "npm test", Cwd: dir, Source: "rollout"}, nil
	})
	r.shows(command("a"))
	r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: command("a")})
	now := r.only().Turn
	if now.Status != turn.WaitingForAgent || now.Answer == nil || now.Answer.By != "policy:tests" || now.Answer.State != turn.AnswerSent {
		t.Errorf("%+v %+v", now, now.Answer)
	}
	if all := deliveries(t, r); len(all) != 0 {
		t.Errorf("the Host was asked: %+v", all)
	}
	if got, err := r.approve("c1", tn.ID, ""); err != nil || !got.AlreadyApproved || got.AnsweredBy != "policy:tests" || !got.AutoApproved {
		t.Errorf("%+v %v", got, err)
	}
	r.pressed("y")
}

// Anything that fails is asked like any other question, and no key is pressed.
func TestWhatThePolicyDoesNotProveIsAsked(t *testing.T) { // spec part 11
	for name, c := range map[string]struct {
		line   string
		prompt func(*turn.Prompt)
		inside string
		before func(*rig)
		again  string // the command when it is read the second time
		err    bool
	}{
		"another command":            {line: "npm test; rm -rf x", prompt: func(p *turn.Prompt) { p.Excerpt = "$ npm test; rm -rf x" }},
		"another shell":              {line: "npm test", prompt: func(p *turn.Prompt) { p.Excerpt = "/w/bash -lc 'npm test'" }},
		"a command that differs":     {line: "npm test", prompt: func(p *turn.Prompt) { p.Excerpt = "$ npm test --all" }},
		"records that do not tell":   {line: "npm test", err: true},
		"elsewhere":                  {line: "npm test", inside: "/"},
		"a symlink out":              {line: "npm test", inside: "link"},
		"a prompt that is not exact": {line: "npm test", prompt: func(p *turn.Prompt) { p.Approvable, p.Reason = false, "unknown" }},
		"another prompt by then":     {line: "npm test", before: func(r *rig) { r.shows(command("b")) }},
		"another command by then":    {line: "npm test", again: "npm run x"},
		"somebody types there": {line: "npm test", before: func(r *rig) {
			r.agent.rec.Server.Tmux("copy-mode", "-t", r.agent.rec.ID)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			dir := t.TempDir()
			if err := os.Symlink("/", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			cwd := dir
			if c.inside == "/" {
				cwd = "/"
			} else if c.inside != "" {
				cwd = filepath.Join(dir, c.inside)
			}
			reads := 0
			tn := r.accepted()
			r.allowing(dir, func() (agent.Command, error) {
				if c.err {
					return agent.Command{}, fault.New(fault.NotFound, "test", "not exactly one tool call is open")
				}
				line := c.line
				if reads++; reads > 1 && c.again != "" {
					line = c.again
				}
				return agent.Command{Line: line, Cwd: cwd, Source: "rollout"}, nil
			})
			p := command("a")
			if c.prompt != nil {
				c.prompt(p)
			}
			r.shows(p)
			if c.before != nil {
				c.before(r)
			}
			r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: p})
			now := r.only().Turn
			all := deliveries(t, r)
			if now.Status != turn.WaitingForController || now.Untold() || len(all) != 1 || all[0].Event.Kind != "approval" {
				t.Errorf("%+v %+v", now, all)
			}
			r.pressed("")
		})
	}
}

// The Bridge may die between seeing the prompt and answering it: it is asked then.
func TestAHeldPromptIsToldByWhoeverComesNext(t *testing.T) {
	r := newRig(t)
	tn := r.accepted()
	r.shows(command("a"))
	r.decide(tn, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.HoldPrompt(t, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: command("a")}, now), nil
	})
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := deliveries(t, r); len(all) != 1 || !strings.Contains(string(all[0].Event.Body), "do a") {
		t.Errorf("%+v", all)
	}
	r.pressed("")
}

package dispatch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/policy"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// decideLimit bounds what a policy may cost before a question is told.
	decideLimit = 3 * time.Second
	// recordsLag is how long the agent's records may be behind its screen: Claude Code writes
	// them in batches. recordsPause lies between two looks at them.
	recordsLag, recordsPause = time.Second, 50 * time.Millisecond
)

// byPolicy begins the By of an answer that a rule gave.
const byPolicy = "policy:"

// autoApprove answers an approval that the administrator's policy names exactly, and
// reports whether the observation is dealt with. Whatever fails is told to the Host like
// any other question.
func (s *Service) autoApprove(ctx context.Context, id ids.TurnID, o turn.Observation) (done bool, err error) {
	if o.Prompt == nil || o.Prompt.Kind != turn.PromptApproval || !o.Prompt.Approvable {
		return false, nil
	}
	t, err := s.get(ctx, id)
	if err != nil {
		return false, nil // the observation that follows says why
	}
	term, d := s.judge(ctx, t, *o.Prompt)
	if !d.Approve {
		s.Log.Info("automatic approval refused", "turn", id, "reason", d.Reason)
		return false, nil
	}
	option, err := o.Prompt.Choose(true)
	if err != nil {
		return false, nil
	}
	end := s.begin(id) // a sweep must not tell it meanwhile
	t, err = s.change(ctx, id, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.HoldPrompt(t, o, now), nil })
	if err != nil || t.Prompt == nil || t.Prompt.Fingerprint != o.Prompt.Fingerprint || turn.CanAnswer(t, o.Prompt.Fingerprint) != nil {
		end()
		return err == nil && !t.Untold(), err
	}
	got, err := s.answer(ctx, answering{turn: t, prompt: *t.Prompt, option: option,
		answer: turn.Answer{Fingerprint: t.Prompt.Fingerprint, Choice: redact.Line(redact.String(option.Label), summaryLength), Decision: ApproveOnce, By: byPolicy + d.RuleID},
		check: func(ctx context.Context, now discover.Terminal, p turn.Prompt) error {
			again := s.weigh(ctx, now, t, p)
			if !again.Approve || again.RuleID != d.RuleID || again.Fingerprint != d.Fingerprint || now.Key() != term.Key() {
				return fault.New(turn.CodeTerminal, "dispatch.policy", "the approval is not what the policy allowed: %s", again.Reason)
			}
			return nil
		}})
	end()
	if err == nil {
		s.Log.Info("automatic approval", "turn", id, "rule", d.RuleID, "policy", d.Fingerprint, "state", got.state)
		return true, nil
	}
	s.Log.Warn("automatic approval failed; the Host is asked", "turn", id, "rule", d.RuleID, "err", err)
	_, err = s.change(ctx, id, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.TellPrompt(t, now), nil })
	return true, err
}

// judge finds the Turn's terminal and holds the prompt against the policy.
func (s *Service) judge(ctx context.Context, t turn.Turn, p turn.Prompt) (discover.Terminal, policy.Decision) {
	ctx, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	term, err := s.terminalOf(ctx, t)
	if err != nil {
		_, msg, _ := fault.Public(err)
		return term, policy.Decision{Reason: msg}
	}
	return term, s.weigh(ctx, term, t, p)
}

// weigh holds a prompt against the policy by what the agent's own records say now.
func (s *Service) weigh(ctx context.Context, term discover.Terminal, t turn.Turn, p turn.Prompt) policy.Decision {
	commander, ok := term.Adapter.(agent.Commander)
	if !ok {
		return policy.Decision{Reason: "the agent's records do not tell commands"}
	}
	if term.Native.Thread != agent.ThreadResolved || term.Native.ThreadID != t.ThreadID {
		return policy.Decision{Reason: "the terminal does not provably show the turn's thread"}
	}
	c, err := commander.PendingCommand(ctx, term.Ref, term.Native, t.NativeTurnID)
	for end := s.Clock.Now().Add(recordsLag); fault.Is(err, fault.NotFound) && s.Clock.Now().Before(end) && s.pause(ctx, recordsPause) == nil; {
		c, err = commander.PendingCommand(ctx, term.Ref, term.Native, t.NativeTurnID)
	}
	if err != nil {
		_, msg, _ := fault.Public(err)
		return policy.Decision{Reason: msg}
	}
	if !shows(p, c.Line) {
		return policy.Decision{Reason: "the prompt does not show exactly the command of the records"}
	}
	return s.Policy.Decide(policy.Request{Agent: t.Agent, Kind: policy.RunCommand, Command: c.Line, Cwd: c.Cwd, Evidence: c.Source}, realPath)
}

// shows reports whether a whole line of the prompt is the command: on a screen with or
// without its mark, or as the last word of the shell call that a server names.
func shows(p turn.Prompt, command string) bool {
	return slices.ContainsFunc(strings.Split(p.Excerpt, "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		if line == command || strings.TrimPrefix(line, "$ ") == command {
			return true
		}
		words, err := policy.ShellWords(line)
		return err == nil && len(words) == 3 && systemShell(words[0]) && words[1] == "-lc" && words[2] == command
	})
}

// systemShell reports whether a program is a shell that the agent cannot have written.
func systemShell(path string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}, filepath.Dir(path)) &&
		slices.Contains([]string{"sh", "bash", "dash", "zsh"}, filepath.Base(path))
}

// realPath is the canonical path of the longest part of path that exists, and the rest as
// it is. A rest that goes up again, and a link that leads nowhere, are refused.
func realPath(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fault.New(fault.Invalid, "dispatch.path", "the path is not absolute")
	}
	at := "/"
	parts := strings.Split(path, "/")
	for i, part := range parts {
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		st, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			rest := parts[i:]
			if slices.Contains(rest, "..") {
				return "", fault.New(fault.Invalid, "dispatch.path", "the path goes up from a part that does not exist")
			}
			return filepath.Join(at, filepath.Join(rest...)), nil
		}
		if err != nil {
			return "", err
		}
		if at = next; st.Mode()&fs.ModeSymlink != 0 {
			if at, err = filepath.EvalSymlinks(next); err != nil {
				return "", err
			}
		}
	}
	return at, nil
}

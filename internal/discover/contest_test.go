package discover

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// named is an adapter that only has a name.
type named struct{ kind string }

func (n named) Kind() string                                            { return n.kind }
func (named) Match(procinfo.Process) bool                               { return false }
func (named) Identify(context.Context, agent.Ref) (agent.Native, error) { return agent.Native{}, nil }
func (named) Screen(tmux.Capture) agent.Screen                          { return agent.Screen{} }
func (named) Literal(text string) (string, error)                       { return text, nil }
func (named) DraftMatches(agent.Screen, string) agent.Match             { return agent.MatchUnknown }
func (named) Anchor(context.Context, agent.Ref, agent.Native, string, string) (turn.Anchor, error) {
	return turn.Anchor{}, nil
}
func (named) Follow(context.Context, agent.Ref, turn.Anchor, <-chan struct{}, func(turn.Observation) error) error {
	return nil
}

func TestTwoPanesThatClaimOneThreadAreBothRefused(t *testing.T) { // E06
	term := func(id, kind, thread string) Terminal {
		return Terminal{Adapter: named{kind}, Native: agent.Native{Thread: agent.ThreadResolved, ThreadID: thread, Activity: agent.ActivityIdle},
			Screen: agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}}
	}
	all := []Terminal{term("a", "codex", "t1"), term("b", "codex", "t1"), term("c", "codex", "t2"), term("d", "claude", "t1"), term("e", "codex", "")}
	contestThreads(all)
	for i, refused := range []bool{true, true, false, false, false} {
		if err := Ready(all[i]); fault.Is(err, turn.CodeTerminal) != refused {
			t.Errorf("terminal %d: %v, refused should be %v", i, err, refused)
		}
	}
}

func TestAProcessThatSeemsToRunInTwoPanesIsRefusedInBoth(t *testing.T) { // spec case 44
	in := func(pane string, pid int) Terminal {
		return Terminal{Adapter: named{"codex"}, Ref: agent.Ref{Endpoint: turn.Endpoint{PaneID: pane}, Process: turn.Incarnation{PID: pid, Birth: "1@b"}},
			Native: agent.Native{Thread: agent.ThreadVerifiedAbsent, Activity: agent.ActivityIdle},
			Screen: agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}}
	}
	all := []Terminal{in("%1", 7), in("%2", 7), in("%3", 8)}
	contestProcesses(all)
	for i, refused := range []bool{true, true, false} {
		if err := Ready(all[i]); fault.Is(err, turn.CodeTerminal) != refused {
			t.Errorf("terminal %d: %v, refused should be %v", i, err, refused)
		}
	}
}

func TestATerminalIsNotCalledAbsentWhileAServerCannotBeAsked(t *testing.T) {
	s := New([]string{filepath.Join(t.TempDir(), "none")}, named{"codex"})
	_, err := s.Find(t.Context(), "terminal:v2:tmux:codex:main:0.0:1")
	if _, msg, hint := fault.Public(err); !fault.Is(err, fault.Unavailable) || !strings.Contains(msg, "none") || hint == "" {
		t.Errorf("%v", err)
	}
}

func TestACopyOfAnAgentOnItsWayToAnotherProgramIsNoSecondAgent(t *testing.T) {
	agent := procinfo.Process{Name: "claude", Args: []string{"claude", "--resume", "x"}}
	for name, c := range map[string]struct {
		child procinfo.Process
		want  bool
	}{
		"a copy":                   {procinfo.Process{Name: "claude", Args: []string{"claude", "--resume", "x"}}, true},
		"an agent of its own":      {procinfo.Process{Name: "claude", Args: []string{"claude", "-p", "y"}}, false},
		"another program":          {procinfo.Process{Name: "sh", Args: []string{"sh", "-c", "ls"}}, false},
		"one between two programs": {procinfo.Process{Name: "claude"}, false},
	} {
		if got := forked(c.child, agent); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

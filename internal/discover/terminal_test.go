package discover_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// TestOnlyAnAgreedIdleIsIdle walks every pair of evidence: unknown never becomes idle and
// busy always wins (spec 3.2, case 44).
func TestOnlyAnAgreedIdleIsIdle(t *testing.T) {
	activities := []agent.Activity{agent.ActivityIdle, agent.ActivityWorking, agent.ActivityWaiting, agent.ActivityUnknown}
	screens := []agent.ScreenState{agent.ScreenIdle, agent.ScreenWorking, agent.ScreenApproval, agent.ScreenDialog, agent.ScreenUnknown}
	for _, a := range activities {
		for _, s := range screens {
			got, reason := discover.Combine(agent.Native{Activity: a}, agent.Screen{State: s})
			both := a == agent.ActivityIdle && s == agent.ScreenIdle
			if (got == discover.Idle) != both {
				t.Errorf("%s + %s = %s", a, s, got)
			}
			if got != discover.Idle && reason == "" {
				t.Errorf("%s + %s gives no reason", a, s)
			}
			if a == agent.ActivityWorking && s == agent.ScreenIdle && got != discover.Working {
				t.Errorf("an idle-looking screen hid a running task")
			}
		}
	}
}

func TestOnlyAnEmptyProvedComposerIsTypedInto(t *testing.T) {
	ok := discover.Terminal{ID: "terminal:v2:tmux:codex:a:0.0:1",
		Native: agent.Native{Activity: agent.ActivityIdle, Channel: turn.ChannelKeyboard},
		Screen: agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}}
	if err := discover.Ready(ok); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*discover.Terminal){
		"draft":    func(t *discover.Terminal) { t.Screen.Composer = agent.ComposerDraft },
		"absent":   func(t *discover.Terminal) { t.Screen.Composer = agent.ComposerAbsent },
		"unknown":  func(t *discover.Terminal) { t.Screen.Composer = agent.ComposerUnknown },
		"scrolled": func(t *discover.Terminal) { t.Pane = tmux.Pane{InMode: true} },
		"dead":     func(t *discover.Terminal) { t.Pane = tmux.Pane{Dead: true} },
		"conflict": func(t *discover.Terminal) { t.Conflict = "two agents" },
		"dialog":   func(t *discover.Terminal) { t.Screen.State = agent.ScreenDialog },
		"records":  func(t *discover.Terminal) { t.Native.Activity = agent.ActivityUnknown },
	} {
		c := ok
		change(&c)
		err := discover.Ready(c)
		if !fault.Is(err, turn.CodeTerminal) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, hint := fault.Public(err); hint == "" {
			t.Errorf("%s: no next step", name)
		}
	}
	socket := ok
	socket.Native.Channel = turn.ChannelCodexSocket
	socket.Screen = agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerDraft}
	if err := discover.Ready(socket); err != nil {
		t.Errorf("a human's draft must not stop a machine channel: %v", err)
	}
	socket.Screen.State = agent.ScreenApproval
	if err := discover.Ready(socket); err == nil {
		t.Error("an open dialog must stop a machine channel too")
	}
}

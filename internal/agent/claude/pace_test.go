package claude

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestASilentTurnIsLookedAtSeldomAndOnlyWhileNothingIsDue(t *testing.T) {
	r := newRig(t)
	r.say("busy", "")
	r.append(prompt("u1", "", "first prompt") + answer("a1", "u1", "ANSWER-1") + endOf("s0", "a1"))
	an := r.anchor("second prompt")
	f, err := newFollower(r.a, r.ref, an, func(turn.Observation) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	f.watch = newFileWatch(an.Extra[extraConfigDir], f.directories()...)
	defer func() { f.watch.close() }()
	look := func(what string, want time.Duration) {
		t.Helper()
		for range 2 { // the second look has no activity left to report
			if err := f.scan(); err != nil {
				t.Fatal(err)
			}
			r.clock.tick(known.ActivityRate)
		}
		if got := f.pace(); got != want {
			t.Errorf("%s: looked at every %v, want %v", what, got, want)
		}
	}
	look("not accepted yet", known.SafetyTick)
	r.append(prompt("u2", "s0", "second prompt"))
	look("accepted", known.QuietTick)
	r.say("idle", "")
	look("the agent says idle", known.SafetyTick)
	r.say("busy", "")
	look("busy again", known.QuietTick)
	f.watch.forget(f.watch.wanted[0])
	look("a directory is not watched", known.SafetyTick)
}

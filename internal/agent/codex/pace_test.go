package codex

import (
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestASilentTurnIsLookedAtSeldomAndOnlyWhileNothingIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*follower)
		want   time.Duration
	}{
		"followed by events":     {func(*follower) {}, quietTick},
		"not accepted yet":       {func(f *follower) { f.t.acc = nil }, safetyTick},
		"an end without a text":  {func(f *follower) { f.t.bare = &turn.Observation{} }, safetyTick},
		"the server says idle":   {func(f *follower) { f.ticks = 1 }, safetyTick},
		"the process is gone":    {func(f *follower) { f.gone = true }, safetyTick},
		"no file events at all":  {func(f *follower) { f.watcher = nil }, safetyTick},
		"a path is not watched":  {func(f *follower) { f.watch("/nothing/here") }, safetyTick},
		"the directory is there": {func(f *follower) { f.watch(t.TempDir()) }, quietTick},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := fsnotify.NewWatcher()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			f := &follower{t: newTracker(turn.Anchor{}), watcher: w, watched: map[string]bool{}}
			f.t.acc = &claim{}
			c.change(f)
			if got := f.pace(); got != c.want {
				t.Errorf("looked at every %v, want %v", got, c.want)
			}
		})
	}
}

package observe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// witness is a script whose agent also says of itself what it does.
type witness struct {
	*script
	thread   string
	activity agent.Activity
	asked    int
}

func (w *witness) Identify(context.Context, agent.Ref) (agent.Native, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return agent.Native{Thread: agent.ThreadResolved, ThreadID: w.thread, Activity: w.activity}, nil
}

func (w *witness) says(screen string, a agent.Activity, thread string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.screen, w.activity, w.thread = screen, a, thread
}

type loop func(context.Context, observe.Config, observe.Spec, agent.Adapter, func(turn.Observation) error) error

// watching starts a Watch of thread "ours".
func watching(t *testing.T, w *witness, f loop, accepted bool) *run {
	r := &run{script: w.script, t: t, gone: make(chan struct{}), tick: make(chan struct{}), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	spec := observe.Spec{Ref: agent.Ref{Endpoint: turn.Endpoint{PaneID: "%1", PanePID: 7}, Process: turn.Incarnation{PID: 8, Birth: "1@x"}},
		Anchor: turn.Anchor{ThreadID: "ours"}, Accepted: accepted}
	c := observe.Config{Screen: w.script, Beat: func() { r.beats++ }, Tick: r.tick,
		Exit: func(turn.Incarnation) (<-chan struct{}, func(), error) { return r.gone, func() {}, nil }}
	go func() {
		r.done <- f(ctx, c, spec, w, func(o turn.Observation) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			r.seen = append(r.seen, o)
			return nil
		})
	}()
	return r
}

func TestATerminalThatWentOnToAnotherThreadIsToldOnlyOfAnIdleScreen(t *testing.T) { // spec part 10.4
	synctest.Test(t, func(t *testing.T) {
		w := &witness{script: newScript()}
		w.says("working", agent.ActivityWorking, "theirs") // perhaps our task runs in the background
		r := watching(t, w, observe.RunTask, false)
		r.pass(3 * time.Minute)
		r.want()
		w.says("idle", agent.ActivityIdle, "ours")
		r.pass(3 * time.Minute)
		r.want()
		w.says("idle", agent.ActivityIdle, "theirs")
		r.pass(3 * time.Minute)
		r.want("trouble")
		last := r.seen[len(r.seen)-1]
		if last.Code != agent.CodeThreadChanged || last.ThreadID != "theirs" {
			t.Errorf("%+v", last)
		}
		r.records <- turn.Observation{Kind: turn.ObsCompleted}
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
}

// Case 55: the end is in the log although the pane shows another thread.
func TestAnEndInTheRecordsWinsOverAnotherThreadOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{script: newScript()}
		w.says("idle", agent.ActivityIdle, "theirs")
		r := watching(t, w, observe.RunTask, false)
		r.records <- turn.Observation{Kind: turn.ObsCompleted, Text: "done"}
		r.pass(time.Minute)
		r.want("completed")
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
}

func TestATerminalIsDoneWhenItWasActiveAndIsIdleTwiceByAllEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{script: newScript()}
		w.says("idle", agent.ActivityIdle, "ours")
		r := watching(t, w, observe.RunActivity, false)
		r.pass(time.Minute)
		r.want() // it was never active
		w.says("working", agent.ActivityUnknown, "ours")
		r.pass(20 * time.Second)
		r.want("accepted")
		for _, no := range []struct {
			screen string
			a      agent.Activity
		}{{"idle", agent.ActivityWorking}, {"idle", agent.ActivityUnknown}, {"nothing known", agent.ActivityIdle}, {"working", agent.ActivityIdle}} {
			w.says(no.screen, no.a, "ours")
			r.pass(time.Minute)
			r.want("accepted")
		}
		w.says("approval a", agent.ActivityWaiting, "ours")
		r.pass(20 * time.Second)
		r.want("accepted", "prompt a")
		w.says("idle", agent.ActivityIdle, "ours")
		begin := time.Now()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.want("accepted", "prompt a", "prompt_cleared", "completed")
		if d := time.Since(begin); d < 5*time.Second || d > 21*time.Second {
			t.Errorf("settled after %v", d)
		}
	})
}

func TestAWatchByActivityThatStartsAnewKnowsThatActivityWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{script: newScript()}
		w.says("idle", agent.ActivityIdle, "ours")
		r := watching(t, w, observe.RunActivity, true)
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.want("completed")
	})
}

func TestAWatchByActivityReportsDeathAndBlindnessAndEndsWhenTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{script: newScript()}
		w.says("working", agent.ActivityWorking, "ours")
		w.fail = errors.New("no server")
		r := watching(t, w, observe.RunActivity, true)
		r.pass(5 * time.Minute)
		r.want("trouble")
		close(r.gone)
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.want("trouble", "gone")

		r = watching(t, w, observe.RunActivity, true)
		r.pass(time.Second)
		r.cancel()
		if err := <-r.done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestASilentWatchLooksSeldomAndBeatsWhenItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, f := range map[string]loop{"task": observe.RunTask, "activity": observe.RunActivity} {
			w := &witness{script: newScript()}
			w.says("working", agent.ActivityWorking, "ours")
			r := watching(t, w, f, true)
			r.pass(10 * time.Minute)
			looks, beats := r.count(), r.beats
			if looks > 75 || beats > looks+2 {
				t.Errorf("%s: %d looks and %d beats in ten minutes", name, looks, beats)
			}
			if n := r.asked(); n != 1 {
				t.Errorf("%s: %d beats for a tick", name, n)
			}
			r.cancel()
			<-r.done
		}
	})
}

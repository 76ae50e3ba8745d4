package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// script is an adapter and a terminal: its screen is one line that says what it shows,
// its records come through a channel.
type script struct {
	agent.Adapter // the methods that the loop never calls
	records       chan turn.Observation
	deaf          bool  // Follow does not end when it is told to
	refuse        error // of everything but armed

	mu      sync.Mutex
	screen  string
	panePID int
	fail    error
	looks   int
}

func newScript() *script {
	return &script{records: make(chan turn.Observation, 16), panePID: 7}
}

func (s *script) show(line string) { s.mu.Lock(); s.screen = line; s.mu.Unlock() }

func (s *script) count() int { s.mu.Lock(); defer s.mu.Unlock(); return s.looks }

func (s *script) Capture(_ context.Context, pane string, _ tmux.CaptureOptions) (tmux.Capture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	line := strings.ReplaceAll(s.screen, "COUNT", fmt.Sprint(s.looks))
	return tmux.Capture{Pane: tmux.Pane{ID: pane, PID: s.panePID}, Lines: []string{line}}, s.fail
}

func (s *script) Screen(c tmux.Capture) agent.Screen {
	kind, rest, _ := strings.Cut(c.Lines[0], " ")
	switch kind {
	case "approval":
		return agent.Screen{State: agent.ScreenApproval, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: rest}}
	case "question":
		return agent.Screen{State: agent.ScreenDialog, Prompt: &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: rest, Title: rest}}
	case "idle":
		return agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
	case "working":
		return agent.Screen{State: agent.ScreenWorking}
	case "draft":
		return agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerDraft, Draft: rest}
	}
	return agent.Screen{State: agent.ScreenUnknown}
}

func (s *script) DraftMatches(sc agent.Screen, pasted string) agent.Match {
	switch {
	case sc.Composer != agent.ComposerDraft:
		return agent.MatchUnknown
	case strings.HasPrefix(sc.Draft, pasted):
		return agent.MatchYes
	}
	return agent.MatchNo
}

func (s *script) Follow(ctx context.Context, _ agent.Ref, _ turn.Anchor, gone <-chan struct{}, emit func(turn.Observation) error) error {
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if err := emit(turn.Observation{Kind: turn.ObsArmed}); err != nil {
		return err
	}
	for {
		select {
		case o, ok := <-s.records:
			if !ok {
				return nil
			}
			if err := emit(o); err != nil {
				return err
			}
			if o.Kind.Final() {
				return nil
			}
		case <-gone:
			return emit(turn.Observation{Kind: turn.ObsGone})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run is one watch in a synctest bubble.
type run struct {
	*script
	t       *testing.T
	entered chan time.Time
	answers chan string
	gone    chan struct{}
	tick    chan struct{}
	cancel  context.CancelFunc
	done    chan error
	beats   int

	seen []turn.Observation
}

func start(t *testing.T, s *script, edit func(*observe.Spec)) *run {
	r := &run{script: s, t: t, entered: make(chan time.Time, 1), answers: make(chan string, 1), gone: make(chan struct{}), tick: make(chan struct{}), done: make(chan error, 1)}
	spec := observe.Spec{
		Ref:    agent.Ref{Endpoint: turn.Endpoint{PaneID: "%1", PanePID: 7}, Process: turn.Incarnation{PID: 8, Birth: "1@x"}},
		Pasted: "do it", EnteredAt: time.Now(),
	}
	if edit != nil {
		edit(&spec)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	c := observe.Config{
		Screen: s, Entered: r.entered, Answered: r.answers, Beat: func() { r.beats++ }, Tick: r.tick,
		Exit: func(turn.Incarnation) (<-chan struct{}, func(), error) { return r.gone, func() {}, nil },
	}
	go func() {
		r.done <- observe.Run(ctx, c, spec, s, func(o turn.Observation) error {
			if s.refuse != nil && o.Kind != turn.ObsArmed {
				return r.refuse
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			r.seen = append(r.seen, o)
			return nil
		})
	}()
	return r
}

// pass lets time pass.
func (r *run) pass(d time.Duration) { <-time.After(d); synctest.Wait() }

// asked sends a tick and tells how many beats that made.
func (r *run) asked() int {
	before := r.beats
	r.tick <- struct{}{}
	synctest.Wait()
	return r.beats - before
}

// kinds lists what was emitted, without armed and activity.
func (r *run) kinds() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.seen {
		switch {
		case o.Kind == turn.ObsPrompt:
			out = append(out, "prompt "+o.Prompt.Fingerprint)
		case o.Kind != turn.ObsArmed && o.Kind != turn.ObsActivity:
			out = append(out, string(o.Kind))
		}
	}
	return out
}

func (r *run) want(kinds ...string) {
	r.t.Helper()
	if got := r.kinds(); !slices.Equal(got, kinds) {
		r.t.Errorf("observed %q, want %q", got, kinds)
	}
}

// end lets the native turn complete and checks that Run returns nil.
func (r *run) end() {
	r.t.Helper()
	r.records <- turn.Observation{Kind: turn.ObsCompleted, Source: "rollout"}
	if err := <-r.done; err != nil {
		r.t.Errorf("Run gave %v", err)
	}
	r.cancel()
}

func TestAPromptIsReportedOncePerFingerprintAndWhenItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.show("working")
		r.pass(10 * time.Second)
		r.want()
		r.show("approval A")
		r.pass(time.Minute)
		r.want("prompt A")
		r.show("what is this")
		r.pass(time.Minute)
		r.want("prompt A") // unknown clears nothing
		r.show("approval B")
		r.pass(time.Minute)
		r.want("prompt A", "prompt B")
		r.show("working")
		r.pass(time.Minute)
		r.want("prompt A", "prompt B", "prompt_cleared")
		r.show("approval B") // the same question, asked again
		r.pass(time.Minute)
		r.want("prompt A", "prompt B", "prompt_cleared", "prompt B")
		r.end()
	})
}

// A person or an agent that asks the same within one look would otherwise never be heard.
func TestAnAnsweredPromptThatComesBackBetweenTwoLooksIsTold(t *testing.T) { // spec part 8.6
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.show("approval A")
		r.pass(time.Minute)
		r.want("prompt A")
		r.answers <- "A" // no look sees the screen between the two
		r.pass(3 * time.Second)
		r.want("prompt A", "prompt A")
		r.answers <- "B" // of another prompt than the one that is open
		r.pass(time.Minute)
		r.want("prompt A", "prompt A")
		r.end()
	})
}

func TestAPromptThatWasOpenBeforeTheMonitorIsNotReportedAgainAndIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted, s.OpenPrompt = true, "A" })
		r.show("approval A")
		r.pass(time.Minute)
		r.want()
		r.show("idle")
		r.pass(time.Minute)
		r.want("prompt_cleared")
		r.end()
	})
}

func TestAPromptThatTheAgentReportedIsNotReportedAgainFromTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.records <- turn.Observation{Kind: turn.ObsPrompt, Source: "socket", Prompt: &turn.Prompt{Fingerprint: "S"}}
		synctest.Wait()
		r.show("approval A")
		r.pass(time.Minute)
		r.show("working") // what the agent itself reported, the agent itself ends
		r.pass(time.Minute)
		r.want("prompt S")
		r.records <- turn.Observation{Kind: turn.ObsPromptCleared, Source: "socket"}
		r.pass(time.Second)
		r.want("prompt S", "prompt_cleared")
		r.end()
	})
}

func TestARecordOfTheAgentHasTheScreenLookedAtWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.show("idle")
		r.pass(10*time.Minute + 100*time.Millisecond)
		r.show("approval A")
		r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "rollout"}
		r.pass(1100 * time.Millisecond)
		r.want("prompt A")
		r.end()
	})
}

// Case 40: acceptance missing for 5 s and the same draft in two captures.
func TestADraftThatStaysExactAfterEnterProvesThatTheRequestWasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.EnteredAt = time.Time{} })
		r.show("draft do it")
		r.pass(time.Minute) // nobody pressed Enter yet
		r.want()
		if n := r.count(); n != 0 {
			t.Errorf("%d looks at a pane that somebody types into", n)
		}
		r.entered <- time.Now()
		r.pass(4900 * time.Millisecond)
		r.want()
		r.pass(2 * time.Second)
		r.want("not_accepted")
		r.pass(time.Minute)
		r.want("not_accepted") // once
		r.records <- turn.Observation{Kind: turn.ObsAccepted, Source: "rollout"}
		r.pass(time.Second)
		r.want("not_accepted", "accepted") // a person pressed Enter on it
		r.end()
	})
}

// Case 40: less than that proves nothing.
func TestAnAcceptedRequestOrAnUnreadableDraftIsNeverCalledNotAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		screen   string
		accepted bool
		machine  bool
	}{
		"accepted":             {"draft do it", true, false},
		"other text":           {"draft something else", false, false},
		"draft still changes":  {"draft do it COUNT", false, false},
		"composer unreadable":  {"what is this", false, false},
		"no composer at all":   {"working", false, false},
		"submitted by machine": {"draft do it", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, newScript(), func(s *observe.Spec) {
					if c.machine {
						s.Pasted = ""
					}
				})
				r.show(c.screen)
				if c.accepted {
					r.records <- turn.Observation{Kind: turn.ObsAccepted, Source: "rollout"}
				}
				r.pass(time.Minute)
				if slices.Contains(r.kinds(), "not_accepted") {
					t.Error("called not accepted without proof")
				}
				if !c.accepted && r.count() < 2 {
					t.Error("the screen was not looked at, so nothing is tested")
				}
				r.end()
			})
		})
	}
}

// E03: Claude Code writes nothing when Esc comes before the first word, and gives the
// request back.
func TestARequestThatIsBackInTheComposerOfAnAgentAtRestWasInterrupted(t *testing.T) {
	trouble := turn.Observation{Kind: turn.ObsTrouble, Code: agent.CodeIdleNoEnd, NativeTurnID: "u2"}
	for name, c := range map[string]struct {
		screen  string
		trouble bool
		want    []string
	}{
		"back":                {"draft do it", true, []string{"accepted", "trouble", "interrupted"}},
		"another draft":       {"draft something else", true, []string{"accepted", "trouble"}},
		"cleared by a person": {"idle", true, []string{"accepted", "trouble"}},
		"no word of idle":     {"draft do it", false, []string{"accepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, newScript(), nil)
				r.show(c.screen)
				r.records <- turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "u2"}
				if c.trouble {
					r.records <- trouble
				}
				r.pass(time.Minute)
				r.want(c.want...)
				for _, o := range r.seen {
					if o.Kind == turn.ObsInterrupted && (o.NativeTurnID != "u2" || o.Source != "screen" || o.At.IsZero()) {
						t.Errorf("%+v", o)
					}
				}
				r.end()
			})
		})
	}
}

func TestSilenceIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.show("idle")
		r.pass(time.Hour)
		if n := r.count(); n < 58 || n > 70 {
			t.Errorf("%d looks in an idle hour, want one a minute", n)
		}
		if extra := r.beats - r.count(); extra > 2 { // one at the start, one for the record of the start
			t.Errorf("%d wakeups in an idle hour that nobody asked for", extra)
		}
		for range 3 {
			if n := r.asked(); n != 1 {
				t.Errorf("%d beats for a tick", n)
			}
		}
		r.end()
		n := r.count()
		r.pass(time.Hour)
		if r.count() != n {
			t.Error("the screen is looked at after the end of the turn")
		}
	})
}

func TestActivityIsCoalescedAndASilentWorkingScreenCountsAsActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted = true })
		r.show("idle")
		for range 100 {
			r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "rollout"}
			r.pass(100 * time.Millisecond)
		}
		count := func(source string) (n int) {
			for _, o := range r.seen {
				if o.Kind == turn.ObsActivity && o.Source == source {
					n++
				}
			}
			return n
		}
		if n := count("rollout"); n != 2 {
			t.Errorf("100 records in 10 s gave %d activity observations, want 2", n)
		}
		r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "rollout", Code: "waiting"}
		r.pass(time.Millisecond)
		if n := count("rollout"); n != 3 {
			t.Error("a new kind of activity was dropped")
		}
		r.show("working") // a long command: no record, no change
		r.pass(10 * time.Minute)
		if n := count("screen"); n < 9 || n > 11 {
			t.Errorf("10 working minutes gave %d activity observations, want one a minute", n)
		}
		r.end()
	})
}

func TestADeadProcessIsToldToTheAdapterAndEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), nil)
		close(r.gone)
		if err := <-r.done; err != nil {
			t.Errorf("Run gave %v", err)
		}
		r.want("gone")
		r.cancel()
	})
}

func TestAnUnreadableScreenIsSaidOnceAndTheRecordsGoOn(t *testing.T) {
	for name, edit := range map[string]func(*script){
		"no answer":  func(s *script) { s.fail = errors.New("secret detail") },
		"other pane": func(s *script) { s.panePID = 99; s.screen = "approval A" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				edit(s)
				r := start(t, s, func(s *observe.Spec) { s.Accepted = true })
				r.pass(10 * time.Minute)
				r.want("trouble")
				if o := r.seen[len(r.seen)-1]; o.Code != observe.CodeScreen || o.Detail == "" || strings.Contains(o.Detail, "secret") {
					t.Errorf("trouble is %+v", o)
				}
				r.end()
			})
		})
	}
}

func TestTheWatchEndsWithItsContextItsSinkOrAnAdapterThatStopsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), nil)
		synctest.Wait()
		r.cancel()
		if err := <-r.done; !errors.Is(err, context.Canceled) {
			t.Errorf("context: %v", err)
		}

		r = start(t, newScript(), nil)
		close(r.records)
		if err := <-r.done; err == nil {
			t.Error("records that end without an end of the turn are no success")
		}
		r.cancel()

		s := newScript()
		s.refuse = errors.New("sink is gone")
		r = start(t, s, func(s *observe.Spec) { s.Accepted = true })
		r.show("approval A")
		if err := <-r.done; !errors.Is(err, r.refuse) {
			t.Errorf("sink: %v", err)
		}
		r.cancel()

		s = newScript()
		s.deaf = true
		r = start(t, s, nil)
		synctest.Wait()
		r.cancel()
		if err := <-r.done; !errors.Is(err, context.Canceled) {
			t.Errorf("adapter that does not listen: %v", err)
		}
		close(s.records)
	})
}

package observe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func accepted(s *observe.Spec) { s.Accepted = true }

// What an agent asks follows an event of its own: the screen is looked at at once, and
// again, at distances that double until they are a quarter of a second.
func TestAnEventThatMayBeAQuestionHasTheScreenLookedAtAtOnce(t *testing.T) {
	for name, event := range map[string]turn.Observation{
		"the call of a tool": {Kind: turn.ObsActivity, Source: "rollout", Code: agent.CodeMayAsk},
		"the status waiting": {Kind: turn.ObsActivity, Source: "status_file", Code: "waiting"},
	} {
		for delay, limit := range map[time.Duration]time.Duration{
			0: 60 * time.Millisecond, 90 * time.Millisecond: 160 * time.Millisecond, 400 * time.Millisecond: 760 * time.Millisecond,
			900 * time.Millisecond: 1150 * time.Millisecond, // an agent that paints its question slowly
			3 * time.Second:        7 * time.Second,         // a question that a running tool asks
		} {
			t.Run(name+" "+delay.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := start(t, newScript(), accepted)
					r.show("working")
					r.pass(10*time.Minute + 100*time.Millisecond)
					r.records <- event
					r.pass(delay)
					r.show("approval A")
					r.pass(limit - delay)
					r.want("prompt A")
					for _, o := range r.seen {
						if o.Code == agent.CodeMayAsk {
							t.Error("the hint went further than the watch")
						}
					}
					r.end()
				})
			})
		}
	}
}

// An agent that calls tools all the time does not have the screen read all the time.
func TestManyEventsCauseOneLookASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), accepted)
		r.show("working")
		r.pass(time.Minute)
		before := r.count()
		for range 600 {
			r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "rollout", Code: agent.CodeMayAsk}
			r.pass(100 * time.Millisecond)
		}
		if n := r.count() - before; n < 55 || n > 150 {
			t.Errorf("%d looks in a minute of tool calls", n)
		}
		r.end()
	})
}

func TestAnOpenPromptIsLookedAtOftenEnoughToSeeItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), accepted)
		r.show("approval A")
		r.pass(time.Hour)
		r.show("working")
		r.pass(11 * time.Second)
		r.want("prompt A", "prompt_cleared")
		r.show("approval B")
		r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "status_file", Code: "waiting"}
		r.pass(100 * time.Millisecond)
		r.want("prompt A", "prompt_cleared", "prompt B")
		r.show("working")
		r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "status_file", Code: "busy"}
		r.pass(100 * time.Millisecond)
		r.want("prompt A", "prompt_cleared", "prompt B", "prompt_cleared")
		r.end()
	})
}

// An agent's own word that it waits may be faster than its record of the request: the
// prompt is reported, but not before the request is known to have been taken.
func TestAPromptThatIsSeenBeforeTheAcceptanceIsReportedRightAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), nil)
		r.show("approval A")
		r.records <- turn.Observation{Kind: turn.ObsActivity, Source: "status_file", Code: "waiting"}
		r.pass(150 * time.Millisecond)
		r.want()
		r.records <- turn.Observation{Kind: turn.ObsAccepted, Source: "transcript"}
		r.pass(60 * time.Millisecond)
		r.want("accepted", "prompt A")
		r.end()
	})
}

// The server reports a questionnaire as a whole; the terminal shows, and takes, one step
// at a time.
func TestAQuestionOfTheServerIsTheStepThatTheTerminalShows(t *testing.T) {
	question := turn.Observation{Kind: turn.ObsPrompt, Source: "socket", Prompt: &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: "S"}}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted, s.Pasted = true, "" })
		r.show("working")
		r.records <- question
		r.pass(150 * time.Millisecond)
		r.want()
		r.show("question 1")
		r.pass(200 * time.Millisecond)
		r.want("prompt 1")
		r.show("question 2")
		r.pass(3 * time.Second)
		r.want("prompt 1", "prompt 2")
		r.show("working")
		r.records <- turn.Observation{Kind: turn.ObsPromptCleared, Source: "socket"}
		r.pass(100 * time.Millisecond)
		r.want("prompt 1", "prompt 2", "prompt_cleared")
		r.end()
	})
	synctest.Test(t, func(t *testing.T) { // nobody looks at it there
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted, s.Pasted = true, "" })
		r.show("working")
		r.records <- question
		r.pass(2 * time.Second)
		r.want("prompt S")
		for _, o := range r.seen {
			if o.Prompt != nil && o.Prompt.Manual == "" {
				t.Errorf("it can be answered unseen: %+v", o.Prompt)
			}
		}
		r.end()
	})
}

// The server is heard when somebody has seen the question on the terminal and answered it
// there already: it is the one that was told, until it asks again.
func TestAQuestionThatTheTerminalShowedIsNotToldAgainWhenTheServerIsLate(t *testing.T) {
	question := func(fingerprint string) turn.Observation {
		return turn.Observation{Kind: turn.ObsPrompt, Source: "socket", Prompt: &turn.Prompt{Kind: turn.PromptQuestion, Fingerprint: fingerprint, Title: "color?"}}
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted, s.Pasted = true, "" })
		r.show("question color?")
		r.pass(time.Second)
		r.want("prompt color?")
		r.show("working")
		r.records <- question("first")
		r.pass(2 * time.Second)
		r.want("prompt color?", "prompt_cleared")
		r.records <- question("second") // the same words, another question, and nobody sees it there
		r.pass(2 * time.Second)
		r.want("prompt color?", "prompt_cleared", "prompt second")
		r.end()
	})
	synctest.Test(t, func(t *testing.T) { // it was on the screen when the server was heard: that was the one
		r := start(t, newScript(), func(s *observe.Spec) { s.Accepted, s.Pasted = true, "" })
		r.show("question color?")
		r.pass(time.Second)
		r.records <- question("first")
		r.pass(time.Second)
		r.show("working")
		r.pass(3 * time.Second)
		r.want("prompt color?", "prompt_cleared")
		r.records <- question("second")
		r.pass(2 * time.Second)
		r.want("prompt color?", "prompt_cleared", "prompt second")
		r.end()
	})
}

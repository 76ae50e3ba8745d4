package harness_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var messageEvents = []harness.MessageEvent{
	harness.MessageStarted{}, harness.MessageAsked{}, harness.MessageAnswered{},
	harness.MessageSettled{StopReason: "end_turn"}, harness.MessageSettled{StopReason: "cancelled"},
	harness.MessageSettled{StopReason: "cancelled", CancelReason: harness.ReasonUser, CancelledBy: "caller"},
	harness.MessageSettled{Failure: &harness.Problem{Code: harness.ACPError}},
	harness.MessageSettled{Failure: &harness.Problem{Code: harness.ACPError}, CancelReason: harness.ReasonUser},
	harness.MessageBroken{Problem: harness.Problem{Code: harness.Transport}},
	harness.MessageBroken{Problem: harness.Problem{Code: harness.Interrupted}, Orphaned: true},
	harness.MessageDropped{Reason: harness.ReasonSessionClosed},
}

// Whatever comes in whatever order: an end never changes, says when and why, and an event
// that does not fit changes nothing.
func TestAnEndedMessageNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := harness.Message{ID: "m", State: harness.MessageQueued, CreatedAt: start}
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			now = now.Add(time.Second)
			e := rapid.SampledFrom(messageEvents).Draw(t, "event")
			next, ok := m.Moved(e, now)
			if !ok && !reflect.DeepEqual(next, m) {
				t.Fatalf("%T was refused and changed %+v to %+v", e, m, next)
			}
			if m.State.Terminal() && ok {
				t.Fatalf("%T moved %s", e, m.State)
			}
			switch next.State {
			case harness.MessageCompleted:
				if next.Problem != nil || next.Outcome == "" || next.StopReason == "" {
					t.Fatalf("%+v", next)
				}
			case harness.MessageFailed:
				if next.Problem == nil {
					t.Fatal("failed without a reason")
				}
			case harness.MessageCancelled:
				if next.CancelReason == "" {
					t.Fatal("cancelled without a reason")
				}
			}
			if next.State.Terminal() != !next.FinishedAt.IsZero() {
				t.Fatalf("%s finished at %s", next.State, next.FinishedAt)
			}
			m = next
		}
	})
}

// A message that the agent never got cannot be answered by it.
func TestAQueuedMessageDoesNotSettle(t *testing.T) {
	m := harness.Message{State: harness.MessageQueued}
	if _, ok := m.Moved(harness.MessageSettled{StopReason: "end_turn"}, start); ok {
		t.Error("it did")
	}
}

func TestASessionMovesAsItsTableSays(t *testing.T) {
	type step struct {
		event harness.SessionEvent
		to    harness.SessionState
	}
	for name, steps := range map[string][]step{
		"a login":      {{harness.SessionLoggedOut, harness.StateAuthRequired}, {harness.SessionOpened, harness.StateReady}},
		"a late login": {{harness.SessionOpened, harness.StateReady}, {harness.SessionLoggedOut, harness.StateAuthRequired}, {harness.SessionLost, harness.StateFailed}},
		"a restart":    {{harness.SessionOpened, harness.StateReady}, {harness.SessionFound, harness.StateInterrupted}, {harness.SessionReopening, harness.StateStarting}},
		"an end":       {{harness.SessionOpened, harness.StateReady}, {harness.SessionClosing, harness.StateClosed}, {harness.SessionLost, ""}, {harness.SessionFound, ""}},
		"nothing new":  {{harness.SessionReopening, ""}, {harness.SessionFound, harness.StateInterrupted}, {harness.SessionOpened, ""}},
	} {
		s := harness.Session{State: harness.StateStarting}
		for _, c := range steps {
			next, ok := s.Moved(c.event, nil, start)
			if ok != (c.to != "") || ok && next.State != c.to {
				t.Errorf("%s: %s in %s gives %s, %v", name, c.event, s.State, next.State, ok)
			}
			s = next
		}
	}
}

// Only a ready and idle session starts anything (part 2.4).
func TestOnlyAnIdleReadySessionStartsWork(t *testing.T) {
	states := []harness.SessionState{harness.StateStarting, harness.StateAuthRequired, harness.StateReady, harness.StateFailed, harness.StateClosed, harness.StateInterrupted}
	slots := []harness.Slot{harness.SlotIdle, harness.SlotAccepting, harness.SlotRunning, harness.SlotWaitingInput, harness.SlotSwitching, harness.SlotCancelling, harness.SlotAuthenticating}
	for _, state := range states {
		for _, slot := range slots {
			err := harness.MayStart(harness.Session{ID: "s", State: state}, slot)
			if want := state == harness.StateReady && slot == harness.SlotIdle; (err == nil) != want {
				t.Errorf("%s and %s: %v", state, slot, err)
			}
			if _, msg, hint := fault.Public(err); err != nil && (msg == "" || hint == "") {
				t.Errorf("%s and %s: no next action in %v", state, slot, err)
			}
		}
	}
}

func TestTheSlotFollowsFromWhatIsTrue(t *testing.T) {
	for want, d := range map[harness.Slot]harness.Doing{
		harness.SlotIdle:           {},
		harness.SlotAccepting:      {Message: harness.MessageQueued, Unsettled: true},
		harness.SlotRunning:        {Message: harness.MessageRunning, Unsettled: true},
		harness.SlotWaitingInput:   {Message: harness.MessageWaiting, Unsettled: true},
		harness.SlotSwitching:      {Switching: true},
		harness.SlotCancelling:     {Unsettled: true}, // its message ended, its prompt did not
		harness.SlotAuthenticating: {Authenticating: true},
	} {
		if got := d.Slot(); got != want {
			t.Errorf("%+v is %s, want %s", d, got, want)
		}
	}
}

// A login is only ready after the agent opened a session, and an end can begin again.
func TestALoginEndsByProofAlone(t *testing.T) {
	events := []harness.AuthEvent{harness.AuthBegan, harness.AuthPicked, harness.AuthAsked, harness.AuthAnswered, harness.AuthProved, harness.AuthBroke, harness.AuthDeclined,
		harness.AuthLate, harness.AuthBarred}
	rapid.Check(t, func(t *rapid.T) {
		s := harness.AuthNone
		for range rapid.IntRange(1, 10).Draw(t, "events") {
			e := rapid.SampledFrom(events).Draw(t, "event")
			next, ok := s.Next(e)
			if ok && next == harness.AuthReady && e != harness.AuthProved {
				t.Fatalf("%s made it ready", e)
			}
			if ok && e == harness.AuthAnswered && next != harness.AuthRunning {
				t.Fatalf("an answer made it %s", next)
			}
			s = next
		}
	})
}

// Case 54.
func TestTheRateOfLoginsIsLimited(t *testing.T) {
	r := harness.RateLimit{MinInterval: time.Minute, MaxAttempts: 10, Window: 24 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		var allowed []time.Time
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3*3600).Draw(t, "seconds")) * time.Second)
			err := r.Allow(allowed, now)
			if err != nil {
				wait, _ := harness.DetailOf(err)["retry_after_seconds"].(int)
				if !fault.Is(err, harness.AuthRateLimited) || wait < 1 {
					t.Fatalf("%v %v", err, harness.DetailOf(err))
				}
				if later := r.Allow(allowed, now.Add(time.Duration(wait)*time.Second)); later != nil {
					t.Fatalf("after the wait that was told: %v", later)
				}
				continue
			}
			allowed = append(allowed, now)
			inWindow := 0
			for i, at := range allowed {
				if now.Sub(at) < r.Window {
					inWindow++
				}
				if i > 0 && at.Sub(allowed[i-1]) < r.MinInterval {
					t.Fatal("two attempts within a minute")
				}
			}
			if inWindow > r.MaxAttempts {
				t.Fatalf("%d attempts in a window", inWindow)
			}
		}
	})
	if err := r.Allow([]time.Time{start.Add(time.Hour)}, start); err == nil {
		t.Error("a clock that was set back opens the gate")
	}
}

// Every answer has one effect, and a refused one has none (part 2.7).
func TestAnswersAreRoutedAsTheProtocolWantsIt(t *testing.T) {
	permission := harness.Question{Style: harness.StylePermission, Options: []harness.Option{{ID: "a", Kind: "allow_once"}, {ID: "n!", Kind: "reject_always"}, {ID: "n", Kind: "reject_once"}}}
	form := harness.Question{Style: harness.StyleElicitation}
	plain := harness.Question{Style: harness.StylePlain}
	for _, c := range []struct {
		q    harness.Question
		a    harness.Answer
		want harness.Route
	}{
		{permission, harness.Answer{OptionID: "a"}, harness.Route{As: harness.RoutedSelected, OptionID: "a"}},
		{permission, harness.Answer{OptionID: "n!"}, harness.Route{As: harness.RoutedSelected, OptionID: "n!", Rejected: true}},
		{permission, harness.Answer{Word: "reject"}, harness.Route{As: harness.RoutedSelected, OptionID: "n", Rejected: true}},
		{permission, harness.Answer{Word: "cancel"}, harness.Route{As: harness.RoutedCancelled}},
		{permission, harness.Answer{Word: "timeout"}, harness.Route{As: harness.RoutedCancelled}},
		{form, harness.Answer{Word: "reject"}, harness.Route{As: harness.RoutedDecline, Rejected: true}},
		{form, harness.Answer{Word: "timeout"}, harness.Route{As: harness.RoutedCancel}},
		{plain, harness.Answer{Word: "reject"}, harness.Route{As: harness.RoutedTurnCancelled, CancelReason: harness.ReasonRejected, Rejected: true}},
		{plain, harness.Answer{Word: "timeout"}, harness.Route{As: harness.RoutedTurnCancelled, CancelReason: harness.ReasonTimeout}},
		{plain, harness.Answer{Word: "cancel"}, harness.Route{As: harness.RoutedTurnCancelled, CancelReason: harness.ReasonUser}},
	} {
		if got, err := c.q.Route(c.a); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %+v: %+v %v", c.q.Style, c.a, got, err)
		}
	}
}

func TestAnAccountShowsAFewNamesOnly(t *testing.T) {
	got := harness.Account(map[string]any{"email": "a@b", "token": "x", "name": " ", "userId": 7.0, "nickname": []any{"x"}})
	if !reflect.DeepEqual(got, map[string]any{"email": "a@b", "userId": 7.0}) {
		t.Errorf("%v", got)
	}
}

// Part 4.6: the agents' own words for our four modes.
func TestAPermissionModeIsFoundInWhatTheAgentOffers(t *testing.T) {
	for _, c := range []struct {
		mode, want string
		offered    []string
	}{
		{harness.ModeRead, "read-only", []string{"agent", "read-only"}}, {harness.ModeRead, "plan", []string{"default", "plan"}},
		{harness.ModeEdit, "acceptEdits", []string{"default", "acceptEdits"}}, {harness.ModeAuto, "agent", []string{"auto", "agent"}},
		{harness.ModeYolo, "", []string{"default", "plan"}},
	} {
		got, err := harness.AgentMode(c.mode, c.offered)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of %v is %q, %v", c.mode, c.offered, got, err)
		}
		if err != nil && !slices.Equal(harness.DetailOf(err)["offered"].([]string), c.offered) {
			t.Error("the refusal does not say what there is")
		}
	}
}

package turn_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func stalled(t *testing.T) turn.Turn {
	t.Helper()
	p := turn.CheckDeadlines(accepted(t), t0.Add(time.Hour))
	if p.Turn.Status != turn.Stalled {
		t.Fatalf("%+v", p.Turn)
	}
	return p.Turn
}

func stopAsked(t *testing.T) turn.Turn {
	t.Helper()
	p, err := turn.RequestCancel(accepted(t), turn.Cancel{Call: "c", Means: "key:Escape"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	return turn.SettleCancel(p.Turn, turn.CancelSent, "", t0).Turn
}

func TestRenewMovesTheInactivityDeadlineAndNeverTheHardOne(t *testing.T) { // spec case 49, part 2.12
	s := stalled(t)
	hard := s.HardDeadline()
	now := t0.Add(2 * time.Hour)
	p, err := turn.Renew(s, 30*time.Minute, "c", now)
	if err != nil || p.Turn.Status != turn.WaitingForAgent || p.Turn.Reason != "" || p.Turn.Renewals != 1 || len(p.Notices) != 0 {
		t.Fatalf("%+v %v", p, err)
	}
	if !p.Turn.NextDeadline().Equal(now.Add(30*time.Minute)) || !p.Turn.HardDeadline().Equal(hard) {
		t.Errorf("deadline %v, hard %v", p.Turn.NextDeadline(), p.Turn.HardDeadline())
	}
	if again := turn.CheckDeadlines(p.Turn, now.Add(30*time.Minute)); again.Turn.Status != turn.Stalled || len(again.Notices) != 1 {
		t.Errorf("%+v", again)
	}
	late, err := turn.Renew(s, 20*time.Hour, "c", t0.Add(11*time.Hour))
	if err != nil || !late.Turn.NextDeadline().Equal(hard) {
		t.Errorf("renewed past the hard limit: %v %v", late.Turn.NextDeadline(), err)
	}
	if p, err = turn.Renew(s, 0, "c", now); err != nil || p.Turn.Inactivity != s.Inactivity {
		t.Errorf("without minutes: %v %v", p.Turn.Inactivity, err)
	}
}

func TestRenewOfATurnAtAPromptWaitsForTheController(t *testing.T) {
	a := turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "p"}}, t0).Turn
	p, err := turn.Renew(turn.CheckDeadlines(a, t0.Add(time.Hour)).Turn, time.Hour, "c", t0.Add(time.Hour))
	if err != nil || p.Turn.Status != turn.WaitingForController {
		t.Errorf("%+v %v", p.Turn, err)
	}
}

func TestOnlyAStalledTurnThatMayStillEndIsRenewed(t *testing.T) { // spec part 2.12
	injected, err := turn.Inject(reserved(), t0)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		t   turn.Turn
		now time.Time
	}{
		"waiting":             {accepted(t), t0},
		"done":                {turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1"}, t0).Turn, t0},
		"uncertain":           {turn.MarkUncertain(injected.Turn, "why", t0).Turn, t0},
		"not accepted":        {turn.Observe(entered(t), turn.Observation{Kind: turn.ObsNotAccepted}, t0).Turn, t0},
		"verified dead":       {turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsGone}, t0).Turn, t0},
		"at the hard limit":   {stalled(t), t0.Add(12 * time.Hour)},
		"past the hard limit": {turn.CheckDeadlines(accepted(t), t0.Add(13*time.Hour)).Turn, t0.Add(13 * time.Hour)},
	} {
		_, err := turn.Renew(tc.t, time.Hour, "c", tc.now)
		if _, _, hint := fault.Public(err); !fault.Is(err, turn.CodeNotAllowed) || hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALateExactCompletionSettlesAStalledTurn(t *testing.T) { // spec cases 49, 52
	s := stalled(t)
	if !s.Monitored() {
		t.Error("nobody watches a stalled Turn")
	}
	if p := turn.Observe(s, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "other", Text: "no"}, t0); len(p.Events) != 0 {
		t.Errorf("%+v", p)
	}
	p := turn.Observe(s, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "late"}, t0.Add(2*time.Hour))
	if p.Turn.Status != turn.Idle || p.Turn.Reason != "" || len(p.Notices) != 1 || p.Notices[0].Body != "late" {
		t.Errorf("%+v", p)
	}
}

func TestCancelEndsATurnOnlyByTheAgentsOwnEvidence(t *testing.T) { // spec part 2.14
	a := stopAsked(t)
	if a.Status != turn.WaitingForAgent || !a.CancelPending() || a.CancelRequestedAt.IsZero() {
		t.Fatalf("a key alone ended the Turn: %+v", a)
	}
	for name, tc := range map[string]struct {
		o      turn.Observation
		status turn.Status
		proved bool
		kind   string
	}{
		"interrupted":         {turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n1"}, turn.Cancelled, true, "interrupted"},
		"completion wins":     {turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "x"}, turn.Idle, false, "completion"},
		"failure wins":        {turn.Observation{Kind: turn.ObsFailed, NativeTurnID: "n1"}, turn.Failed, false, "failure"},
		"idle without an end": {turn.Observation{Kind: turn.ObsTrouble, Code: turn.CodeIdleNoEnd, NativeTurnID: "n1"}, turn.Cancelled, false, "interrupted"},
		"another trouble":     {turn.Observation{Kind: turn.ObsTrouble, Code: "x"}, turn.WaitingForAgent, false, ""},
		"idle before the key": {turn.Observation{Kind: turn.ObsTrouble, Code: turn.CodeIdleNoEnd, At: t0.Add(-time.Second)}, turn.WaitingForAgent, false, ""},
		"of another turn":     {turn.Observation{Kind: turn.ObsTrouble, Code: turn.CodeIdleNoEnd, NativeTurnID: "n2"}, turn.WaitingForAgent, false, ""},
		"the agent died":      {turn.Observation{Kind: turn.ObsGone}, turn.Stalled, false, "stalled"},
	} {
		p := turn.Observe(a, tc.o, t0.Add(time.Second))
		kind := ""
		if len(p.Notices) > 0 {
			kind = p.Notices[0].Kind
		}
		if p.Turn.Status != tc.status || p.Turn.StopProved != tc.proved || kind != tc.kind || len(p.Notices) > 1 {
			t.Errorf("%s: %s, proved %v, told %q", name, p.Turn.Status, p.Turn.StopProved, kind)
		}
		if p.Turn.Status == turn.Cancelled && (p.Turn.EndedAt.IsZero() || p.Turn.FinalMessage == "") {
			t.Errorf("%s: %+v", name, p.Turn)
		}
	}
}

func TestAStopThatNobodyAskedForIsNoCancel(t *testing.T) {
	p, err := turn.RequestCancel(accepted(t), turn.Cancel{Call: "c"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	not := turn.SettleCancel(p.Turn, turn.CancelNotSent, "the pane is gone", t0).Turn
	if not.CancelPending() || !not.CancelRequestedAt.IsZero() {
		t.Errorf("%+v", not)
	}
	for _, o := range []turn.Observation{{Kind: turn.ObsInterrupted, NativeTurnID: "n1"}} {
		if got := turn.Observe(not, o, t0).Turn; got.Status != turn.Failed || got.StopProved {
			t.Errorf("%+v", got)
		}
	}
	if got := turn.Observe(not, turn.Observation{Kind: turn.ObsTrouble, Code: turn.CodeIdleNoEnd}, t0).Turn; got.Status != turn.WaitingForAgent {
		t.Errorf("%+v", got)
	}
}

func TestACloseSaysWhatWasKnown(t *testing.T) { // spec part 2.15
	p, err := turn.Close(accepted(t), turn.Closing{Reason: "x", Disposition: turn.DispositionDead}, t0)
	if err != nil || !p.Turn.ProcessGone || p.Turn.Disposition != turn.DispositionDead || p.Turn.Status != turn.Closed {
		t.Errorf("%+v %v", p.Turn, err)
	}
	open := turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "p"}}, t0).Turn
	p, err = turn.Close(open, turn.Closing{}, t0)
	if err != nil || p.DropsQuestion(open) || p.Turn.Prompt != nil { // spec case 35
		t.Errorf("a close takes the question back: %+v %v", p, err)
	}
}

// Whatever the order of cancels, renewals and evidence: the state is the fold, an end is
// told once, a Turn is cancelled only after a request, and no clock passes the hard limit.
func TestAnyStoryOfCancelsAndRenewalsKeepsThePromises(t *testing.T) {
	kinds := []turn.ObservationKind{turn.ObsActivity, turn.ObsCompleted, turn.ObsFailed, turn.ObsInterrupted, turn.ObsPrompt, turn.ObsPromptCleared, turn.ObsGone, turn.ObsTrouble}
	start := accepted(t)
	rapid.Check(t, func(t *rapid.T) {
		cur, now, ends, requested := start, t0, 0, false
		var journal []turn.Event
		take := func(p turn.Plan, err error) {
			if err != nil {
				return
			}
			before := cur
			journal, cur = append(journal, p.Events...), p.Turn
			for _, n := range p.Notices {
				if n.Kind == "completion" || n.Kind == "failure" || n.Kind == "interrupted" {
					ends++
				}
			}
			if !before.Status.Blocking() && cur.Status != before.Status && cur.Status != turn.Closed {
				t.Fatalf("%s became %s", before.Status, cur.Status)
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 70).Draw(t, "minutes")) * time.Minute)
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				p, err := turn.RequestCancel(cur, turn.Cancel{Call: "c"}, now)
				requested = requested || err == nil
				take(p, err)
			case 1:
				take(turn.SettleCancel(cur, rapid.SampledFrom([]turn.CancelState{turn.CancelSent, turn.CancelNotSent, turn.CancelUncertain}).Draw(t, "state"), "", now), nil)
			case 2:
				take(turn.Renew(cur, time.Duration(rapid.IntRange(0, 100).Draw(t, "renew"))*time.Hour, "c", now))
			case 3:
				take(turn.CheckDeadlines(cur, now), nil)
			default:
				o := turn.Observation{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), NativeTurnID: "n1", Code: rapid.SampledFrom([]string{"x", turn.CodeIdleNoEnd}).Draw(t, "code"), At: now}
				if o.Kind == turn.ObsPrompt {
					o.Prompt = &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: "p"}
				}
				take(turn.Observe(cur, o, now), nil)
			}
			if d := cur.NextDeadline(); d.After(start.HardDeadline()) {
				t.Fatalf("a deadline at %v, the hard limit is %v", d, start.HardDeadline())
			}
		}
		if ends > 1 || cur.Status == turn.Cancelled && !requested || cur.StopProved && cur.Status != turn.Cancelled {
			t.Fatalf("%d ends, %+v", ends, cur)
		}
		fold := start
		for _, e := range journal {
			var err error
			if fold, err = turn.Apply(fold, e); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(fold, cur) {
			t.Fatalf("fold %+v\nstate %+v", fold, cur)
		}
	})
}

func TestACancelledTaskIsToldAsWhatIsKnown(t *testing.T) {
	proved := turn.Observe(stopAsked(t), turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n1"}, t0)
	idle := turn.Observe(stopAsked(t), turn.Observation{Kind: turn.ObsTrouble, Code: turn.CodeIdleNoEnd}, t0)
	if b := proved.Notices[0].Body; !strings.Contains(b, "own record shows that it stopped") {
		t.Error(b)
	}
	if b := idle.Notices[0].Body; !strings.Contains(b, "no record of its own") {
		t.Error(b)
	}
}

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

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func reserved() turn.Turn {
	return turn.Reserve(turn.Turn{ID: "turn-1", MessageID: "msg-1", Agent: "codex", Inactivity: time.Hour, Hard: 12 * time.Hour,
		Terminal: "terminal:v2:tmux:codex:main:0.0:1"}, t0).Turn
}

func entered(t *testing.T) turn.Turn {
	t.Helper()
	p, err := turn.Inject(reserved(), t0)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = turn.Enter(p.Turn, t0); err != nil {
		t.Fatal(err)
	}
	return p.Turn
}

func accepted(t *testing.T) turn.Turn {
	t.Helper()
	return turn.Observe(entered(t), turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n1", Source: "rollout"}, t0).Turn
}

func TestTheProofLadderAdvancesInOrderAndNeverTypesTwice(t *testing.T) { // spec case 37
	r := reserved()
	if _, err := turn.Enter(r, t0); !fault.Is(err, turn.CodeNotAllowed) {
		t.Fatalf("Enter before the text: %v", err)
	}
	p, err := turn.Inject(r, t0)
	if err != nil || p.Turn.Stage != turn.TextInjected {
		t.Fatal(p.Turn.Stage, err)
	}
	if _, err := turn.Inject(p.Turn, t0); !fault.Is(err, turn.CodeNotAllowed) {
		t.Fatalf("text typed twice: %v", err)
	}
	a := accepted(t)
	if a.Stage != turn.Accepted || a.Status != turn.WaitingForAgent || a.SubmissionStatus() != turn.SubmissionPending {
		t.Fatalf("%+v", a)
	}
}

func TestAbortIsOnlyForASubmissionThatNeverLeft(t *testing.T) { // spec case 38
	p, err := turn.Abort(reserved(), "tmux is absent", t0)
	if err != nil || p.Turn.Status.Blocking() || p.Turn.SubmissionStatus() != turn.SubmissionAborted {
		t.Fatalf("%+v %v", p.Turn, err)
	}
	if _, err := turn.Abort(entered(t), "x", t0); !fault.Is(err, turn.CodeNotAllowed) {
		t.Fatal(err)
	}
}

func TestUncertainInputIsReportedOnceAndALateAcceptanceStillWins(t *testing.T) {
	p, err := turn.Inject(reserved(), t0)
	if err != nil {
		t.Fatal(err)
	}
	u := turn.MarkUncertain(p.Turn, "tmux did not answer", t0)
	if u.Turn.Status != turn.Stalled || len(u.Notices) != 1 || u.Notices[0].Type != "error" {
		t.Fatalf("%+v", u)
	}
	if again := turn.MarkUncertain(u.Turn, "x", t0); len(again.Events) != 0 {
		t.Fatal("uncertain twice")
	}
	a := turn.Observe(u.Turn, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n1"}, t0)
	if a.Turn.Stage != turn.Accepted || a.Turn.Status != turn.WaitingForAgent {
		t.Fatalf("%+v", a.Turn)
	}
}

func TestCompletionOfAnotherNativeTurnIsIgnored(t *testing.T) { // spec case 46, H8 d
	a := accepted(t)
	if p := turn.Observe(a, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "other", Text: "no"}, t0); len(p.Events) != 0 {
		t.Fatalf("%+v", p)
	}
	p := turn.Observe(a, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "yes", Source: "rollout"}, t0)
	if p.Turn.Status != turn.Idle || len(p.Notices) != 1 || p.Notices[0].Body != "yes" || p.Notices[0].Type != "done" {
		t.Fatalf("%+v", p)
	}
	if again := turn.Observe(p.Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "yes"}, t0); len(again.Events) != 0 {
		t.Fatal("completed twice")
	}
}

func TestAnInterruptedTaskIsReportedOnce(t *testing.T) { // E03, H8 c
	p := turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n1", Code: "interrupted"}, t0)
	if p.Turn.Status != turn.Failed || len(p.Notices) != 1 || p.Notices[0].Kind != "interrupted" {
		t.Fatalf("%+v", p)
	}
}

func TestDeadlinesStallAtTheBoundaryAndTheHardOneWins(t *testing.T) { // spec case 49
	a := accepted(t)
	if p := turn.CheckDeadlines(a, t0.Add(time.Hour-1)); len(p.Events) != 0 {
		t.Fatal("stalled early")
	}
	p := turn.CheckDeadlines(a, t0.Add(time.Hour))
	if p.Turn.Status != turn.Stalled || !strings.Contains(p.Turn.Reason, "no activity") {
		t.Fatalf("%+v", p.Turn)
	}
	if p := turn.CheckDeadlines(a, t0.Add(12*time.Hour)); !strings.Contains(p.Turn.Reason, "hard limit") {
		t.Fatalf("%+v", p.Turn)
	}
	alive := turn.Observe(a, turn.Observation{Kind: turn.ObsActivity}, t0.Add(50*time.Minute)).Turn
	if p := turn.CheckDeadlines(alive, t0.Add(61*time.Minute)); len(p.Events) != 0 {
		t.Fatal("activity did not reset the clock")
	}
	// A stalled Turn is still settled by an exact late completion.
	late := turn.Observe(p.Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "late"}, t0.Add(2*time.Hour))
	if late.Turn.Status != turn.Idle {
		t.Fatalf("%+v", late.Turn)
	}
}

func TestAPromptIsToldOncePerFingerprint(t *testing.T) { // spec case 50
	prompt := func(fp string) turn.Observation {
		return turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: fp, Title: "Run it?", Approvable: true}}
	}
	p := turn.Observe(accepted(t), prompt("a"), t0)
	if p.Turn.Status != turn.WaitingForController || len(p.Notices) != 1 || !p.Notices[0].RequiresResponse {
		t.Fatalf("%+v", p)
	}
	if again := turn.Observe(p.Turn, prompt("a"), t0); len(again.Events) != 0 {
		t.Fatal("told twice")
	}
	cleared := turn.Observe(p.Turn, turn.Observation{Kind: turn.ObsPromptCleared}, t0)
	if cleared.Turn.Status != turn.WaitingForAgent || len(cleared.Notices) != 0 {
		t.Fatalf("%+v", cleared)
	}
	if repaint := turn.Observe(cleared.Turn, prompt("a"), t0); len(repaint.Notices) != 0 {
		t.Fatal("a repainted prompt was told again")
	}
	if next := turn.Observe(cleared.Turn, prompt("b"), t0); len(next.Notices) != 1 {
		t.Fatal("a new prompt was not told")
	}
	if back := turn.Observe(cleared.Unheard(t0).Turn, prompt("a"), t0); len(back.Notices) != 1 {
		t.Fatal("a prompt that nobody heard of came back and was not told")
	}
}

func TestADeadAgentStallsOnceWithEvidence(t *testing.T) { // spec case 52, E09
	p := turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsGone, Source: "process"}, t0)
	if p.Turn.Status != turn.Stalled || p.Turn.Monitored() || len(p.Notices) != 1 || p.Turn.Evidence != "process" {
		t.Fatalf("%+v", p)
	}
	if again := turn.Observe(p.Turn, turn.Observation{Kind: turn.ObsGone}, t0); len(again.Events) != 0 {
		t.Fatal("gone twice")
	}
}

func TestWhoIsRefusedBecauseOfATurnIsToldWhatHelps(t *testing.T) { // waiting helps only while the agent works
	if step := accepted(t).NextStep(); !strings.Contains(step, "wait") {
		t.Errorf("working: %s", step)
	}
	dead := turn.Observe(accepted(t), turn.Observation{Kind: turn.ObsGone}, t0).Turn
	if step := dead.NextStep(); strings.Contains(step, "wait") || !strings.Contains(step, "decision") {
		t.Errorf("stalled: %s", step)
	}
}

func TestRecoveryOfADeadDispatcher(t *testing.T) { // spec part 4.4
	if p := turn.Recover(reserved(), t0); p.Turn.Stage != turn.Aborted {
		t.Fatal(p.Turn.Stage)
	}
	injected, err := turn.Inject(reserved(), t0)
	if err != nil {
		t.Fatal(err)
	}
	if p := turn.Recover(injected.Turn, t0); p.Turn.Stage != turn.Uncertain || len(p.Notices) != 1 {
		t.Fatal(p.Turn.Stage)
	}
	if p := turn.Recover(entered(t), t0); len(p.Events) != 0 {
		t.Fatal("a sent Enter needs no decision, only a monitor")
	}
}

func TestAnAgentThatDiesBeforeTheFirstByteGetsNone(t *testing.T) { // spec case 38
	p := turn.Observe(reserved(), turn.Observation{Kind: turn.ObsGone, Source: "process"}, t0)
	if p.Turn.Stage != turn.Reserved || len(p.Notices) != 0 {
		t.Fatalf("%+v", p)
	}
	if _, err := turn.Inject(p.Turn, t0); !fault.Is(err, turn.CodeNotAllowed) {
		t.Fatalf("text for a dead agent: %v", err)
	}
	if after := turn.Recover(p.Turn, t0); after.Turn.Stage != turn.Aborted || after.Turn.Status.Blocking() {
		t.Fatalf("a cut-off reservation keeps its terminal: %+v", after.Turn)
	}
}

func TestWithoutLimitsThereIsNoDeadline(t *testing.T) {
	a := accepted(t)
	a.Hard = 0
	if d := a.NextDeadline(); !d.Equal(t0.Add(a.Inactivity)) {
		t.Errorf("without a hard limit: %v", d)
	}
	a.Inactivity = 0
	if d := a.NextDeadline(); !d.IsZero() {
		t.Errorf("without any limit: %v", d)
	}
}

func TestAClosedTurnFreesItsTerminalAndHearsNoMore(t *testing.T) {
	if _, err := turn.Close(reserved(), turn.Closing{Reason: ""}, t0); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("a submission in flight was closed: %v", err)
	}
	p, err := turn.Close(accepted(t), turn.Closing{Reason: ""}, t0)
	if err != nil || p.Turn.Status.Blocking() || p.Turn.Reason == "" {
		t.Fatalf("%+v %v", p.Turn, err)
	}
	sent, err := turn.Close(entered(t), turn.Closing{Reason: ""}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if late := turn.MarkUncertain(sent.Turn, "why", t0); len(late.Events) != 0 {
		t.Error("a late failure of the input reopened a closed Turn")
	}
	if again, err := turn.Close(p.Turn, turn.Closing{Reason: "again"}, t0); err != nil || len(again.Events) != 0 {
		t.Errorf("closed twice: %+v %v", again, err)
	}
	if late := turn.Observe(p.Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n1", Text: "late"}, t0); len(late.Events) != 0 {
		t.Error("late evidence reopened a closed Turn")
	}
}

func TestTextThatDrivesTheAgentsOwnCommandsIsRefused(t *testing.T) { // spec case 41
	for text, want := range map[string]fault.Code{
		"/clear":                         fault.Invalid,
		"/clear now":                     fault.Invalid,
		"  /compact\nrest":               fault.Invalid,
		"/tmp/file is the one to mend":   "",
		"/Users/me/x":                    "",
		"look at /clear":                 "",
		"first\n/clear":                  "",
		" \n\t ":                         fault.Invalid,
		strings.Repeat("x", 1<<20):       "",
		strings.Repeat("x", 1<<20) + "y": fault.Invalid,
	} {
		if got := fault.CodeOf(turn.CheckText(text)); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

// TestAnyStoryKeepsThePromises plays random commands and observations. Whatever the order:
// the state is the fold of the journal, text is injected at most once, a released Turn
// stays released, and the Host hears of one outcome at most.
func TestAnyStoryKeepsThePromises(t *testing.T) {
	kinds := []turn.ObservationKind{turn.ObsArmed, turn.ObsAccepted, turn.ObsActivity, turn.ObsCompleted, turn.ObsFailed,
		turn.ObsInterrupted, turn.ObsNotAccepted, turn.ObsPrompt, turn.ObsPromptCleared, turn.ObsGone, turn.ObsTrouble}
	rapid.Check(t, func(t *rapid.T) {
		now := t0
		p := turn.Reserve(turn.Turn{ID: "turn-1", MessageID: "msg-1", Inactivity: time.Hour, Hard: 3 * time.Hour}, now)
		journal, cur := p.Events, p.Turn
		outcomes, injections := 0, 0
		seen := map[string]bool{}
		released := false
		take := func(p turn.Plan) {
			journal, cur = append(journal, p.Events...), p.Turn
			for _, n := range p.Notices {
				if seen[n.MessageID] {
					t.Fatalf("message %s twice", n.MessageID)
				}
				seen[n.MessageID] = true
				if n.Kind == "completion" || n.Kind == "failure" || n.Kind == "interrupted" {
					outcomes++
				}
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				if p, err := turn.Inject(cur, now); err == nil {
					injections++
					take(p)
				}
			case 1:
				if p, err := turn.Enter(cur, now); err == nil {
					take(p)
				}
			case 2:
				if rapid.Bool().Draw(t, "recover") {
					take(turn.Recover(cur, now))
				} else {
					take(turn.CheckDeadlines(cur, now))
				}
			case 3:
				if p, err := turn.Close(cur, turn.Closing{Reason: "enough"}, now); err == nil && rapid.IntRange(0, 9).Draw(t, "close") == 0 {
					take(p)
				} else {
					take(turn.MarkUncertain(cur, "why", now))
				}
			default:
				o := turn.Observation{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), NativeTurnID: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "native"),
					Text: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "text")}
				if o.Kind == turn.ObsPrompt {
					o.Prompt = &turn.Prompt{Fingerprint: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "prompt")}
				}
				p := turn.Observe(cur, o, now)
				if p.DropsQuestion(cur) && rapid.Bool().Draw(t, "unheard") {
					p = p.Unheard(now)
				}
				take(p)
			}
			if released && cur.Status.Blocking() {
				t.Fatalf("a released Turn is %s again", cur.Status)
			}
			released = released || !cur.Status.Blocking()
		}
		if injections > 1 || outcomes > 1 {
			t.Fatalf("%d injections, %d outcomes", injections, outcomes)
		}
		var fold turn.Turn
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

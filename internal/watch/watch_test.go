package watch_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/watch"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	secret    = "the task's own words"
	watchID   = ids.WatchID("terminal-watch-1")
	longLimit = 12 * time.Hour
)

func created(mode watch.Mode) watch.Plan {
	return watch.Create(watch.Watch{ID: watchID, Mode: mode, Agent: "codex", Terminal: "terminal:v2:tmux:codex:main:0.0:1",
		Anchor: turn.Anchor{Agent: "codex", RequestHash: ids.TextHash(secret)}}, t0)
}

func active() watch.Watch { return created(watch.ModeTask).Watch }

func prompt(kind turn.PromptKind, fp string) turn.Observation {
	return turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: kind, Fingerprint: fp, Title: "Run rm -rf?", Options: []turn.PromptOption{{Label: "Yes"}}}}
}

func trouble(code string) turn.Observation {
	return turn.Observation{Kind: turn.ObsTrouble, Code: code, Detail: "detail"}
}

// Every row of the table of spec part 10.4.
func TestEachObservationHasItsOneMeaning(t *testing.T) { // spec cases 54, 55
	for name, c := range map[string]struct {
		o       turn.Observation
		status  watch.Status
		reason  string
		problem string
		rearm   bool
		notices int
	}{
		"exact completion":               {o: turn.Observation{Kind: turn.ObsCompleted, Text: "done"}, status: watch.Completed, reason: watch.ReasonCompleted, notices: 1},
		"API error":                      {o: turn.Observation{Kind: turn.ObsFailed, Code: "overloaded"}, status: watch.Failed, reason: watch.ReasonFailed, notices: 1},
		"abort":                          {o: turn.Observation{Kind: turn.ObsInterrupted, Code: "interrupted"}, status: watch.Failed, reason: watch.ReasonFailed, notices: 1},
		"a later task and no end":        {o: turn.Observation{Kind: turn.ObsInterrupted, Code: "superseded"}, status: watch.Invalidated, reason: watch.ReasonAnchor, notices: 1},
		"log replaced":                   {o: trouble("rollout_replaced"), status: watch.Invalidated, reason: watch.ReasonAnchor, notices: 1},
		"log truncated":                  {o: trouble("log_truncated"), status: watch.Invalidated, reason: watch.ReasonAnchor, notices: 1},
		"another task in the thread":     {o: trouble("turn_left_open"), status: watch.Invalidated, reason: watch.ReasonAnchor, notices: 1},
		"another thread in the terminal": {o: trouble("thread_changed"), status: watch.Invalidated, reason: watch.ReasonIdentity, notices: 1},
		"process gone":                   {o: turn.Observation{Kind: turn.ObsGone}, status: watch.Invalidated, reason: watch.ReasonProcess, notices: 1},
		"approval prompt":                {o: prompt(turn.PromptApproval, "a"), status: watch.Active, notices: 1},
		"question":                       {o: prompt(turn.PromptQuestion, "a"), status: watch.Active, notices: 1},
		"a picker that a person opened":  {o: prompt(turn.PromptDialog, "a"), status: watch.Active},
		"log unreadable":                 {o: trouble("log_unreadable"), status: watch.Active, problem: watch.ProblemProvider, rearm: true},
		"agent idle, no end in its log":  {o: trouble("idle_without_end"), status: watch.Active, problem: watch.ProblemProvider},
		"tmux unreadable":                {o: trouble("screen_unreadable"), status: watch.Active, problem: watch.ProblemTerminal},
		"a code of tomorrow":             {o: trouble("never_heard_of"), status: watch.Active, problem: watch.ProblemProvider},
		"armed":                          {o: turn.Observation{Kind: turn.ObsArmed}, status: watch.Active},
	} {
		p := watch.Observe(active(), c.o, t0.Add(time.Second))
		w := p.Watch
		if w.Status != c.status || len(p.Notices) != c.notices || p.Rearm != c.rearm || (w.Problem != nil) != (c.problem != "") {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		if w.Problem != nil && w.Problem.Code != c.problem {
			t.Errorf("%s: problem %+v", name, w.Problem)
		}
		if (w.Settlement != nil) != (c.reason != "") || w.Settlement != nil && (w.Settlement.Reason != c.reason || !p.Supersedes) {
			t.Errorf("%s: settled as %+v", name, w.Settlement)
		}
	}
}

func TestTheDeadlineIsAskedBeforeAnyEvidence(t *testing.T) {
	w := active()
	if w.DeadlineAt != t0.Add(longLimit) {
		t.Fatalf("deadline %s", w.DeadlineAt)
	}
	if p := watch.CheckDeadline(w, t0.Add(longLimit-1)); len(p.Events) != 0 {
		t.Error("ended early")
	}
	p := watch.Observe(w, turn.Observation{Kind: turn.ObsCompleted, Text: "done"}, t0.Add(longLimit))
	if p.Watch.Status != watch.TimedOut || p.Watch.Settlement.Reason != watch.ReasonDeadline || len(p.Notices) != 1 {
		t.Errorf("%+v", p)
	}
}

func TestAnApprovalIsToldOncePerPromptAndMayNotBeGivenThroughAWatch(t *testing.T) {
	p := watch.Observe(active(), prompt(turn.PromptApproval, "a"), t0)
	if n := p.Notices[0]; n.Type != "approval_required" || !strings.Contains(n.Body, "may not approve") || !strings.Contains(n.Body, string(watchID)) {
		t.Errorf("%+v", n)
	}
	if again := watch.Observe(active(), prompt(turn.PromptApproval, "a"), t0); again.Notices[0].MessageID != p.Notices[0].MessageID {
		t.Error("the same fact has two ids")
	}
	w := p.Watch
	for _, o := range []turn.Observation{prompt(turn.PromptApproval, "a"), {Kind: turn.ObsPromptCleared}, prompt(turn.PromptApproval, "a")} {
		p := watch.Observe(w, o, t0)
		if w = p.Watch; len(p.Notices) != 0 {
			t.Errorf("%s was told again", o.Kind)
		}
	}
	next := watch.Observe(w, prompt(turn.PromptApproval, "b"), t0)
	if len(next.Notices) != 1 || next.Notices[0].MessageID == p.Notices[0].MessageID {
		t.Errorf("a new prompt: %+v", next.Notices)
	}
	done := watch.Observe(next.Watch, turn.Observation{Kind: turn.ObsCompleted, Text: "x"}, t0) // spec case 56
	if !done.Supersedes || len(done.Notices) != 1 || done.Watch.OpenPrompt != "" {
		t.Errorf("%+v", done)
	}
}

func TestAWatchByActivityPromisesNoTask(t *testing.T) {
	p := watch.Observe(created(watch.ModeActivity).Watch, turn.Observation{Kind: turn.ObsCompleted, Source: "screen"}, t0)
	if p.Watch.Settlement.Reason != watch.ReasonIdle || !strings.Contains(p.Notices[0].Body, "not a proof") {
		t.Errorf("%+v", p)
	}
	v := p.Watch.View(watch.Counts{}, true)
	if v.Confidence != "best_effort" || len(v.Warnings) == 0 || v.ActivityState != "settled" || len(v.Actions) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestASightingEndsAProblem(t *testing.T) {
	w := watch.Observe(active(), trouble("screen_unreadable"), t0).Watch
	if p := watch.Observe(w, trouble("screen_unreadable"), t0.Add(time.Second)); len(p.Events) != 0 {
		t.Error("the same problem twice")
	}
	if w = watch.Observe(w, turn.Observation{Kind: turn.ObsActivity}, t0.Add(time.Second)).Watch; w.Problem != nil {
		t.Errorf("%+v", w.Problem)
	}
	if p := watch.Observe(w, turn.Observation{Kind: turn.ObsActivity}, t0.Add(2*time.Second)); len(p.Events) != 0 {
		t.Error("each sign of activity is written")
	}
}

func TestALongAnswerIsCutInTheRecordAndWholeInTheCallback(t *testing.T) {
	text := strings.Repeat("é", watch.MaxSettlementText+1)
	p := watch.Observe(active(), turn.Observation{Kind: turn.ObsCompleted, Text: text}, t0)
	if s := p.Watch.Settlement; len(s.Text) != 2*watch.MaxSettlementText || s.TextBytes != len(text) || !strings.Contains(p.Notices[0].Body, text) {
		t.Errorf("kept %d of %d bytes", len(s.Text), s.TextBytes)
	}
	cut := watch.Observe(active(), turn.Observation{Kind: turn.ObsCompleted, Text: "begin", Truncated: true, FullBytes: 999}, t0)
	if !strings.Contains(cut.Notices[0].Body, "first 5 of 999 bytes") {
		t.Errorf("%s", cut.Notices[0].Body)
	}
}

func drawObservation(t *rapid.T) turn.Observation {
	o := turn.Observation{
		Kind: rapid.SampledFrom([]turn.ObservationKind{turn.ObsArmed, turn.ObsAccepted, turn.ObsActivity, turn.ObsCompleted, turn.ObsFailed,
			turn.ObsInterrupted, turn.ObsNotAccepted, turn.ObsPrompt, turn.ObsPromptCleared, turn.ObsGone, turn.ObsTrouble}).Draw(t, "kind"),
		ThreadID: "thread", Text: secret, Code: rapid.SampledFrom([]string{"", "superseded", "screen_unreadable", "log_unreadable", "rollout_replaced", "x"}).Draw(t, "code"),
	}
	if rapid.IntRange(0, 9).Draw(t, "often") > 0 && (o.Kind.Final() || o.Code == "rollout_replaced") {
		o.Kind = turn.ObsPrompt // or hardly any story would be long
	}
	if o.Kind == turn.ObsPrompt && rapid.IntRange(0, 9).Draw(t, "whole") > 0 {
		p := prompt(rapid.SampledFrom([]turn.PromptKind{turn.PromptApproval, turn.PromptQuestion, turn.PromptDialog}).Draw(t, "prompt"),
			rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "fingerprint"))
		p.Prompt.Detail, p.Prompt.Excerpt = secret, secret
		o.Prompt = p.Prompt
	}
	return o
}

// Whatever is seen in whatever order: the journal folds to the state, a Watch ends at most
// once and is silent after it, each prompt is told at most once, and no word of the task
// is in the journal.
func TestAnyStoryOfAWatchKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := created(rapid.SampledFrom([]watch.Mode{watch.ModeTask, watch.ModeActivity}).Draw(t, "mode"))
		w, journal := p.Watch, p.Events
		seen := map[string]bool{}
		now := t0
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "minutes")) * time.Minute)
			before := w
			var p watch.Plan
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				p = watch.Unwatch(w, now)
			case 1:
				p = watch.CheckDeadline(w, now)
			case 2:
				p = watch.Adopt(w, "bridge-a", "bridge-b", now)
			default:
				p = watch.Observe(w, drawObservation(t), now)
			}
			w = p.Watch
			journal = append(journal, p.Events...)
			if before.Status != watch.Active && (len(p.Events) > 0 || len(p.Notices) > 0 || !reflect.DeepEqual(before, w)) {
				t.Fatalf("it was %s and changed: %+v", before.Status, p)
			}
			if (before.Status != w.Status) != p.Supersedes || w.Status != watch.Active && w.Settlement == nil {
				t.Fatalf("%+v", p)
			}
			for _, n := range p.Notices {
				if seen[n.MessageID] {
					t.Fatalf("told twice: %+v", n)
				}
				seen[n.MessageID] = true
			}
		}
		folded := watch.Watch{}
		for _, e := range journal {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if s := string(b); strings.Contains(s, secret) && e.Kind != watch.EvSettled {
				t.Fatalf("the journal holds the agent's words: %s", b)
			}
			var back watch.Event
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if folded, err = watch.Apply(folded, back); err != nil {
				t.Fatal(err)
			}
		}
		a, _ := json.Marshal(folded)
		b, _ := json.Marshal(w)
		if string(a) != string(b) {
			t.Fatalf("the journal folds to\n%s\nthe state is\n%s", a, b)
		}
		v, _ := json.Marshal(w.View(watch.Counts{}, true))
		if strings.Contains(string(v), "fingerprint") || strings.Contains(string(v), "anchor\"") {
			t.Fatalf("a model sees %s", v)
		}
	})
}

package dispatch_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// command is an approval as an adapter reads it.
func command(fingerprint string) *turn.Prompt {
	return &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: fingerprint, Title: "Run it?", Detail: "do " + fingerprint, Approvable: true, Excerpt: "$ npm test",
		Options: []turn.PromptOption{{Label: "Yes", Key: "y", OneTime: true}, {Label: "Yes, always", Key: "p"}, {Label: "No", Key: "Escape", Reject: true}}}
}

// shows makes the agent show p until the pane gets a key, and then work.
func (r *rig) shows(p *turn.Prompt) {
	r.t.Helper()
	r.agent.rec.Finish()
	base := len(r.agent.rec.Bytes())
	r.agent.onNative = func(n agent.Native) agent.Native { n.Activity = agent.ActivityWaiting; return n }
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
		if len(r.agent.rec.Bytes()) > base {
			return agent.Screen{State: agent.ScreenWorking}
		}
		state := agent.ScreenDialog
		if p.Kind == turn.PromptApproval {
			state = agent.ScreenApproval
		}
		return agent.Screen{State: state, Prompt: p}
	}
}

// asked is a Turn whose agent shows p, as the Host was told.
func (r *rig) asked(p *turn.Prompt) turn.Turn {
	r.t.Helper()
	tn := r.accepted()
	r.shows(p)
	r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: p})
	return r.only().Turn
}

func (r *rig) review(id ids.TurnID) dispatch.StatusResult {
	r.t.Helper()
	s, err := r.Status(r.t.Context(), dispatch.StatusInput{TurnID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) approve(call string, id ids.TurnID, decision string) (dispatch.ApproveResult, error) {
	return r.Approve(r.t.Context(), dispatch.ApproveInput{CallID: call, TurnID: id, Decision: decision})
}

func TestAReviewedPromptIsApprovedByOneKey(t *testing.T) { // spec part 2.16, cases 50 and 51
	r := newRig(t)
	tn := r.asked(command("a"))
	if s := r.review(tn.ID); s.Actions["approve"].Tool == "" || s.Actions["reject"].Arguments["decision"] != dispatch.Reject {
		t.Errorf("the actions are %v", s.Actions)
	}
	got, err := r.approve("c1", tn.ID, "")
	if err != nil || got.Outcome != dispatch.OutcomeApproved || !got.Approved || !got.PromptGone || got.TurnStatus != turn.WaitingForAgent || got.Label != "Yes" {
		t.Fatalf("%+v %v", got, err)
	}
	again, err := r.approve("c1", tn.ID, "")
	if err != nil || !again.Replayed || !again.Approved {
		t.Errorf("the same call: %+v %v", again, err)
	}
	if _, err := r.approve("c1", tn.ID, dispatch.Reject); !fault.Is(err, turn.CodeReplay) {
		t.Errorf("the same call with another decision: %v", err)
	}
	second, err := r.approve("c2", tn.ID, "")
	if err != nil || second.Outcome != dispatch.OutcomeAlready || !second.AlreadyApproved || second.Approved {
		t.Errorf("the second approval: %+v %v", second, err)
	}
	r.pressed("y")
	if n := len(deliveries(t, r)); n != 1 {
		t.Errorf("the Host hears %d callbacks", n)
	}
	if !slices.Equal(r.monitors.answered, []string{"a"}) {
		t.Errorf("the monitor heard of %q", r.monitors.answered)
	}
}

func TestARejectionPressesTheOneNo(t *testing.T) {
	r := newRig(t)
	tn := r.asked(command("a"))
	r.review(tn.ID)
	got, err := r.approve("c1", tn.ID, dispatch.Reject)
	if err != nil || got.Outcome != dispatch.OutcomeRejected || got.Approved {
		t.Fatalf("%+v %v", got, err)
	}
	r.pressed("\x1b")
}

func TestANotificationThatTheHostAcceptedIsAReview(t *testing.T) {
	r := newRig(t)
	tn := r.asked(command("a"))
	if got := r.attempt(outbox.Accepted); got != "approval" {
		t.Fatalf("the Host was told %q", got)
	}
	if got, err := r.approve("c1", tn.ID, ""); err != nil || !got.Approved {
		t.Fatalf("%+v %v", got, err)
	}
	r.pressed("y")
}

// Every refusal presses zero keys and says what to do.
func TestNoKeyIsPressedWithoutEveryProof(t *testing.T) { // spec case 51, H5, T20
	blocked := command("a")
	blocked.Approvable, blocked.Reason = false, "a person has moved the marker"
	lasting := command("a")
	lasting.Options = lasting.Options[1:2]
	for name, c := range map[string]struct {
		prompt *turn.Prompt
		before func(*rig, turn.Turn)
		code   fault.Code
		says   string
	}{
		"nobody reviewed it": {nil, func(*rig, turn.Turn) {}, dispatch.CodeNotReviewed, "status"},
		"it was not heard":   {nil, func(r *rig, _ turn.Turn) { r.attempt(outbox.RetryableFailure) }, dispatch.CodeNotReviewed, ""},
		"heard ten minutes ago": {nil, func(r *rig, _ turn.Turn) {
			r.attempt(outbox.Accepted)
			r.update(func(tx *store.Tx) error {
				_, err := tx.Exec("UPDATE outbox SET accepted_at = accepted_at - ?", (10 * time.Minute).Milliseconds())
				return err
			})
		}, dispatch.CodeNotReviewed, ""},
		"another one is open on the screen": {nil, func(r *rig, tn turn.Turn) { r.review(tn.ID); r.shows(command("b")) }, turn.CodePromptChanged, "do b"},
		"another one was observed": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Prompt: command("b")})
		}, turn.CodePromptChanged, "do a"},
		"it is gone from the screen": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			r.agent.onScreen = func(int, agent.Screen) agent.Screen { return agent.Screen{State: agent.ScreenWorking} }
		}, turn.CodePromptChanged, "not open any more"},
		"a person answered it": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			r.observe(tn, turn.Observation{Kind: turn.ObsPromptCleared})
		}, turn.CodeNoPrompt, "status"},
		"it changes after the reservation": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			shown, n := r.agent.onScreen, 0
			r.agent.onScreen = func(i int, s agent.Screen) agent.Screen {
				if a := r.only().Turn.Answer; a != nil && a.State == turn.AnswerReserved {
					if n++; n > 0 {
						return agent.Screen{State: agent.ScreenApproval, Prompt: command("b")}
					}
				}
				return shown(i, s)
			}
		}, turn.CodePromptChanged, "do b"},
		"the pane is scrolled back": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			r.agent.rec.Server.Tmux("copy-mode", "-t", r.agent.rec.ID)
		}, turn.CodeTerminal, "copy mode"},
		"the Turn ran out of time":       {nil, func(r *rig, tn turn.Turn) { r.review(tn.ID); r.stall(tn) }, turn.CodeNotAllowed, ""},
		"a person must do it":            {blocked, func(r *rig, tn turn.Turn) { r.review(tn.ID) }, turn.CodeNotApprovable, "marker"},
		"only a lasting choice is known": {lasting, func(r *rig, tn turn.Turn) { r.review(tn.ID) }, turn.CodeNotApprovable, ""},
		"the Bridge died in between": {nil, func(r *rig, tn turn.Turn) {
			r.review(tn.ID)
			r.decide(tn, func(t turn.Turn, now time.Time) (turn.Plan, error) {
				return turn.ReserveAnswer(t, turn.Answer{Fingerprint: "a", Choice: "Yes", By: "controller", Call: "c0"}, now)
			})
			if err := r.Sweep(r.t.Context()); err != nil { // as the next Bridge does
				r.t.Error(err)
			}
		}, turn.CodeAnswerUncertain, "look"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if c.prompt == nil {
				c.prompt = command("a")
			}
			tn := r.asked(c.prompt)
			c.before(r, tn)
			_, err := r.approve("c1", tn.ID, "")
			_, msg, hint := fault.Public(err)
			if !fault.Is(err, c.code) || hint == "" || !strings.Contains(msg+hint, c.says) {
				t.Errorf("%v", err)
			}
			if c.code == turn.CodeAnswerUncertain {
				if all := deliveries(t, r); len(all) != 2 || all[1].Event.Type != "error" {
					t.Errorf("the Host hears %+v", all)
				}
			}
			r.pressed("")
		})
	}
}

// stall takes the Turn's time away.
func (r *rig) stall(tn turn.Turn) {
	r.decide(tn, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.CheckDeadlines(t, now.Add(24*time.Hour)), nil
	})
}

// decide commits a rule's plan behind the Service's back.
func (r *rig) decide(tn turn.Turn, rule func(turn.Turn, time.Time) (turn.Plan, error)) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		row, err := turnsql.Get(tx, tn.ID)
		if err != nil {
			return err
		}
		p, err := rule(row.Turn, tx.Now)
		if err != nil {
			return err
		}
		return turnsql.Save(tx, row, p)
	})
}

func TestOfTwoApprovalsAtOneMomentOneKeyIsPressed(t *testing.T) {
	r := newRig(t)
	tn := r.asked(command("a"))
	r.review(tn.ID)
	var wg sync.WaitGroup
	results := make([]dispatch.ApproveResult, 2)
	for i, call := range []string{"c1", "c2"} {
		wg.Go(func() {
			var err error
			if results[i], err = r.approve(call, tn.ID, ""); err != nil && !fault.Is(err, turn.CodePromptChanged) && !fault.Is(err, turn.CodeNoPrompt) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if results[0].Approved == results[1].Approved {
		t.Errorf("%+v", results)
	}
	r.pressed("y")
}

func TestAStoreThatFailsAfterTheKeyLeavesAnUncertainAnswer(t *testing.T) {
	r := newRig(t)
	tn := r.asked(command("a"))
	r.review(tn.ID)
	shown := r.agent.onScreen
	var once sync.Once
	var mend func()
	r.agent.onScreen = func(n int, s agent.Screen) agent.Screen {
		if a := r.only().Turn.Answer; a != nil && a.State == turn.AnswerReserved {
			once.Do(func() { mend = r.breakStore() })
		}
		return shown(n, s)
	}
	if got, err := r.approve("c1", tn.ID, ""); err != nil || !got.Approved {
		t.Fatalf("%+v %v", got, err)
	}
	mend()
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := r.only().Turn.Answer; a.State != turn.AnswerUncertain {
		t.Errorf("%+v", a)
	}
	if again, err := r.approve("c1", tn.ID, ""); err != nil || again.Outcome != dispatch.OutcomeUncertain {
		t.Errorf("%+v %v", again, err)
	}
	r.pressed("y")
}

func TestTheSameCommandAskedAgainNeedsAnotherReview(t *testing.T) { // spec part 8.6
	r := newRig(t)
	tn := r.asked(command("a"))
	r.attempt(outbox.Accepted)
	r.review(tn.ID)
	if _, err := r.approve("c1", tn.ID, ""); err != nil {
		t.Fatal(err)
	}
	r.pressed("y")
	r.shows(command("a"))
	r.observe(tn, turn.Observation{Kind: turn.ObsPrompt, Source: "screen", Prompt: command("a")})
	if n := len(deliveries(t, r)); n != 2 {
		t.Fatalf("the Host was told of %d questions", n)
	}
	if _, err := r.approve("c2", tn.ID, ""); !fault.Is(err, dispatch.CodeNotReviewed) {
		t.Errorf("the old review was enough: %v", err)
	}
	r.review(tn.ID)
	if got, err := r.approve("c3", tn.ID, ""); err != nil || !got.Approved {
		t.Errorf("%+v %v", got, err)
	}
	r.pressed("y")
}

func TestATerminalOutsideOfATurnIsAnsweredOnceAfterItsStatus(t *testing.T) { // spec part 2.16
	r := newRig(t)
	p := command("a")
	r.shows(p)
	in := dispatch.ApproveInput{CallID: "c1", TerminalID: r.terminal}
	if _, err := r.Approve(t.Context(), in); !fault.Is(err, dispatch.CodeNotReviewed) {
		t.Fatalf("without status: %v", err)
	}
	if _, err := r.Status(t.Context(), dispatch.StatusInput{TerminalID: r.terminal}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Approve(t.Context(), in)
	if err != nil || !got.Approved || got.DurableReceipt || !got.TerminalScoped || !got.PromptGone {
		t.Fatalf("%+v %v", got, err)
	}
	r.pressed("y")
	r.shows(p)
	if _, err := r.Approve(t.Context(), in); !fault.Is(err, dispatch.CodeNotReviewed) {
		t.Errorf("the review was used twice: %v", err)
	}
	r.pressed("")
}

package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// hurried ends every long wait early.
type hurried struct{ clock.System }

func (h hurried) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	return h.System.NewTimer(min(d, 300*time.Millisecond))
}

// working is a Turn that the agent took and works on; what the pane got for it is forgotten.
func (r *rig) working() turn.Turn {
	r.t.Helper()
	tn := r.accepted()
	r.agent.take()
	r.agent.rec.Finish()
	r.agent.onNative = func(n agent.Native) agent.Native { n.Activity = agent.ActivityWorking; return n }
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen { s.State = agent.ScreenWorking; return s }
	return tn
}

func (r *rig) cancel(call string, t turn.Turn) (dispatch.CancelResult, error) {
	return r.Cancel(r.t.Context(), dispatch.CancelInput{CallID: call, TurnID: t.ID})
}

// pressed fails unless the pane got exactly these bytes.
func (r *rig) pressed(want string) {
	r.t.Helper()
	if got := string(r.agent.rec.Finish().Raw); got != want {
		r.t.Errorf("the pane got %q, want %q", got, want)
	}
}

// stopsOn makes the agent record its stop as soon as the pane gets a key.
func (r *rig) stopsOn(t turn.Turn, o turn.Observation) (wait func()) {
	done := make(chan struct{})
	seen := len(r.agent.rec.Bytes())
	ctx, cancel := context.WithCancel(r.t.Context())
	go func() {
		defer close(done)
		for len(r.agent.rec.Bytes()) == seen {
			if ctx.Err() != nil {
				return
			}
		}
		if err := r.Observe(ctx, t.ID, o); err != nil && ctx.Err() == nil {
			r.t.Error(err)
		}
	}()
	return func() { cancel(); <-done }
}

const escape = "\x1b"

func TestCancelPressesOneKeyAndWaitsForTheAgentsOwnRecord(t *testing.T) { // spec part 2.14
	r := newRig(t)
	tn := r.working()
	defer r.stopsOn(tn, turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n", Source: "rollout"})()
	res, err := r.cancel("c1", tn)
	if err != nil || res.Outcome != dispatch.CancelStopped || !res.Turn.StopProved || res.Turn.Status != turn.Cancelled || res.Turn.Cancel.Means != "key:Escape" {
		t.Fatalf("%+v %v", res, err)
	}
	again, err := r.cancel("c1", tn)
	if err != nil || !again.Replayed || again.Outcome != dispatch.CancelStopped {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := r.cancel("c2", tn); !fault.Is(err, turn.CodeNotAllowed) {
		t.Errorf("what is cancelled is cancelled again: %v", err)
	}
	r.pressed(escape)
	if ds := deliveries(t, r); len(ds) != 1 || ds[0].Event.Kind != "interrupted" || !strings.Contains(string(ds[0].Event.Body), "cancelled as asked") {
		t.Errorf("%+v", ds)
	}
	if _, err := r.send("next"); err == nil || fault.Is(err, turn.CodeBlocked) {
		t.Errorf("the terminal is still kept, or a busy one was typed into: %v", err)
	}
}

// Without the agent's record nobody knows that it stopped: the Turn keeps its terminal, and
// what comes later decides. The same call presses nothing again (spec case 39).
func TestACancelThatIsNotProvedStaysARequest(t *testing.T) {
	for name, tc := range map[string]struct {
		late    turn.Observation
		status  turn.Status
		outcome dispatch.CancelOutcome
	}{
		"it stopped later":                {turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n"}, turn.Cancelled, dispatch.CancelStopped},
		"completion wins":                 {turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Text: "done"}, turn.Idle, dispatch.CancelEnded},
		"so does a failure of its own":    {turn.Observation{Kind: turn.ObsFailed, NativeTurnID: "n", Code: "x"}, turn.Failed, dispatch.CancelEnded},
		"idle without a record of an end": {turn.Observation{Kind: turn.ObsTrouble, NativeTurnID: "n", Code: agent.CodeIdleNoEnd}, turn.Cancelled, dispatch.CancelIdle},
		"another turn of the agent ended": {turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "other"}, turn.WaitingForAgent, dispatch.CancelUnproved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tn := r.working()
			r.Clock = hurried{}
			res, err := r.cancel("c1", tn)
			if err != nil || res.Outcome != dispatch.CancelUnproved || res.Turn.Status != turn.WaitingForAgent || res.Turn.CancelRequestedAt.IsZero() {
				t.Fatalf("%+v %v", res, err)
			}
			if again, err := r.cancel("c1", tn); err != nil || !again.Replayed || again.Outcome != dispatch.CancelUnproved {
				t.Errorf("%+v %v", again, err)
			}
			r.observe(tn, tc.late)
			got, err := r.cancel("c1", tn)
			if err != nil || got.Outcome != tc.outcome || got.Turn.Status != tc.status || got.Turn.StopProved != (tc.outcome == dispatch.CancelStopped) {
				t.Errorf("%+v %v", got, err)
			}
			r.pressed(escape)
		})
	}
}

// Whatever does not prove that the agent works on this very Turn gets no key at all.
func TestCancelPressesNothingIntoATerminalThatIsNotProvablyWorking(t *testing.T) { // H5, T03, T13, spec cases 42, 44
	type world struct {
		native func(agent.Native) agent.Native
		screen func(agent.Screen) agent.Screen
		before func(*rig, turn.Turn)
	}
	idle := func(n agent.Native) agent.Native { n.Activity = agent.ActivityIdle; return n }
	for name, tc := range map[string]world{
		"idle":                          {native: idle, screen: func(s agent.Screen) agent.Screen { s.State = agent.ScreenIdle; return s }},
		"an unknown screen":             {screen: func(s agent.Screen) agent.Screen { s.State = agent.ScreenUnknown; return s }},
		"nothing known at all":          {native: func(n agent.Native) agent.Native { n.Activity = agent.ActivityUnknown; return n }, screen: func(s agent.Screen) agent.Screen { s.State = agent.ScreenUnknown; return s }},
		"a picker":                      {screen: func(s agent.Screen) agent.Screen { s.State = agent.ScreenDialog; return s }},
		"a prompt that nobody can read": {screen: func(s agent.Screen) agent.Screen { s.State = agent.ScreenApproval; return s }},
		"a prompt that is not approvable": {screen: func(s agent.Screen) agent.Screen {
			s.State, s.Prompt = agent.ScreenApproval, &turn.Prompt{Kind: turn.PromptApproval}
			return s
		}},
		"a questionnaire": {screen: func(s agent.Screen) agent.Screen {
			s.State, s.Prompt = agent.ScreenDialog, &turn.Prompt{Kind: turn.PromptQuestion, Approvable: true}
			return s
		}},
		"a stale working line": {native: idle},
		"another thread": {native: func(n agent.Native) agent.Native {
			n.Activity, n.ThreadID = agent.ActivityWorking, "thread-2"
			return n
		}},
		"a thread that is not known": {native: func(n agent.Native) agent.Native {
			n.Activity, n.Thread, n.ThreadID = agent.ActivityWorking, agent.ThreadUnavailable, ""
			return n
		}},
		"copy mode": {before: func(r *rig, _ turn.Turn) {
			r.agent.rec.Server.Tmux("copy-mode", "-t", r.agent.rec.ID)
		}},
		"a Turn that is done": {before: func(r *rig, tn turn.Turn) {
			r.observe(tn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n"})
		}},
		"a person was faster": {before: func(r *rig, tn turn.Turn) {
			if _, err := r.Close(r.t.Context(), dispatch.CloseInput{TurnID: tn.ID}); err != nil {
				r.t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tn := r.accepted()
			r.observe(tn, turn.Observation{Kind: turn.ObsActivity, ThreadID: "thread-1"})
			r.agent.take()
			r.agent.rec.Finish()
			r.agent.onNative = func(n agent.Native) agent.Native {
				n.Activity = agent.ActivityWorking
				if tc.native != nil {
					n = tc.native(n)
				}
				return n
			}
			r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
				s.State = agent.ScreenWorking
				if tc.screen != nil {
					s = tc.screen(s)
				}
				return s
			}
			if tc.before != nil {
				tc.before(r, tn)
			}
			_, err := r.cancel("c1", tn)
			if _, _, hint := fault.Public(err); err == nil || hint == "" {
				t.Errorf("%v", err)
			}
			if now := r.only().Turn; now.CancelPending() || now.Status == turn.Cancelled {
				t.Errorf("%+v", now)
			}
			r.pressed("")
		})
	}
}

// The commit of the request may take long; the last look decides.
func TestADialogBetweenRequestAndKeyGetsNoKey(t *testing.T) { // H5, T13
	r := newRig(t)
	tn := r.working()
	var looks atomic.Int64
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
		if s.State = agent.ScreenWorking; looks.Add(1) > 2 { // 1: the target, 2: under the lock
			s.State = agent.ScreenDialog
		}
		return s
	}
	if _, err := r.cancel("c1", tn); !fault.Is(err, turn.CodeTerminal) {
		t.Fatal(err)
	}
	now := r.only().Turn
	if now.CancelPending() || now.Status != turn.WaitingForAgent || now.Cancel.State != turn.CancelNotSent {
		t.Errorf("%+v", now)
	}
	if res, err := r.cancel("c1", tn); err != nil || res.Outcome != dispatch.CancelNotSent || !res.Replayed {
		t.Errorf("%+v %v", res, err)
	}
	r.pressed("")
}

func TestCancelOfAnApprovalDeniesIt(t *testing.T) { // spec part 2.14
	r := newRig(t)
	tn := r.working()
	r.observe(tn, prompt("a"))
	r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen {
		s.State, s.Prompt = agent.ScreenApproval, &turn.Prompt{Kind: turn.PromptApproval, Approvable: true}
		return s
	}
	defer r.stopsOn(tn, turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n", Source: "rollout"})()
	res, err := r.cancel("c1", tn)
	if err != nil || res.Outcome != dispatch.CancelStopped || !res.Turn.Cancel.Denies {
		t.Fatalf("%+v %v", res, err)
	}
	r.pressed(escape)
	for _, d := range deliveries(t, r) {
		if d.Event.Kind == "approval" && d.Status != outbox.Superseded {
			t.Errorf("the question is %s", d.Status)
		}
	}
}

func TestASubmissionThatIsNotAcceptedIsNotCancelled(t *testing.T) {
	r := newRig(t)
	r.Clock = hurried{}
	res, err := r.send("do it")
	if err != nil || res.Turn.Stage != turn.EnterDispatched {
		t.Fatalf("%+v %v", res.Turn, err)
	}
	r.agent.rec.Finish()
	r.agent.onNative = func(n agent.Native) agent.Native { n.Activity = agent.ActivityWorking; return n }
	if _, err := r.cancel("c1", res.Turn); !fault.Is(err, turn.CodeNotAllowed) {
		t.Fatal(err)
	}
	r.pressed("")
}

// server is an agent with a machine channel.
type server struct {
	*adapter
	interrupt func(anchor turn.Anchor, nativeTurn string) error
}

func (s server) Interrupt(_ context.Context, _ agent.Ref, a turn.Anchor, n string) error {
	return s.interrupt(a, n)
}

func TestOverAServerOneTurnIsStoppedAndNoKeyPressed(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		outcome dispatch.CancelOutcome
		state   turn.CancelState
	}{
		"asked":     {nil, dispatch.CancelUnproved, turn.CancelSent},
		"no answer": {fault.New("codex_input_uncertain", "x", "no answer"), dispatch.CancelUnproved, turn.CancelUncertain},
		"refused":   {fault.New(agent.NotSubmitted, "x", "refused"), "", turn.CancelNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tn := r.working()
			r.update(func(tx *store.Tx) error {
				_, err := tx.Exec(`UPDATE turn SET state = json_set(state, '$.channel', 'codex_socket', '$.native_thread_id', 'thread-1') WHERE turn_id = ?`, tn.ID)
				return err
			})
			r.agent.onNative = func(n agent.Native) agent.Native {
				n.Activity, n.Channel = agent.ActivityWorking, turn.ChannelCodexSocket
				return n
			}
			r.agent.onScreen = func(_ int, s agent.Screen) agent.Screen { s.State = agent.ScreenUnknown; return s } // only a view
			var asked []string
			c := r.Config
			c.Clock, c.Scanner = hurried{}, discover.New([]string{r.agent.rec.Server.Socket()}, server{r.agent, func(a turn.Anchor, n string) error {
				asked = append(asked, a.ThreadID+"/"+n)
				return tc.err
			}})
			over := dispatch.New(c)
			res, err := over.Cancel(t.Context(), dispatch.CancelInput{CallID: "c1", TurnID: tn.ID})
			if (err != nil) != (tc.outcome == "") || res.Outcome != tc.outcome {
				t.Errorf("%+v %v", res, err)
			}
			if now := r.only().Turn; now.Cancel == nil || now.Cancel.State != tc.state || now.Cancel.Means != "socket" {
				t.Errorf("%+v", now.Cancel)
			}
			if len(asked) != 1 || asked[0] != "thread-1/n" {
				t.Errorf("%q", asked)
			}
			r.pressed("")
		})
	}
}

func TestTheCodeOfAnIdleAgentWithoutAnEndIsOneWord(t *testing.T) {
	if agent.CodeIdleNoEnd != turn.CodeIdleNoEnd {
		t.Error("two codes for one fact")
	}
}

// Two calls at one moment: the second judges what the first did and finds nothing to stop.
func TestOfTwoCancelsAtOneMomentOnePressesTheKey(t *testing.T) {
	r := newRig(t)
	tn := r.working()
	defer r.stopsOn(tn, turn.Observation{Kind: turn.ObsInterrupted, NativeTurnID: "n", Source: "rollout"})()
	results := make(chan error, 2)
	for _, call := range []string{"c1", "c2"} {
		go func() { _, err := r.cancel(call, tn); results <- err }()
	}
	errs := 0
	for range 2 {
		if err := <-results; err != nil {
			errs++
			if !fault.Is(err, turn.CodeNotAllowed) {
				t.Error(err)
			}
		}
	}
	if errs != 1 {
		t.Errorf("%d of 2 were refused", errs)
	}
	faketmux.Wait(t, "the stop", func() bool { return r.only().Turn.Status == turn.Cancelled }, func() string { return "" })
	r.pressed(escape)
}

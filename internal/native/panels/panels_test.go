package panels

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// operations are all that type, each with whatever it needs to be shown first.
func operations(w *world) map[string]func(ids.TerminalID) error {
	ctx, s := w.t.Context(), w.service
	two := agent.Setting{Model: "two", Effort: "low"}
	return map[string]func(ids.TerminalID) error{
		"native_inspect":      func(id ids.TerminalID) error { _, err := s.Inspect(ctx, id, InspectStatus); return err },
		"model_options":       func(id ids.TerminalID) error { _, err := s.ModelOptions(ctx, id); return err },
		"permission_options":  func(id ids.TerminalID) error { _, err := s.PermissionOptions(ctx, id); return err },
		"identify_foreground": func(id ids.TerminalID) error { _, err := s.IdentifyForeground(ctx, id); return err },
		"identify_and_send": func(id ids.TerminalID) error {
			_, err := s.IdentifyAndSend(ctx, dispatch.SendInput{CallID: "c", TerminalID: id, Request: "do it"})
			return err
		},
		"set_model": func(id ids.TerminalID) error {
			s.models.Put(target(w.term()), modelOffer{cat: (&picker{}).Catalogue()})
			_, err := s.SetModel(ctx, id, two)
			return err
		},
		"set_permissions": func(id ids.TerminalID) error {
			s.permissions.Put(target(w.term()), (&picker{}).Permissions())
			_, err := s.SetPermissions(ctx, id, "two")
			return err
		},
	}
}

func TestARefusedPreconditionGetsNoKey(t *testing.T) { // spec part 2.5, cases 17, 44, 60, H5
	screen := func(state agent.ScreenState, c agent.ComposerState) func(*world) {
		return func(w *world) { w.show(&agent.Screen{State: state, Composer: c, Draft: "x"}) }
	}
	w := newWorld(t, "", 120)
	narrow := newWorld(t, "", 79)
	for name, c := range map[string]struct {
		world *world
		make  func(*world)
		undo  func(*world)
		code  fault.Code
	}{
		"a draft":     {w, screen(agent.ScreenIdle, agent.ComposerDraft), nil, ComposerNotReady},
		"working":     {w, screen(agent.ScreenWorking, agent.ComposerEmpty), nil, ComposerNotReady},
		"approval":    {w, screen(agent.ScreenApproval, agent.ComposerAbsent), nil, ComposerNotReady},
		"dialog":      {w, screen(agent.ScreenDialog, agent.ComposerAbsent), nil, ComposerNotReady},
		"unknown":     {w, screen(agent.ScreenUnknown, agent.ComposerUnknown), nil, ComposerNotReady},
		"no composer": {w, screen(agent.ScreenIdle, agent.ComposerAbsent), nil, ComposerNotReady},
		"busy records": {w, func(w *world) { w.know(func(n *agent.Native) { n.Activity = agent.ActivityWorking }) },
			func(w *world) { w.know(func(n *agent.Native) { n.Activity = agent.ActivityIdle }) }, ComposerNotReady},
		"silent records": {w, func(w *world) { w.know(func(n *agent.Native) { n.Activity = agent.ActivityUnknown }) },
			func(w *world) { w.know(func(n *agent.Native) { n.Activity = agent.ActivityIdle }) }, ComposerNotReady},
		"old version": {w, func(w *world) { w.know(func(n *agent.Native) { n.Version = "0.9" }) },
			func(w *world) { w.know(func(n *agent.Native) { n.Version = "1.0" }) }, UnsupportedProfile},
		"copy mode": {w, func(w *world) { w.tmux.Tmux("copy-mode", "-t", w.pane.ID) },
			func(w *world) { w.tmux.Tmux("copy-mode", "-q", "-t", w.pane.ID) }, ComposerNotReady},
		"narrow pane": {narrow, func(*world) {}, nil, ViewportTooNarrow},
		"another types": {w, func(w *world) {
			unlock, err := tmux.LockPane(t.Context(), w.service.Desk.LockDir, w.term().Ref.Endpoint.Key())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
			w.onSend = unlock
		}, func(w *world) { w.onSend(); w.onSend = nil }, tmux.CodeInputBusy},
	} {
		t.Run(name, func(t *testing.T) {
			id := c.world.id()
			c.make(c.world)
			for op, run := range operations(c.world) {
				if err := run(id); fault.CodeOf(err) != c.code {
					t.Errorf("%s: %v, want %s", op, err, c.code)
				}
			}
			c.world.show(nil)
			if c.undo != nil {
				c.undo(c.world)
			}
			if got := c.world.bytes(); got != "" || len(c.world.sent) > 0 {
				t.Errorf("the pane got %q, tasks %v", got, c.world.sent)
			}
		})
	}
}

func TestATerminalThatIsKeptGetsNoKey(t *testing.T) {
	for name, c := range map[string]struct {
		keep func(*world, *store.Tx) error
		code fault.Code
	}{
		"by a Turn": {func(w *world, tx *store.Tx) error {
			ref := w.term().Ref
			s := turn.NewSession("codex", "t1", "/w", turn.Binding{Endpoint: ref.Endpoint, Process: ref.Process}, tx.Now)
			if err := turnsql.PutSession(tx, s); err != nil {
				return err
			}
			_, err := turnsql.Insert(tx, turn.Reserve(turn.Turn{ID: ids.NewTurn(tx.Now), SessionID: s.ID, CallKey: "c", Endpoint: ref.Endpoint, Process: ref.Process, Hard: time.Hour}, tx.Now), "bridge-a")
			return err
		}, turn.CodeBlocked},
		"by a Transition": {func(w *world, tx *store.Tx) error {
			ref := w.term().Ref
			p := native.Prepare(native.Transition{ID: ids.NewTransition(), CallKey: "c", Operation: native.NewThread, Endpoint: ref.Endpoint, Process: ref.Process}, tx.Now)
			_, err := nativesql.Insert(tx, p, "bridge-a")
			return err
		}, native.CodeOpen},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", 120)
			w.update(func(tx *store.Tx) error { return c.keep(w, tx) })
			for op, run := range operations(w) {
				if err := run(w.id()); fault.CodeOf(err) != c.code {
					t.Errorf("%s: %v, want %s", op, err, c.code)
				}
			}
			if _, err := w.service.RepairModelControl(t.Context(), w.id()); fault.CodeOf(err) != c.code {
				t.Errorf("repair: %v", err)
			}
			held := turn.Turn{}
			rows, err := w.service.Actions(t.Context(), []dispatch.SeenTerminal{{Terminal: w.term(), State: "idle", Held: &held}})
			if err != nil || len(rows) != 0 || w.bytes() != "" {
				t.Errorf("%v %v %q", rows, err, w.bytes())
			}
		})
	}
}

func TestAnUnknownThreadIsInspectedButNothingIsChosenForIt(t *testing.T) {
	w := newWorld(t, "", 120)
	w.know(func(n *agent.Native) { n.Thread, n.ThreadID = agent.ThreadAmbiguous, "" })
	for _, op := range []string{"model_options", "permission_options", "set_model", "set_permissions"} {
		if err := operations(w)[op](w.id()); fault.CodeOf(err) != IdentityUnverified {
			t.Errorf("%s: %v", op, err)
		}
	}
	w.got("")
	who, err := w.service.IdentifyForeground(t.Context(), w.id())
	if err != nil || who.ThreadID != "t1" || who.Agrees != nil || who.ExpiresAt.Sub(*who.IdentifiedAt) != ProofLife {
		t.Fatalf("%+v %+v %v %q\n%s", who, who.Trouble, err, w.bytes(), w.tmux.Tmux("capture-pane", "-p", "-t", w.pane.ID))
	}
	if _, ok := w.service.Identified(w.term().Key()); !ok {
		t.Error("the proof was not kept")
	}
	w.got("/status\r")
}

func TestAnInspectionIsOneCommandAndOneEnterAndHidesAccounts(t *testing.T) {
	w := newWorld(t, "", 120)
	for range 2 { // the second card is not taken for the first one
		got, err := w.service.Inspect(t.Context(), w.id(), InspectStatus)
		if err != nil || got.Status != "observed" || got.ThreadID != "t1" || got.Submission.Enters != 1 {
			t.Fatalf("%+v %v", got, err)
		}
		if strings.Contains(got.Native.Excerpt, "example") || got.Native.Fields[1].Value != "[redacted]" || got.Native.Fields[2].Value != "of [redacted]" {
			t.Errorf("%+v", got.Native)
		}
	}
	w.got("/status\r/status\r")
	if _, err := w.service.Inspect(t.Context(), w.id(), "help"); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
}

func TestWithoutAFreshPanelTheResultIsUncertainAndNothingIsRepeated(t *testing.T) { // case 2.5: a historical panel is never accepted
	for fails, want := range map[string]struct {
		stage Stage
		diag  fault.Code
		bytes string
	}{
		"silent": {EnterUncertain, EvidenceUnproven, "/status\r"},
		"junk":   {EnterUncertain, EvidenceUnproven, "/status\r"},
		"deaf":   {TextInjected, ComposerNotExact, "/status"},
	} {
		t.Run(fails, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fails, 120)
			w.service.Budget = 2 * time.Second
			got, err := w.service.Inspect(t.Context(), w.id(), InspectStatus)
			if err != nil || got.Status != Uncertain || got.Trouble == nil || got.Stage != want.stage || got.Diagnostic != want.diag || !got.DoNotRetry || got.Native != nil {
				t.Fatalf("%+v %+v %v", got, got.Trouble, err)
			}
			w.got(want.bytes)
		})
	}
}

func TestAChoiceNeedsOptionsThatWereShownAndUsesThemUp(t *testing.T) { // case 60
	w := newWorld(t, "", 120)
	ctx, s := t.Context(), w.service
	two := agent.Setting{Model: "two", Effort: "low"}
	if _, err := s.SetModel(ctx, w.id(), two); fault.CodeOf(err) != CodeNoOffer {
		t.Fatal(err)
	}
	if _, err := s.SetPermissions(ctx, w.id(), "two"); fault.CodeOf(err) != CodeNoOffer {
		t.Fatal(err)
	}
	w.got("")
	if _, err := s.ModelOptions(ctx, w.id()); err != nil {
		t.Fatal(err)
	}
	shown := w.bytes()
	for _, bad := range []agent.Setting{{Model: "three", Effort: "low"}, {Model: "two", Effort: "high"}} {
		if _, err := s.SetModel(ctx, w.id(), bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if rows := s.actions(w.term()); rows["set_model"].Tool == "" || rows["native_inspect"].Arguments["inspection"] != InspectStatus {
		t.Errorf("%v", rows)
	}
	w.know(func(n *agent.Native) { n.ThreadID = "t2" }) // a person switched the thread
	if _, err := s.SetModel(ctx, w.id(), two); fault.CodeOf(err) != CodeNoOffer {
		t.Error(err)
	}
	w.know(func(n *agent.Native) { n.ThreadID = "t1" })
	w.got(shown)
	got, err := s.SetModel(ctx, w.id(), two)
	if err != nil || got.Outcome != Changed || *got.Effective != two || *got.DefaultsChanged {
		t.Fatalf("%+v %+v %v", got, got.Trouble, err)
	}
	w.got(shown + "/model\rds/status\r")
	if _, err := s.SetModel(ctx, w.id(), two); fault.CodeOf(err) != CodeNoOffer {
		t.Error(err)
	}
	if rows := s.actions(w.term()); rows["set_model"].Tool != "" {
		t.Errorf("%v", rows)
	}
	w.got(shown + "/model\rds/status\r")
}

func TestAChoiceThatDoesNotTakeEffectIsUncertain(t *testing.T) { // spec part 2.18
	w := newWorld(t, "stubborn", 120)
	if _, err := w.service.ModelOptions(t.Context(), w.id()); err != nil {
		t.Fatal(err)
	}
	got, err := w.service.SetModel(t.Context(), w.id(), agent.Setting{Model: "two", Effort: "low"})
	if err != nil || got.Outcome != Uncertain || !got.DoNotRetry || got.Effective.Model != "one" || got.Diagnostic != EvidenceUnproven {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestOnlyAPersonTakesAProtectionAway(t *testing.T) {
	w := newWorld(t, "", 120)
	if _, err := w.service.PermissionOptions(t.Context(), w.id()); err != nil {
		t.Fatal(err)
	}
	shown := w.bytes()
	if _, err := w.service.SetPermissions(t.Context(), w.id(), "full"); fault.CodeOf(err) != CodeNeedsPerson {
		t.Error(err)
	}
	w.got(shown)
	got, err := w.service.SetPermissions(t.Context(), w.id(), "one")
	if err != nil || got.Outcome != AlreadyEffective {
		t.Errorf("%+v %v", got, err)
	}
}

func TestOfTwoOperationsOneIsTold(t *testing.T) {
	w := newWorld(t, "", 120)
	ses, err := w.service.begin(t.Context(), w.id(), "model_options", oneThread)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Inspect(t.Context(), w.id(), InspectStatus); fault.CodeOf(err) != CodeBusy || !strings.Contains(err.Error(), "model_options") {
		t.Error(err)
	}
	if _, err := w.another().Inspect(t.Context(), w.id(), InspectStatus); fault.CodeOf(err) != tmux.CodeInputBusy {
		t.Error(err)
	}
	w.got("")
	ses.release()
	if _, err := w.service.Inspect(t.Context(), w.id(), InspectStatus); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatWasProvablyLeftByUsIsRepaired(t *testing.T) {
	w := newWorld(t, "", 120)
	ctx, id := t.Context(), w.id()
	person := func(keys ...string) { w.tmux.Tmux(append([]string{"send-keys", "-t", w.pane.ID}, keys...)...) }
	repair := func(want string, code fault.Code, bytes string) {
		t.Helper()
		got, err := w.another().RepairModelControl(ctx, id)
		if got.Outcome != want || err != nil != (code != "") || err != nil && fault.CodeOf(err) != code {
			t.Errorf("%+v %v", got, err)
		}
		w.got(bytes)
	}
	repair(NothingToRepair, "", "")
	person("-l", "/model")
	person("Enter")
	w.pane.WaitText("PICKER")
	repair("", IdentityUnverified, "/model\r") // a person's
	if rows := w.service.actions(w.term()); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	mark := w.service.markerOf(w.term())
	put := func(age time.Duration) {
		if err := mark.put("/model", time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	put(markLife)
	repair("", IdentityUnverified, "/model\r") // too long ago
	put(time.Second)
	if rows := w.service.actions(w.term()); rows["repair_model_control"].Tool == "" {
		t.Errorf("%v", rows)
	}
	repair(Restored, "", "/model\r\x1b")
	if _, marked := mark.get(time.Now()); marked {
		t.Error("the mark was left")
	}
	person("-l", "/model")
	w.pane.WaitText("> /model")
	repair("", ComposerNotReady, "/model\r\x1b/model") // a person's draft
	put(time.Second)
	repair(Restored, "", "/model\r\x1b/model\x15")
}

func TestATaskFollowsTheThreadThatWasIdentifiedUnderTheSameLock(t *testing.T) {
	w := newWorld(t, "", 120)
	w.know(func(n *agent.Native) { n.Thread, n.ThreadID = agent.ThreadAmbiguous, "" })
	w.onSend = func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := tmux.LockPane(ctx, w.service.Desk.LockDir, w.term().Ref.Endpoint.Key()); fault.CodeOf(err) != tmux.CodeInputBusy {
			t.Errorf("the lock was given back: %v", err)
		}
	}
	in := dispatch.SendInput{CallID: "c", TerminalID: w.id(), Request: "do it"}
	got, err := w.service.IdentifyAndSend(t.Context(), in)
	if err != nil || got.Sent == nil || len(w.sent) != 1 || w.sent[0].Thread != "t1" || !w.sent[0].Locked {
		t.Fatalf("%+v %v %+v", got, err, w.sent)
	}
	w.got("/status\r")
	w.know(func(n *agent.Native) { n.Thread, n.ThreadID = agent.ThreadResolved, "t9" })
	if _, err := w.service.IdentifyAndSend(t.Context(), in); fault.CodeOf(err) != IdentityUnverified || len(w.sent) != 1 {
		t.Errorf("%v %v", err, w.sent)
	}
	in.Request = "/quit"
	if _, err := w.service.IdentifyAndSend(t.Context(), in); err == nil || len(w.sent) != 1 {
		t.Error("a command was sent")
	}
	w.got("/status\r/status\r")
}

package sessions_test

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// Cases 16, 20 and 21.
func TestAMessageEndsWithTheAgentsWholeLastWords(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st := w.say("s", "hello")
	if st.State != harness.MessageCompleted || st.Result.Text != "echo:hello" || st.StopReason != "end_turn" || st.Outcome != harness.OutcomeOK || st.Partial != nil {
		t.Fatalf("%s", text(st))
	}
	st = w.say("s", "GROUPS")
	if len(st.Result.Messages) != 3 || st.Result.Text != st.Result.Messages[2].Text {
		t.Fatalf("%s", text(st.Result))
	}
	st = w.say("s", "BIG 5")
	if n := len(st.Result.Text); n != 5<<20 {
		t.Fatalf("the text has %d bytes", n)
	}
	st = w.say("s", "TOOLS")
	if len(st.Result.Tools) == 0 {
		t.Fatal("the tool calls are lost")
	}
	text := ""
	for _, e := range w.log("s") {
		if e.Kind == harness.EventText && e.MessageID != "" {
			text += string(e.Data)
		}
	}
	if !strings.Contains(text, "echo:hello") {
		t.Error("the log has no words")
	}
}

// Case 17.
func TestABusySessionTakesNoSecondMessage(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	first := w.send("s", "HOLD")
	w.heard("session/prompt")
	_, err := w.svc.Send(w.ctx, "s", "again", "", false)
	w.refused(err, harness.Busy)
	_, _, err = w.svc.SetOptions(w.ctx, "s", sessions.Change{ModelID: "fake-2"})
	w.refused(err, harness.Busy)
	if st, err := w.svc.Status(w.ctx, "s"); err != nil || st.Messages != 1 || st.ActiveMessage != first {
		t.Errorf("%v %s", err, text(st))
	}
}

// Case 18.
func TestAKeyMeansOneMessageForEver(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	first, err := w.svc.Send(w.ctx, "s", "HOLD", " key ", true)
	if err != nil {
		t.Fatal(err)
	}
	same := func() {
		t.Helper()
		again, err := w.svc.Send(w.ctx, "s", "HOLD", "key", true)
		if err != nil || again.MessageID != first.MessageID || !again.Replayed {
			t.Fatalf("%v %+v", err, again)
		}
		_, err = w.svc.Send(w.ctx, "s", "other", "key", true)
		w.refused(err, harness.IdempotencyConflict)
		if id := harness.DetailOf(err)["message_id"]; id != first.MessageID {
			t.Errorf("the conflict names %v", id)
		}
	}
	same()
	if _, err := w.svc.CloseSession(w.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	same()
	w.stop()
	w.start()
	same()
	if st := w.end("s", first.MessageID); st.State != harness.MessageCancelled || st.CancelReason != harness.ReasonSessionClosed || !st.Persisted {
		t.Errorf("%s", text(st))
	}
	if strings.Count(w.read(w.journal), "session/prompt") != 1 {
		t.Error("the agent got the message twice")
	}
}

// Case 19.
func TestATextHasALimit(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	_, err := w.svc.Send(w.ctx, "s", strings.Repeat("x", harness.MaxText+1), "", false)
	w.refused(err, harness.MessageTooLarge)
	if st := w.say("s", "SAY "+strings.Repeat("x", harness.MaxText-4)); st.State != harness.MessageCompleted {
		t.Errorf("%s", st.State)
	}
}

// Case 22 without its Host: a cancel reaches the agent, and the session goes on.
func TestACancelledMessageFreesTheSession(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	id := w.send("s", "HOLD")
	w.heard("session/prompt")
	st, idle, err := w.svc.Cancel(w.ctx, "s", id)
	if err != nil || idle || st.State != harness.MessageCancelled || st.CancelReason != harness.ReasonUser {
		t.Fatalf("%v %s", err, text(st))
	}
	w.heard("session/cancel")
	if st := w.say("s", "hello"); st.Result.Text != "echo:hello" {
		t.Errorf("%s", text(st))
	}
	if _, idle, err := w.svc.Cancel(w.ctx, "s", ""); err != nil || !idle {
		t.Errorf("nothing to cancel: %v %v", idle, err)
	}
	again, _, err := w.svc.Cancel(w.ctx, "s", id)
	if err != nil || again.State != harness.MessageCancelled {
		t.Errorf("a message that ended changed: %v %s", err, text(again))
	}
}

// Case 25.
func TestAnAgentThatIgnoresACancelIsEndedAndReopens(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Transport.TurnCancelTimeoutSeconds = 1 })
	before := w.create("s")
	id := w.send("s", "IGNORE-CANCEL")
	w.heard("session/prompt")
	st, _, err := w.svc.Cancel(w.ctx, "s", "")
	if err != nil || st.State != harness.MessageFailed || st.Error.Code != harness.CancelTimeout {
		t.Fatalf("%v %s", err, text(st))
	}
	if s := w.session("s", "failed", func(s sessions.SessionStatus) bool { return s.State == harness.StateFailed }); s.Error.Code != harness.CancelTimeout {
		t.Errorf("%s", text(s))
	}
	w.gone(before.LaunchInfo.TransportPID)
	_, err = w.svc.Send(w.ctx, "s", "hello", "", false)
	w.refused(err, harness.SessionFailed)
	again, err := w.svc.Reopen(w.ctx, sessions.Again{SessionID: "s"})
	if err != nil || again.State != harness.StateReady || !again.Resumed {
		t.Fatalf("%v %s", err, text(again))
	}
	if st := w.say("s", "hello"); st.Result == nil || st.Result.Text != "echo:hello" {
		t.Errorf("%s", text(st))
	}
	if st := w.end("s", id); st.State != harness.MessageFailed {
		t.Errorf("%s", text(st))
	}
}

// Case 27: what comes late belongs to no message, not even to one that was sent at once.
func TestLateWordsBelongToNoMessage(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	w.say("s", "SAY first; LATE")
	st := w.say("s", "second")
	if st.Result.Text != "echo:second" || len(st.Result.Messages) != 1 {
		t.Errorf("%s", text(st.Result))
	}
	if n := w.logged("s", harness.EventLate); n != 1 {
		t.Errorf("%d late updates are logged", n)
	}
}

// Case 28.
func TestAnAgentThatDiesFailsItsMessageAndKeepsTheEvidence(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st := w.say("s", "SAY half; STDERR out of paper; EXIT 7")
	if st.State != harness.MessageFailed || st.Error.Code != harness.Transport || st.Result != nil || st.Partial == nil || st.Partial.Text != "half" {
		t.Fatalf("%s", text(st))
	}
	if d := text(st.Error.Detail); !strings.Contains(d, `"exit_code":7`) || !strings.Contains(d, "out of paper") {
		t.Errorf("%s", d)
	}
	if s := w.session("s", "failed", func(s sessions.SessionStatus) bool { return s.State == harness.StateFailed }); s.Error == nil {
		t.Error("the session does not say why")
	}
	if n := w.svc.Live(); n != 0 {
		t.Errorf("%d sessions are live", n)
	}
}

// Case 29.
func TestATurnThatTakesTooLongFailsAndIsCancelled(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Transport.TurnTimeoutSeconds = 1 })
	w.create("s")
	st := w.say("s", "HANG")
	if st.State != harness.MessageFailed || st.Error.Code != harness.OutputTimeout {
		t.Fatalf("%s", text(st))
	}
	w.heard("session/cancel")
	w.idle("s")
}

// Cases 30 and 33.
func TestErrorsOfAnAgentKeepTheirPlace(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Buffers.MaxReadBytes = 1 << 20 })
	w.create("s")
	st := w.say("s", "ERR -32603 broken")
	if st.State != harness.MessageFailed || st.Error.Code != harness.ACPError || !strings.Contains(text(st.Error.Detail), "broken") {
		t.Fatalf("%s", text(st))
	}
	st = w.say("s", "ERR -32000 login")
	if st.Error == nil || st.Error.Code != harness.AuthRequired || st.Error.Detail["next_action"] != "authenticate" || st.SessionState != harness.StateAuthRequired {
		t.Fatalf("%s", text(st))
	}
	_, err := w.svc.Send(w.ctx, "s", "x", "", false)
	w.refused(err, harness.AuthRequired)
	w.create("long")
	st = w.say("long", "LINE 1100000")
	if st.Error == nil || st.Error.Code != harness.LineTooLarge {
		t.Fatalf("%s", text(st))
	}
}

// Cases 31, 32 and 34: what agents do beside the protocol is noted and harms nothing.
func TestOddFramesAreNotedAndHarmNothing(t *testing.T) {
	w := newWorld(t)
	w.create("s", "--prose")
	st := w.say("s", "GARBAGE; OBJECT; NOTIFY; VENDOR; UNKNOWN-RESPONSE; NULL-ID-ERROR; UNKNOWN-CANCEL; FSWRITE; SAY done")
	if st.State != harness.MessageCompleted || !strings.Contains(st.Result.Text, "done") {
		t.Fatalf("%s", text(st))
	}
	if len(st.Unsupported) < 3 {
		t.Errorf("noted: %v", st.Unsupported)
	}
	stray := 0
	for _, e := range w.log("s") {
		if e.Kind == harness.EventStray {
			stray++
		}
	}
	if stray < 2 {
		t.Errorf("%d stray lines are logged", stray)
	}
}

// Spec part 2.5: how a turn ended is told, not only that it did.
func TestStopReasonsAreTold(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	for _, c := range []struct {
		stop    string
		state   harness.MessageState
		outcome harness.Outcome
	}{{"max_tokens", harness.MessageCompleted, harness.OutcomeTruncated}, {"refusal", harness.MessageCompleted, harness.OutcomeRefused},
		{"sunset", harness.MessageCompleted, harness.OutcomeUnknown}, {"cancelled", harness.MessageCancelled, ""}} {
		st := w.say("s", "SAY x; STOP "+c.stop)
		if st.State != c.state || st.Outcome != c.outcome || st.StopReason != c.stop {
			t.Errorf("%s: %s", c.stop, text(st))
		}
		if c.state == harness.MessageCancelled && st.CancelReason != harness.ReasonAgent {
			t.Errorf("cancelled by %q", st.CancelReason)
		}
	}
}

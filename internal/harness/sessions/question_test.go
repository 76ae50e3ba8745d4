package sessions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// Cases 37 and 39.
func TestAPermissionIsGivenByAPersonAlone(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	for _, c := range []struct {
		prompt string
		answer func(q harness.Question) harness.Answer
		routed harness.Routed
		says   string
		no     int
	}{
		{"PERM", func(q harness.Question) harness.Answer { return harness.Answer{OptionID: q.Options[0].ID} }, harness.RoutedSelected, "[allowed:", 0},
		{"PERM", func(harness.Question) harness.Answer { return harness.Answer{Word: harness.AnswerReject} }, harness.RoutedSelected, "[denied:", 1},
		{"PERM-NOREJECT", func(harness.Question) harness.Answer { return harness.Answer{Word: harness.AnswerReject} }, harness.RoutedCancelled, "[cancelled]", 1},
		{"PERM", func(harness.Question) harness.Answer { return harness.Answer{Word: harness.AnswerCancel} }, harness.RoutedCancelled, "[cancelled]", 1},
	} {
		st := w.asked("s", c.prompt, 1)
		q := st.Questions[0]
		if st.State != harness.MessageWaiting || !q.Permission || q.Kind != harness.AskPermission || q.Tool == nil {
			t.Fatalf("%s", text(st))
		}
		if got := w.answer("s", q.ID, c.answer(q)); got.Routed != c.routed || got.MessageID == nil || *got.MessageID != st.MessageID {
			t.Errorf("%s: %s", c.prompt, text(got))
		}
		end := w.end("s", st.MessageID)
		if end.State != harness.MessageCompleted || !strings.Contains(end.Result.Text, c.says) || len(end.Rejected) != c.no {
			t.Errorf("%s: %s", c.prompt, text(end))
		}
		_, err := w.svc.Answer(w.ctx, "s", q.ID, "", harness.Answer{Word: harness.AnswerCancel})
		w.refused(err, harness.NoPendingRequest) // case 42
	}
}

// Cases 40 and 42: an answer that does not fit changes nothing and reaches nobody.
func TestAnAnswerThatDoesNotFitLeavesTheQuestionOpen(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st := w.asked("s", "PERM", 1)
	q := st.Questions[0]
	for _, c := range []struct {
		request string
		answer  harness.Answer
		code    fault.Code
	}{
		{"q-none", harness.Answer{Word: harness.AnswerReject}, harness.RequestIDMismatch},
		{q.ID, harness.Answer{OptionID: "o9"}, harness.InvalidOption},
		{q.ID, harness.Answer{Word: "accept"}, harness.InvalidAnswer},
		{q.ID, harness.Answer{Word: "reject", OptionID: q.Options[0].ID}, harness.InvalidAnswer},
		{q.ID, harness.Answer{}, harness.InvalidAnswer},
		{q.ID, harness.Answer{Content: json.RawMessage(`{}`)}, harness.InvalidAnswer},
	} {
		_, err := w.svc.Answer(w.ctx, "s", c.request, "", c.answer)
		w.refused(err, c.code)
	}
	if strings.Contains(w.read(w.journal), `"outcome"`) {
		t.Error("the agent heard something")
	}
	w.answer("s", q.ID, harness.Answer{OptionID: q.Options[0].ID})
	if end := w.end("s", st.MessageID); end.State != harness.MessageCompleted {
		t.Errorf("%s", text(end))
	}
}

// Case 43.
func TestAFormIsCheckedBeforeTheAgentSeesIt(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	for _, prompt := range []string{"ELICIT-FORM", "INFO"} {
		st := w.asked("s", prompt, 1)
		q := st.Questions[0]
		_, err := w.svc.Answer(w.ctx, "s", q.ID, "", harness.Answer{Content: json.RawMessage(`{}`)})
		w.refused(err, harness.InvalidResponse)
		w.answer("s", q.ID, harness.Answer{Content: json.RawMessage(`{"value":"red"}`)})
		if end := w.end("s", st.MessageID); end.State != harness.MessageCompleted || !strings.Contains(end.Result.Text, "red") {
			t.Errorf("%s: %s", prompt, text(end))
		}
	}
}

// Case 44 and the routing of a form.
func TestAFormCanBeDeclined(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	for word, says := range map[string]string{harness.AnswerReject: "[decline]", harness.AnswerCancel: "[cancel]"} {
		st := w.asked("s", "ELICIT-FORM", 1)
		w.answer("s", st.Questions[0].ID, harness.Answer{Word: word})
		if end := w.end("s", st.MessageID); end.Result == nil || !strings.Contains(end.Result.Text, says) {
			t.Errorf("%s: %s", word, text(end))
		}
	}
	if st := w.say("s", "ELICIT-BAD-MODE; SAY on"); st.State != harness.MessageCompleted {
		t.Errorf("%s", text(st))
	}
}

// A page that a person opens (part 1.5.5).
func TestAPageIsOpenedAndConfirmed(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st := w.asked("s", "ELICIT-URL", 1)
	q := st.Questions[0]
	if q.Kind != harness.AskURL || !strings.HasPrefix(q.URL, "http") {
		t.Fatalf("%s", text(q))
	}
	w.answer("s", q.ID, harness.Answer{Content: json.RawMessage(`{"opened":true}`)})
	if end := w.end("s", st.MessageID); end.State != harness.MessageCompleted || !strings.Contains(end.Result.Text, "accept") {
		t.Errorf("%s", text(end))
	}
}

// Case 45.
func TestAWithdrawnQuestionGoesAway(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	if st := w.say("s", "WITHDRAW; SAY on"); st.State != harness.MessageCompleted || len(st.Questions) != 0 {
		t.Fatalf("%s", text(st))
	}
	if n := w.logged("s", harness.EventWithdrawn); n != 1 {
		t.Errorf("%d questions were withdrawn", n)
	}
}

// Cases 26, 46 and 48.
func TestSeveralQuestionsAtOnceAreAnsweredInAnyOrder(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	w.create("b")
	st := w.asked("a", "PERM3", 3)
	other := w.asked("b", "PERM", 1)
	seen := map[string]bool{other.Questions[0].ID: true}
	for _, i := range []int{2, 0, 1} {
		q := st.Questions[i]
		if seen[q.ID] {
			t.Fatalf("the id %s is used twice", q.ID)
		}
		seen[q.ID] = true
		w.answer("a", q.ID, harness.Answer{OptionID: q.Options[0].ID})
	}
	if end := w.end("a", st.MessageID); end.State != harness.MessageCompleted || strings.Count(end.Result.Text, "[allowed:") != 3 {
		t.Errorf("%s", text(end))
	}
	st = w.asked("a", "PERM3; HOLD", 3)
	end, _, err := w.svc.Cancel(w.ctx, "a", "")
	if err != nil || end.State != harness.MessageCancelled || len(end.Questions) != 0 || len(end.Rejected) != 3 {
		t.Errorf("%v %s", err, text(end))
	}
	if n := strings.Count(w.read(w.journal), `"outcome":"cancelled"`); n != 3 {
		t.Errorf("%d questions were answered as cancelled", n)
	}
	if _, err := w.svc.CloseSession(w.ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if again, err := w.svc.Reopen(w.ctx, sessions.Again{SessionID: "a"}); err != nil || !again.Resumed {
		t.Fatalf("%v", err)
	}
	if q := w.asked("a", "PERM", 1).Questions[0]; seen[q.ID] || q.ID == st.Questions[0].ID {
		t.Errorf("the id %s is used again", q.ID)
	}
}

// Case 47.
func TestAPlainQuestionThatIsRejectedCancelsTheTurn(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	st := w.asked("s", "INFO; HOLD", 1)
	if got := w.answer("s", st.Questions[0].ID, harness.Answer{Word: harness.AnswerReject}); got.Routed != harness.RoutedTurnCancelled {
		t.Errorf("%s", text(got))
	}
	if end := w.end("s", st.MessageID); end.State != harness.MessageCancelled || end.CancelReason != harness.ReasonRejected {
		t.Errorf("%s", text(end))
	}
}

// Spec part 6.4: a person who is asked has time of their own.
func TestTheTurnsClockStandsStillWhileAPersonIsAsked(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Transport.TurnTimeoutSeconds, c.Transport.QuestionTimeoutSeconds = 2, 4 })
	w.create("s")
	st := w.asked("s", "PERM", 1)
	end := w.end("s", st.MessageID)
	if end.State != harness.MessageCompleted || !strings.Contains(end.Result.Text, "[cancelled]") {
		t.Errorf("%s", text(end))
	}
	if took := end.FinishedAt.Sub(*end.StartedAt); took < 4e9 {
		t.Errorf("it ended after %s", took)
	}
}

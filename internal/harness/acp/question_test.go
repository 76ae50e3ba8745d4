package acp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
)

// Cases 37, 38, 39: what is said arrives exactly, and nothing is said by itself.
func TestAPermissionIsAnsweredWithWhatWasSaid(t *testing.T) {
	for _, c := range []struct {
		script string
		answer acp.Answer
		routed string
		text   string
	}{
		{"PERM", acp.Select("allow_once"), "selected", "[allowed:allow_once]"},
		{"PERM", acp.Select("deny_once"), "selected", "[denied:deny_once]"},
		{"PERM", acp.Reject(), "selected", "[denied:deny_once]"},
		{"PERM", acp.Dismiss(), "cancelled", "[cancelled]"},
		{"PERM-NOREJECT", acp.Reject(), "cancelled", "[cancelled]"},
		{"PERM-ALWAYS", acp.Reject(), "selected", "[denied:deny_once]"},
		{"PERM", acp.Refuse(-32603, "no"), "refused", "[error:-32603]"},
		{"INFO", acp.Accept(json.RawMessage(`{"value":"x"}`)), "accept", `[content:{"value":"x"}]`},
		{"INFO", acp.Reject(), "cancelled", "[error:-32800]"},
		{"ELICIT-FORM", acp.Accept(json.RawMessage(`{"value":"red"}`)), "accept", `[accept:{"value":"red"}]`},
		{"ELICIT-FORM", acp.Reject(), "decline", "[decline]"},
		{"ELICIT-FORM", acp.Dismiss(), "cancel", "[cancel]"},
		{"ELICIT-URL", acp.Accept(nil), "accept", "[accept]"},
	} {
		t.Run(c.script+" "+c.text, func(t *testing.T) {
			inBubble(t, "", acp.Options{}, func(r *rig) {
				r.open(everything)
				turn := r.start("msg-1", c.script)
				q := await[*acp.Request](r, 0)
				equal(r.t, "turn", q.Turn, "msg-1")
				routed, err := r.conn.Reply(q.Ref, c.answer)
				equal(r.t, "routed", fmt.Sprint(routed, err), c.routed+"<nil>")
				if _, err := r.wait(turn); err != nil {
					r.t.Fatal(err)
				}
				equal(r.t, "text", r.transcript("msg-1").Text, c.text)
				// Case 42: once is enough.
				_, err = r.conn.Reply(q.Ref, c.answer)
				equal(r.t, "again", fault.CodeOf(err), acp.NoPending)
			})
		})
	}
}

// Cases 40, 42: what was not offered is refused and the question stays.
func TestAnAnswerThatDoesNotFitLeavesTheQuestionOpen(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "PERM; ELICIT-FORM")
		q := await[*acp.Request](r, 0)
		for _, a := range []acp.Answer{acp.Select("o9"), acp.Select(""), acp.Accept(json.RawMessage(`{}`)), acp.Result(nil), {}} {
			_, err := r.conn.Reply(q.Ref, a)
			equal(r.t, "code", fault.CodeOf(err), acp.InvalidOption)
		}
		equal(r.t, "answers sent", r.countSent("result")+r.countSent("error"), 0)
		equal(r.t, "pending", len(r.conn.Pending(r.sid)), 1)
		if _, err := r.conn.Reply(q.Ref, acp.Select("allow_once")); err != nil {
			r.t.Fatal(err)
		}
		form := await[*acp.Request](r, 1)
		for _, a := range []acp.Answer{acp.Select("red"), acp.Accept(nil), acp.Accept(json.RawMessage(`[1]`))} {
			_, err := r.conn.Reply(form.Ref, a)
			equal(r.t, "code of a form", fault.CodeOf(err), acp.InvalidOption)
		}
		if _, err := r.conn.Reply(form.Ref, acp.Dismiss()); err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
	})
}

// Case 46 and A08: each question gets its own answer, in whatever order.
func TestParallelQuestionsAreAnsweredEachForItself(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "PERM3")
		var refs []acp.Ref
		for i := range 3 {
			refs = append(refs, await[*acp.Request](r, i).Ref)
		}
		equalRefs(r.t, r.conn.Pending(r.sid), refs)
		for _, a := range []struct {
			i      int
			answer acp.Answer
		}{{2, acp.Select("deny_once")}, {0, acp.Dismiss()}, {1, acp.Select("allow_once")}} {
			if _, err := r.conn.Reply(refs[a.i], a.answer); err != nil {
				r.t.Fatal(err)
			}
		}
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "text", r.transcript("msg-1").Text, "[cancelled][allowed:allow_once][denied:deny_once]")
	})
}

func equalRefs(t *testing.T, got, want []acp.Ref) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Case 26: every question is answered `cancelled`, before session/cancel.
func TestCancelAnswersEveryQuestionFirst(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "PERMS 2; HOLD")
		refs := []acp.Ref{await[*acp.Request](r, 0).Ref, await[*acp.Request](r, 1).Ref}
		answered, err := r.conn.Cancel(r.sid)
		if err != nil {
			r.t.Fatal(err)
		}
		equalRefs(r.t, answered, refs)
		res, err := r.wait(turn)
		equal(r.t, "settled", fmt.Sprint(res.StopReason, err), "cancelled<nil>")
		sent := r.methods()
		equalLists(r.t, "the last lines", sent[len(sent)-3:], []string{"result", "result", "session/cancel"})
		equal(r.t, "text", r.transcript("msg-1").Text, "[cancelled][cancelled]")
		equal(r.t, "pending", len(r.conn.Pending(r.sid)), 0)
	})
}

// A question that the agent asks while the cancel is on its way is answered too.
func TestAQuestionOfACancelledTurnIsAnsweredAtOnce(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		turn := r.start("msg-1", "work")
		call := agent.next()
		if _, err := r.conn.Cancel(r.sid); err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "cancel", agent.next().Method, "session/cancel")
		agent.say(`{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","kind":"allow_once"}]}}`)
		answer := agent.next()
		equal(r.t, "answer", string(answer.ID)+string(answer.Result), `"q1"{"outcome":{"outcome":"cancelled"}}`)
		equal(r.t, "the handler knows", await[*acp.Request](r, 0).Answered, true)
		agent.say(`{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":{"stopReason":"cancelled"}}`)
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
		// The next turn is not cancelled.
		next := r.start("msg-2", "more")
		call = agent.next()
		agent.say(`{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","kind":"allow_once"}]}}`)
		second := await[*acp.Request](r, 1)
		equal(r.t, "asked in the next turn", second.Answered, false)
		if _, err := r.conn.Reply(second.Ref, acp.Select("yes")); err != nil {
			r.t.Fatal(err)
		}
		agent.say(`{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":{"stopReason":"end_turn"}}`)
		if _, err := r.wait(next); err != nil {
			r.t.Fatal(err)
		}
	})
}

// Case 48 and A08: agents count from 0 again and again, and may use one id twice.
func TestTheAgentsIDsAreNeverOurs(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		ask := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t"},"options":[]}}`
		agent.say(ask)
		first := await[*acp.Request](r, 0)
		agent.say(ask) // while the first is open
		equal(r.t, "second of the same id", await[*acp.Odd](r, 0).Kind, acp.OddDuplicateID)
		if _, err := r.conn.Reply(first.Ref, acp.Dismiss()); err != nil {
			r.t.Fatal(err)
		}
		agent.next()
		agent.say(ask)
		equal(r.t, "a new ref", await[*acp.Request](r, 1).Ref > first.Ref, true)
		for i, id := range []string{"null", "{}", "[0]"} {
			agent.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/request_permission","params":{}}`)
			equal(r.t, "id "+id, await[*acp.Odd](r, i+1).Kind, acp.OddCannotAnswer)
		}
	})
}

// Only an answer with exactly our number settles a call.
func TestAnswersAreAttributedStrictly(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		turn := r.start("msg-1", "work")
		id := string(agent.next().ID)
		for i, wrong := range []string{`"` + id + `"`, id + ".5", "99", "null", "-" + id} {
			agent.say(`{"jsonrpc":"2.0","id":` + wrong + `,"result":{"stopReason":"refusal"}}`)
			equal(r.t, "id "+wrong, await[*acp.Odd](r, i).Kind, acp.OddUnknownID)
		}
		agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not yours"}}}}`)
		equal(r.t, "of another session", await[*acp.Update](r, 0).Turn, "")
		agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan"}}}`)
		equal(r.t, "of no session", await[*acp.Odd](r, 5).Kind, acp.OddUpdateNoID)
		agent.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"stopReason":"new_reason"}}`)
		res, err := r.wait(turn)
		equal(r.t, "settled", fmt.Sprint(res.StopReason, err), "new_reason<nil>")
	})
}

// Case 45.
func TestAWithdrawnQuestionIsGone(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "WITHDRAW")
		q := await[*acp.Request](r, 0)
		equal(r.t, "withdrawn", await[*acp.Withdrawn](r, 0).Ref, q.Ref)
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "text", r.transcript("msg-1").Text, "withdrawn [error:-32800]")
		_, err := r.conn.Reply(q.Ref, acp.Select("allow_once"))
		equal(r.t, "code", fault.CodeOf(err), acp.NoPending)
	})
}

// Cases 34 and 44: what we did not offer is refused, and the turn goes on.
func TestWhatWasNotAdvertisedIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		script, text string
		caps         acp.ClientCaps
	}{
		{"FSWRITE", "[fs:-32601]", everything},
		{"FSREAD /etc/passwd", "[fs:-32601]", everything},
		{"TERMINAL ls", "[terminal:-32601]", everything},
		{"UNKNOWN-REQUEST", "[unknown:-32601]", everything},
		{"ELICIT-BAD-MODE", "[error:-32602]", everything},
		{"ELICIT-URL", "[error:-32602]", acp.ClientCaps{ElicitForm: true}},
		{"ELICIT-FORM", "[error:-32601]", acp.ClientCaps{}},
	} {
		t.Run(c.script, func(t *testing.T) {
			inBubble(t, "", acp.Options{}, func(r *rig) {
				r.open(c.caps)
				r.mustPrompt("msg-1", c.script)
				equal(r.t, "text", r.transcript("msg-1").Text, c.text)
				equal(r.t, "recorded", await[*acp.Odd](r, 0).Kind, acp.OddRefused)
				equal(r.t, "asked", len(all[*acp.Request](r)), 0)
			})
		})
	}
}

func TestFilesAreServedWhenThatWasAdvertised(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{ReadFile: true, WriteFile: true, Terminal: true})
		turn := r.start("msg-1", "FSREAD /proj/a.go; FSWRITE")
		read := await[*acp.Request](r, 0)
		equal(r.t, "kind", read.Kind, acp.KindFile)
		if _, err := r.conn.Reply(read.Ref, acp.Result(json.RawMessage(`{"content":"package a"}`))); err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.conn.Reply(await[*acp.Request](r, 1).Ref, acp.Refuse(acp.CodeInternal, "disk full")); err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "text", r.transcript("msg-1").Text, `[fs:{"content":"package a"}][fs:-32603]`)
	})
}

// An agent that asks without end gets refusals, not memory.
func TestOpenQuestionsAreBounded(t *testing.T) {
	inBubble(t, "", acp.Options{Limits: acp.Limits{OpenQuestions: 100}}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "PERMS 103")
		for i := range 100 {
			await[*acp.Request](r, i)
		}
		for i := range 3 {
			equal(r.t, "refused", await[*acp.Odd](r, i).Kind, acp.OddRefused)
		}
		answered, err := r.conn.Cancel(r.sid)
		equal(r.t, "answered", fmt.Sprint(len(answered), err), "100 <nil>")
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
	})
}

func TestAFinishedPageIsReported(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(everything)
		turn := r.start("msg-1", "ELICIT-URL")
		q := await[*acp.Request](r, 0)
		equal(r.t, "page", q.Elicitation.URL, "https://login.example.test/oauth?state=fake")
		if _, err := r.conn.Reply(q.Ref, acp.Accept(nil)); err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "completed", await[*acp.Completed](r, 0).ElicitationID, q.Elicitation.ID)
		if _, err := r.wait(turn); err != nil {
			r.t.Fatal(err)
		}
	})
}

package turntools

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

func TestResultsOfAnswersFitTheirSchemas(t *testing.T) {
	const id, terminal, words = "turn-20260102T030405-00000000", "terminal:v2:tmux:claude:a:0.0:1", "\xff not UTF-8"
	approved := dispatch.ApproveResult{TurnID: id, TerminalID: terminal, Agent: "claude", Decision: dispatch.ApproveOnce, Outcome: dispatch.OutcomeApproved, Approved: true,
		Label: "Yes", Prompt: "Run it?" + words, AnsweredBy: "controller", Via: turn.ChannelKeyboard, PromptGone: true, TurnStatus: turn.WaitingForAgent, DurableReceipt: true, DoNotRetry: true}
	rejected, doubtful, early, scoped := approved, approved, approved, approved
	rejected.Decision, rejected.Outcome, rejected.Approved, rejected.Via = dispatch.Reject, dispatch.OutcomeRejected, false, turn.ChannelCodexSocket
	doubtful.Outcome, doubtful.Approved, doubtful.PromptGone, doubtful.Reason = dispatch.OutcomeUncertain, false, false, "why"
	early.Outcome, early.Approved, early.AlreadyApproved, early.AutoApproved, early.AnsweredBy = dispatch.OutcomeAlready, false, true, true, "policy:tests"
	scoped.TurnID, scoped.TurnStatus, scoped.TerminalScoped, scoped.DurableReceipt = "", "", true, false

	next := dispatch.Interaction{Schema: "s", Version: 1, InteractionID: "interaction-2", TurnID: id, Agent: "claude", Kind: "questionnaire", State: dispatch.InteractionPending,
		Step:      dispatch.InteractionStep{Index: 2, Total: 3},
		Questions: []dispatch.Question{{QuestionID: "q2", Header: "Colour", Prompt: "Which?", Required: true, ResponseKind: turn.StepSingle, Options: []dispatch.Choice{{OptionID: "a", Label: "A", Description: "d"}}, Placeholder: "Other"}},
		ExpiresAt: time.Unix(1_700_000_000, 0), Capabilities: dispatch.Capabilities{Respond: true, FreeText: true, MaxText: 100}}
	manual := next
	manual.State, manual.Reason, manual.ExpiresAt, manual.Capabilities, manual.Questions[0].ResponseKind = dispatch.InteractionManual, "why", time.Time{}, dispatch.Capabilities{}, turn.StepMulti
	step := dispatch.InteractionResult{InteractionID: "interaction-1", TurnID: id, Outcome: dispatch.OutcomeAccepted, Label: "A", PromptGone: true, TurnStatus: turn.WaitingForController, DoNotRetry: true, Next: &next}
	last, unsure, byPerson := step, step, step
	last.Next, last.TurnStatus = nil, turn.WaitingForAgent
	unsure.Outcome, unsure.Next, unsure.PromptGone, unsure.Reason = dispatch.OutcomeResponseUncertain, nil, false, "why"
	byPerson.Outcome, byPerson.Replayed, byPerson.Next = dispatch.OutcomeAlready, true, &manual

	task := turn.Turn{ID: id, SessionID: "session-20260102T030405-00000000", Terminal: terminal, MessageID: "message-1", Agent: "claude", Status: turn.WaitingForAgent, Stage: turn.Accepted}
	for name, c := range map[string]struct {
		tool, args string
		out        any
	}{
		"approved":              {"approve", "", approved},
		"rejected":              {"approve", "", rejected},
		"maybe approved":        {"approve", "", doubtful},
		"approved by a policy":  {"approve", "", early},
		"approved without turn": {"approve", "", scoped},
		"a step with a next":    {"respond_interaction", `,"interaction_id":"interaction-1","answers":[{"question_id":"q","response_kind":"confirm","confirm":true}]`, step},
		"the last step":         {"respond_interaction", `,"interaction_id":"interaction-1","answers":[{"question_id":"q","response_kind":"confirm","confirm":true}]`, last},
		"a doubtful step":       {"respond_interaction", `,"interaction_id":"interaction-1","answers":[{"question_id":"q","response_kind":"confirm","confirm":true}]`, unsure},
		"a step for a person":   {"respond_interaction", `,"interaction_id":"interaction-1","answers":[{"question_id":"q","response_kind":"confirm","confirm":true}]`, byPerson},
		"a continued task":      {"respond", `,"request":"x"`, respondOutput{newSendOutput(dispatch.SendResult{Turn: task}), task.Budget()}},
	} {
		t.Run(name, func(t *testing.T) {
			fits := tooltest.Fits[respondInteractionInput]
			switch c.tool {
			case "approve":
				fits = tooltest.Fits[approveInput]
			case "respond":
				fits = tooltest.Fits[respondInput]
			}
			fits(t, prefix+c.tool, `{"turn_id":"`+id+`"`+c.args+`}`, c.out)
		})
	}
}

package turntools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const respondInteractionDescription = `Answers one step of a questionnaire that an agent shows: one choice (single_select), words of your own (free_text), or the last step (confirm).

It needs turn_id and interaction_id from the interaction of agent_knock_knock_status, shown in the last 10 minutes, with state pending. Each call answers exactly one step. Then:
- accepted with next: the next step, shown already; answer it with its own interaction_id.
- accepted without next: the agent goes on; the callback brings the outcome or the next question.
- already_answered: nothing was pressed.
- response_uncertain (do_not_retry): an answer may have arrived; a person must look at the pane.
An error means that no key was pressed; expired or interaction_mismatch: call agent_knock_knock_status again. manual_required is for a person in the pane. Never give a secret here.`

type respondInteractionInput struct {
	TurnID        ids.TurnID         `json:"turn_id"`
	InteractionID string             `json:"interaction_id"`
	Answers       []interactionReply `json:"answers"`
}

type interactionReply struct {
	QuestionID string        `json:"question_id"`
	Kind       turn.StepKind `json:"response_kind"`
	Options    []string      `json:"selected_option_ids"`
	Text       *string       `json:"text"`
	Confirm    *bool         `json:"confirm"`
}

func registerRespondInteraction(r *toolkit.Registry, s *dispatch.Service) {
	name := prefix + "respond_interaction"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Respond Interaction", Description: respondInteractionDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating, OpenWorld: true,
	}, func(ctx context.Context, call toolkit.Call, in respondInteractionInput) (any, error) {
		answers := make([]turn.Reply, len(in.Answers))
		for i, a := range in.Answers {
			answers[i] = turn.Reply{QuestionID: a.QuestionID, Kind: a.Kind, Options: a.Options, Text: a.Text, Confirm: a.Confirm}
		}
		res, err := s.RespondInteraction(ctx, dispatch.InteractionInput{CallID: call.ID, TurnID: in.TurnID, InteractionID: in.InteractionID, Answers: answers})
		if err != nil { // dispatch.RespondInteraction promises that no key was pressed
			return nil, toolkit.WithRetry(err, toolkit.RetrySafe)
		}
		return res, nil
	})
}

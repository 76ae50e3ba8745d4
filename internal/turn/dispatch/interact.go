package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// States of an interaction.
const (
	InteractionPending   = "pending"            // it can be answered here
	InteractionManual    = "manual_required"    // only a person can, in the terminal
	InteractionUncertain = "response_uncertain" // an answer may have reached the agent
)

const toolRespondInteraction = "agent_knock_knock_respond_interaction"

// Interaction is one step of a questionnaire as the Host sees it.
type Interaction struct {
	Schema        string          `json:"schema"`
	Version       int             `json:"version"`
	InteractionID string          `json:"interaction_id"`
	TurnID        ids.TurnID      `json:"turn_id"`
	Agent         string          `json:"agent"`
	Kind          string          `json:"kind"`
	State         string          `json:"state"`
	Reason        string          `json:"reason,omitempty"`
	Step          InteractionStep `json:"step"`
	Questions     []Question      `json:"questions"`
	ExpiresAt     time.Time       `json:"expires_at,omitzero"`
	Capabilities  Capabilities    `json:"capabilities"`
}

// InteractionStep is the place of a step; 0 means that the agent does not show it.
type InteractionStep struct {
	Index int `json:"index"`
	Total int `json:"total"`
}

// Question is what one step asks.
type Question struct {
	QuestionID   string        `json:"question_id"`
	Header       string        `json:"header,omitempty"`
	Prompt       string        `json:"prompt"`
	Required     bool          `json:"required"`
	ResponseKind turn.StepKind `json:"response_kind"`
	Options      []Choice      `json:"options,omitempty"`
	Placeholder  string        `json:"placeholder,omitempty"`
}

// Choice is one option of a question.
type Choice struct {
	OptionID    string `json:"option_id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Capabilities say how an interaction can be answered.
type Capabilities struct {
	Respond       bool `json:"respond"`
	BatchResponse bool `json:"batch_response"`
	FreeText      bool `json:"free_text"`
	MultiSelect   bool `json:"multi_select"`
	MaxText       int  `json:"max_text,omitempty"`
}

// interaction shows the question that a Turn waits on, nil for none. It is shown to the
// Host together with the offer to answer it.
func (s *Service) interaction(t turn.Turn) *Interaction {
	p := t.Prompt
	if p == nil || p.Kind != turn.PromptQuestion || !t.Status.Blocking() {
		return nil
	}
	out := &Interaction{Schema: "agent-knock-knock/terminal-interaction", Version: 1, InteractionID: turn.InteractionID(t.ID, p.Fingerprint),
		TurnID: t.ID, Agent: t.Agent, Kind: "questionnaire", State: InteractionPending, Questions: []Question{}}
	if p.Step != nil {
		out.Step = InteractionStep{Index: p.Step.Index, Total: p.Step.Total}
		out.Questions = append(out.Questions, question(*p))
	}
	why := p.Unanswerable()
	if why == "" && t.Status != turn.WaitingForController {
		why = fmt.Sprintf("the turn is %s", t.Status)
	}
	switch {
	case t.InDoubt():
		out.State, out.Reason = InteractionUncertain, "an answer may have reached the agent; a person must look at the terminal"
	case why != "":
		out.State, out.Reason = InteractionManual, redact.Line(redact.String(why), 300)
	default:
		_, words := p.Choices()
		out.ExpiresAt = s.Clock.Now().Add(offer.Life)
		out.Capabilities = Capabilities{Respond: true, FreeText: words != nil || p.Step.Kind == turn.StepFreeText}
		if out.Capabilities.FreeText {
			out.Capabilities.MaxText = maxText(t.Agent)
		}
	}
	return out
}

func maxText(agent string) int {
	if agent == "claude" {
		return turn.MaxClaudeText
	}
	return turn.MaxReplyText
}

func question(p turn.Prompt) Question {
	line := func(s string, max int) string { return redact.Line(redact.String(s), max) }
	q := Question{QuestionID: p.Step.ID, Header: line(p.Step.Header, 12), Prompt: line(p.Step.Text, 4096), Required: true, ResponseKind: p.Step.Kind}
	plain, words := p.Choices()
	for _, o := range plain {
		q.Options = append(q.Options, Choice{OptionID: o.ID, Label: line(o.Label, 64), Description: line(o.Description, 1024)})
	}
	if words != nil {
		q.Placeholder = line(words.Label, 256)
	}
	return q
}

// InteractionInput answers one step of a questionnaire.
type InteractionInput struct {
	CallID        string
	TurnID        ids.TurnID
	InteractionID string
	Answers       []turn.Reply
}

// Outcomes of an answer to a question, beside OutcomeAlready.
const (
	OutcomeAccepted          = "accepted"
	OutcomeResponseUncertain = "response_uncertain"
)

// InteractionResult says what is known of the answer, and what is asked next.
type InteractionResult struct {
	InteractionID string       `json:"interaction_id"`
	TurnID        ids.TurnID   `json:"turn_id"`
	Outcome       string       `json:"outcome"`
	Label         string       `json:"label,omitempty"`
	PromptGone    bool         `json:"prompt_gone"`
	TurnStatus    turn.Status  `json:"turn_status"`
	Replayed      bool         `json:"replayed"`
	DoNotRetry    bool         `json:"do_not_retry"`
	Reason        string       `json:"reason,omitempty"`
	Next          *Interaction `json:"next,omitempty"`
}

// RespondInteraction answers exactly one step of a questionnaire that status showed. An
// error means that no key was pressed; every outcome after a possible key is a result.
func (s *Service) RespondInteraction(ctx context.Context, in InteractionInput) (InteractionResult, error) {
	call, err := interactionCall(in)
	if err != nil {
		return InteractionResult{}, err
	}
	t, given, ok, err := s.answerOf(ctx, call)
	if err != nil {
		return InteractionResult{}, err
	}
	if ok {
		r := interactionResult(in.InteractionID, t, given)
		r.Replayed, r.Next = true, s.interaction(t)
		return r, nil
	}
	if t, err = s.mine(ctx, in.TurnID); err != nil {
		return InteractionResult{}, err
	}
	if a := t.Answer; a != nil && a.State == turn.AnswerSent && turn.InteractionID(t.ID, a.Fingerprint) == in.InteractionID && (t.Prompt == nil || t.Prompt.Fingerprint != a.Fingerprint) {
		r := interactionResult(in.InteractionID, t, *a)
		r.Outcome = OutcomeAlready
		return r, nil
	}
	a, err := s.reply(t, in)
	if err != nil {
		return InteractionResult{}, err
	}
	a.call, a.answer.By, a.answer.Call = &call, byController, in.CallID
	got, err := s.answer(ctx, a)
	if err != nil {
		return InteractionResult{}, err
	}
	s.prompts.Void(turnOffer(t.ID))
	return s.nextStep(ctx, in, got), nil
}

func interactionCall(in InteractionInput) (turnsql.Call, error) {
	body, err := json.Marshal([]any{in.InteractionID, in.Answers})
	if err != nil {
		return turnsql.Call{}, fault.Wrap(err, fault.Invalid, "dispatch.interaction", "the answers cannot be read")
	}
	return turnsql.Call{Key: in.CallID, TurnID: in.TurnID, Tool: "respond_interaction", RequestHash: ids.TextHash(string(body))}, nil
}

// reply checks everything that can be checked without the terminal.
func (s *Service) reply(t turn.Turn, in InteractionInput) (answering, error) {
	const op = "dispatch.interaction"
	p := t.Prompt
	if p == nil || p.Kind != turn.PromptQuestion || turn.InteractionID(t.ID, p.Fingerprint) != in.InteractionID {
		return answering{}, fault.New(turn.CodeMismatch, op, "this interaction is not the one that turn %s waits on now", t.ID).
			WithHint("no key was pressed; see the interaction in agent_knock_knock_status")
	}
	if err := turn.CanAnswer(t, p.Fingerprint); err != nil {
		return answering{}, err
	}
	if shown, _, ok := s.prompts.Get(turnOffer(t.ID)); !ok || shown.fingerprint != p.Fingerprint {
		return answering{}, fault.New(turn.CodeExpired, op, "this question was not shown to you lately").
			WithHint("no key was pressed; read it with agent_knock_knock_status, then answer")
	}
	option, text, err := p.Resolve(in.Answers, maxText(t.Agent))
	if err != nil {
		return answering{}, err
	}
	if redact.String(text) != text {
		return answering{}, fault.New(turn.CodeSecret, op, "the answer looks like a secret").WithHint("no key was pressed; a person must type it in the terminal")
	}
	choice := "free text"
	if text == "" {
		choice = redact.Line(redact.String(option.Label), summaryLength)
	}
	return answering{turn: t, prompt: *p, option: option, text: text, answer: turn.Answer{Fingerprint: p.Fingerprint, Choice: choice}}, nil
}

// nextStep records and shows the step that took the place of the answered one. Nobody hears
// of it by the result of a call that was given up: then it counts as not told, and a sweep
// tells it.
func (s *Service) nextStep(ctx context.Context, in InteractionInput, got answered) InteractionResult {
	t := got.turn
	if got.next != nil && got.next.Step != nil {
		record := turn.ShowPrompt
		if ctx.Err() != nil {
			record = turn.HoldPrompt
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
		defer cancel()
		after, err := s.change(ctx, t.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) {
			return record(t, turn.Observation{Kind: turn.ObsPrompt, At: now, Source: "screen", Prompt: got.next}, now), nil
		})
		if err != nil { // the monitor sees it too
			s.Log.Debug("the next step could not be recorded", "turn", t.ID, "err", err)
		} else {
			t = after
		}
	}
	r := interactionResult(in.InteractionID, t, *got.turn.Answer)
	r.PromptGone = got.taken
	if r.Next = s.interaction(t); r.Next != nil {
		if r.Next.InteractionID == in.InteractionID {
			r.Next = nil
		} else {
			s.offerPrompt(t)
		}
	}
	return r
}

func interactionResult(id string, t turn.Turn, a turn.Answer) InteractionResult {
	r := InteractionResult{InteractionID: id, TurnID: t.ID, Outcome: OutcomeAccepted, Label: a.Choice, PromptGone: a.Gone, TurnStatus: t.Status, DoNotRetry: true, Reason: a.Reason}
	switch a.State {
	case turn.AnswerSent:
	case turn.AnswerNotSent:
		r.Outcome, r.DoNotRetry = "not_sent", false
	default:
		r.Outcome = OutcomeResponseUncertain
	}
	return r
}

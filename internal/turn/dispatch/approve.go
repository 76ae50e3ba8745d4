package dispatch

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// CodeNotReviewed: the prompt was not shown to this Host lately.
const CodeNotReviewed fault.Code = "not_reviewed"

// Decisions of approve. There is none that lasts.
const (
	ApproveOnce = "approve_once"
	Reject      = "reject"
)

// Outcomes of an answer.
const (
	OutcomeApproved  = "approved"
	OutcomeRejected  = "rejected"
	OutcomeAlready   = "already_answered"
	OutcomeUncertain = "uncertain"
)

// byController is who answers when a tool call does.
const byController = "controller"

// ApproveInput is a decision about one open prompt.
type ApproveInput struct {
	CallID     string
	TurnID     ids.TurnID
	TerminalID ids.TerminalID
	Decision   string // ApproveOnce when ""
}

// ApproveResult says what is known of the answer. It holds no key and no fingerprint.
type ApproveResult struct {
	TurnID          ids.TurnID        `json:"turn_id,omitempty"`
	TerminalID      ids.TerminalID    `json:"terminal_id"`
	Agent           string            `json:"agent"`
	Decision        string            `json:"decision"`
	Outcome         string            `json:"outcome"`
	Approved        bool              `json:"approved"`
	AlreadyApproved bool              `json:"already_approved"`
	Replayed        bool              `json:"replayed"`
	Label           string            `json:"label,omitempty"`
	Prompt          string            `json:"prompt,omitempty"`
	AnsweredBy      string            `json:"answered_by,omitempty"`
	AutoApproved    bool              `json:"auto_approved"`
	Via             turn.Channel      `json:"via,omitempty"`
	PromptGone      bool              `json:"prompt_gone"`
	TurnStatus      turn.Status       `json:"turn_status,omitempty"`
	TerminalScoped  bool              `json:"terminal_scoped"`
	DurableReceipt  bool              `json:"durable_receipt"`
	DoNotRetry      bool              `json:"do_not_retry"`
	Reason          string            `json:"reason,omitempty"`
	Actions         map[string]Action `json:"available_actions,omitempty"`
}

// shownPrompt is a prompt that status showed to the Host.
type shownPrompt struct {
	fingerprint string
	what        string // for people
	terminal    string // terminal key
}

func turnOffer(id ids.TurnID) string         { return "turn:" + string(id) }
func terminalOffer(id ids.TerminalID) string { return "terminal:" + string(id) }

// offerPrompt remembers that the Host was shown the Turn's open prompt: it may decide about
// exactly that one now.
func (s *Service) offerPrompt(t turn.Turn) {
	if t.Prompt == nil {
		s.prompts.Void(turnOffer(t.ID))
		return
	}
	s.prompts.Put(turnOffer(t.ID), shownPrompt{t.Prompt.Fingerprint, described(*t.Prompt), t.TerminalKey()})
}

// offerTerminal is offerPrompt for a terminal that no Turn of ours keeps.
func (s *Service) offerTerminal(t discover.Terminal) {
	if p := t.Screen.Prompt; p == nil {
		s.prompts.Void(terminalOffer(t.ID))
	} else {
		s.prompts.Put(terminalOffer(t.ID), shownPrompt{p.Fingerprint, described(*p), t.Key()})
	}
}

// answerActions are the answers that are possible for a Turn now.
func (s *Service) answerActions(t turn.Turn) map[string]Action {
	out := map[string]Action{}
	if i := s.interaction(t); i != nil && i.State == InteractionPending && s.DB.Writable() {
		out["respond_interaction"] = Action{Tool: toolRespondInteraction, Arguments: map[string]any{"turn_id": t.ID, "interaction_id": i.InteractionID},
			MissingRequired: []string{"answers"}}
	}
	if t.Prompt == nil || !s.DB.Writable() || turn.CanAnswer(t, t.Prompt.Fingerprint) != nil {
		return out
	}
	if _, err := t.Prompt.Choose(true); err == nil {
		out["approve"] = Action{Tool: toolApprove, Arguments: map[string]any{"turn_id": t.ID, "decision": ApproveOnce}}
	}
	if _, err := t.Prompt.Choose(false); err == nil {
		out["reject"] = Action{Tool: toolApprove, Arguments: map[string]any{"turn_id": t.ID, "decision": Reject}}
	}
	return out
}

const toolApprove = "agent_knock_knock_approve"

// Approve answers one open approval, once: the prompt that was shown to this Host and no
// other, and only this one time. An error means that no key was pressed; every outcome
// after a possible key is a result.
func (s *Service) Approve(ctx context.Context, in ApproveInput) (ApproveResult, error) {
	const op = "dispatch.approve"
	if in.Decision == "" {
		in.Decision = ApproveOnce
	}
	if in.Decision != ApproveOnce && in.Decision != Reject {
		return ApproveResult{}, fault.New(fault.Invalid, op, "the decision is %s or %s", ApproveOnce, Reject)
	}
	if (in.TurnID == "") == (in.TerminalID == "") {
		return ApproveResult{}, fault.New(fault.Invalid, op, "give exactly one of turn_id and terminal_id").WithHint("agent_knock_knock_list shows both")
	}
	if in.TerminalID != "" {
		return s.approveTerminal(ctx, in)
	}
	call := turnsql.Call{Key: in.CallID, TurnID: in.TurnID, Tool: "approve", RequestHash: ids.TextHash(in.Decision)}
	if r, ok, err := s.replayAnswer(ctx, call); err != nil || ok {
		return r, err
	}
	t, err := s.mine(ctx, in.TurnID)
	if err != nil {
		return ApproveResult{}, err
	}
	if t.Prompt == nil && t.Answer != nil && t.Answer.Kind == turn.PromptApproval && t.Answer.State == turn.AnswerSent {
		return already(t, *t.Answer), nil
	}
	a, err := s.approval(ctx, t, in.Decision)
	if fault.Is(err, turn.CodeAnswered) {
		return already(t, *t.Answer), nil
	}
	if err != nil {
		return ApproveResult{}, err
	}
	a.call, a.answer.By, a.answer.Call = &call, byController, in.CallID
	got, err := s.answer(ctx, a)
	if fault.Is(err, turn.CodeAnswered) { // another call was faster
		if t, err = s.get(ctx, in.TurnID); err == nil && t.Answer != nil {
			return already(t, *t.Answer), nil
		}
	}
	if err != nil {
		return ApproveResult{}, err
	}
	s.prompts.Void(turnOffer(t.ID)) // the same words again are another question
	r := approveResult(got.turn, *got.turn.Answer)
	r.Via, r.PromptGone = got.via, got.taken
	return r, nil
}

// mine returns a Turn that this Bridge may act on.
func (s *Service) mine(ctx context.Context, id ids.TurnID) (turn.Turn, error) {
	if err := s.CheckProfile(); err != nil {
		return turn.Turn{}, err
	}
	if err := s.DB.CheckWritable(); err != nil {
		return turn.Turn{}, err
	}
	var row turnsql.Row
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, err = turnsql.Get(tx, id)
		return err
	}); err != nil {
		return turn.Turn{}, err
	}
	if row.Owner != s.Bridge {
		return turn.Turn{}, fault.New(fault.Conflict, "dispatch.answer", "turn %s belongs to another Bridge", id).
			WithHint("answer it there; a Bridge that ended loses its turns to this one within seconds")
	}
	return row.Turn, nil
}

// approval checks everything that can be checked without the terminal.
func (s *Service) approval(ctx context.Context, t turn.Turn, decision string) (answering, error) {
	fp := ""
	if t.Prompt != nil {
		fp = t.Prompt.Fingerprint
	}
	if err := turn.CanAnswer(t, fp); err != nil {
		return answering{}, err
	}
	option, err := t.Prompt.Choose(decision == ApproveOnce)
	if err != nil {
		return answering{}, err
	}
	if err := s.reviewed(ctx, t); err != nil {
		return answering{}, err
	}
	return answering{turn: t, prompt: *t.Prompt, option: option,
		answer: turn.Answer{Fingerprint: fp, Choice: redact.Line(redact.String(option.Label), summaryLength), Decision: decision}}, nil
}

// reviewed returns nil when the open prompt was displayed to this Host: by status, or by a
// notification that it accepted, both within the last ten minutes.
func (s *Service) reviewed(ctx context.Context, t turn.Turn) error {
	const op = "dispatch.answer"
	shown, _, ok := s.prompts.Get(turnOffer(t.ID))
	if ok && shown.fingerprint == t.Prompt.Fingerprint {
		return nil
	}
	heard := false
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		all, err := outboxsql.BySource(tx, outbox.SourceTurn, string(t.ID))
		for _, d := range all {
			heard = heard || s.heard(d, t)
		}
		return err
	})
	switch {
	case err != nil || heard:
		return err
	case ok:
		return fault.New(turn.CodePromptChanged, op, "the prompt that was shown (%s) is not the one that is open (%s)", shown.what, described(*t.Prompt)).
			WithHint("no key was pressed; read the new one with agent_knock_knock_status before you decide")
	}
	return fault.New(CodeNotReviewed, op, "this prompt was not shown to you in the last %.0f minutes", offer.Life.Minutes()).
		WithHint("no key was pressed; read it with agent_knock_knock_status, then decide")
}

// heard reports whether the Host accepted the notification of the open prompt lately.
func (s *Service) heard(d outbox.Delivery, t turn.Turn) bool {
	if d.Status != outbox.Delivered || d.Event.Metadata["prompt_fingerprint"] != t.Prompt.Fingerprint || d.Route.SessionDigest != s.Route.SessionDigest {
		return false
	}
	if a := t.Answer; a != nil && a.Fingerprint == t.Prompt.Fingerprint && a.Gone && !d.CreatedAt.After(a.At) {
		return false // it spoke of the same words, asked before
	}
	return s.Clock.Now().Sub(d.AcceptedAt) < offer.Life
}

// replayAnswer answers a repeated call from the record of the first one.
func (s *Service) replayAnswer(ctx context.Context, call turnsql.Call) (ApproveResult, bool, error) {
	t, a, ok, err := s.answerOf(ctx, call)
	if err != nil || !ok {
		return ApproveResult{}, false, err
	}
	r := approveResult(t, a)
	r.Replayed = true
	return r, true, nil
}

// answerOf returns the answer that a call gave, if it was made before.
func (s *Service) answerOf(ctx context.Context, call turnsql.Call) (t turn.Turn, a turn.Answer, found bool, err error) {
	err = s.DB.View(ctx, func(tx *store.Tx) error {
		before, ok, err := turnsql.GetCall(tx, call.Key)
		if err != nil || !ok {
			return err
		}
		if before != call {
			return fault.New(turn.CodeReplay, "dispatch.answer", "this call id was used for something else").WithHint("use a new call for a new decision")
		}
		row, err := turnsql.Get(tx, call.TurnID)
		if err != nil {
			return err
		}
		events, err := turnsql.Events(tx, call.TurnID, traceEvents)
		if err != nil {
			return err
		}
		t = row.Turn
		a, found = answerIn(t, events, call.Key)
		return nil
	})
	return t, a, found, err
}

// answerIn finds what became of the answer that a call gave, in the Turn or its journal.
func answerIn(t turn.Turn, events []turn.Event, call string) (turn.Answer, bool) {
	if t.Answer != nil && t.Answer.Call == call {
		return *t.Answer, true
	}
	a, found := turn.Answer{Call: call, State: turn.AnswerUncertain, Reason: "the record of this answer is not in the newest events"}, false
	for _, e := range events {
		switch {
		case e.Kind == turn.EvAnswerReserved:
			if found {
				return a, true
			}
			if found = e.Answer.Call == call; found {
				a = *e.Answer
			}
		case !found:
		case e.Kind == turn.EvAnswerSent:
			a.State = turn.AnswerSent
		case e.Kind == turn.EvAnswerNotSent:
			a.State, a.Reason = turn.AnswerNotSent, e.Reason
		case e.Kind == turn.EvAnswerUncertain:
			a.State, a.Reason = turn.AnswerUncertain, e.Reason
		}
	}
	return a, true
}

func already(t turn.Turn, a turn.Answer) ApproveResult {
	r := approveResult(t, a)
	r.Outcome, r.AlreadyApproved, r.Approved = OutcomeAlready, r.Approved, false
	return r
}

func approveResult(t turn.Turn, a turn.Answer) ApproveResult {
	r := ApproveResult{TurnID: t.ID, TerminalID: t.Terminal, Agent: t.Agent, Decision: a.Decision, Label: a.Choice, Prompt: redact.Line(redact.String(a.Title), 300),
		AnsweredBy: a.By, AutoApproved: a.By != byController, PromptGone: a.Gone, TurnStatus: t.Status, DurableReceipt: true, DoNotRetry: true, Reason: a.Reason}
	switch a.State {
	case turn.AnswerSent:
		r.Outcome, r.Approved = OutcomeApproved, a.Decision == ApproveOnce
		if a.Decision == Reject {
			r.Outcome = OutcomeRejected
		}
	case turn.AnswerNotSent:
		r.Outcome, r.DoNotRetry = "not_sent", false
	default:
		r.Outcome = OutcomeUncertain
		r.Actions = map[string]Action{"status": {Tool: toolStatus, Arguments: map[string]any{"turn_id": t.ID}}}
	}
	return r
}

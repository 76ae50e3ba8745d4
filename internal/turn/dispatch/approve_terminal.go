package dispatch

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// approveTerminal answers a prompt of an agent that no Turn of ours keeps: Codex only, and
// only what status of this terminal showed. There is no durable receipt of it, so the offer
// is consumed before the key: what is uncertain afterwards stays so.
func (s *Service) approveTerminal(ctx context.Context, in ApproveInput) (ApproveResult, error) {
	const op = "dispatch.approve"
	if err := s.CheckProfile(); err != nil {
		return ApproveResult{}, err
	}
	term, err := s.Scanner.Find(ctx, in.TerminalID)
	if err != nil {
		return ApproveResult{}, err
	}
	if term.Adapter.Kind() != "codex" {
		return ApproveResult{}, fault.New(turn.CodeNotApprovable, op, "a prompt of %s outside a turn is answered by a person only", term.Adapter.Kind()).
			WithHint("no key was pressed; answer it in the pane")
	}
	held, err := s.blocking(ctx)
	if err != nil {
		return ApproveResult{}, err
	}
	if row, ok := held[term.Key()]; ok {
		return ApproveResult{}, fault.New(turn.CodeBlocked, op, "%s is kept by turn %s", term.ID, row.Turn.ID).WithHint("approve with its turn_id")
	}
	shown, _, ok := s.prompts.Get(terminalOffer(term.ID))
	if !ok || shown.terminal != term.Key() {
		return ApproveResult{}, fault.New(CodeNotReviewed, op, "no prompt of %s was shown to you lately", term.ID).
			WithHint("no key was pressed; read it with agent_knock_knock_status (terminal_id), then decide")
	}
	ctx = context.WithoutCancel(ctx)
	inputCtx, cancel := context.WithTimeout(ctx, answerInput)
	defer cancel()
	hold, err := s.desk().Take(inputCtx, term)
	if err != nil {
		return ApproveResult{}, err
	}
	defer hold.Release()
	shot, err := hold.Look(inputCtx)
	if err == nil {
		err = samePrompt(shot, shown.fingerprint, shown.what)
	}
	if err != nil {
		return ApproveResult{}, err
	}
	prompt := *shot.Screen.Prompt
	option, err := prompt.Choose(in.Decision == ApproveOnce)
	if err != nil {
		return ApproveResult{}, err
	}
	key, ok := keyNamed(option.Key)
	if !ok {
		return ApproveResult{}, fault.New(turn.CodeNotApprovable, op, "the key of the choice %q is not known", option.Label).WithHint("a person must answer it in the terminal")
	}
	if _, ok := s.prompts.Take(terminalOffer(term.ID)); !ok {
		return ApproveResult{}, fault.New(CodeNotReviewed, op, "another call answers this prompt").WithHint("no key was pressed here; look with agent_knock_knock_status")
	}
	r := ApproveResult{TerminalID: term.ID, Agent: term.Adapter.Kind(), Decision: in.Decision, Outcome: OutcomeApproved, Approved: in.Decision == ApproveOnce,
		Label: redact.Line(redact.String(option.Label), summaryLength), Prompt: described(prompt), AnsweredBy: byController, Via: turn.ChannelKeyboard,
		TerminalScoped: true, DoNotRetry: true}
	if in.Decision == Reject {
		r.Outcome = OutcomeRejected
	}
	if err := hold.Press(inputCtx, key); err != nil {
		if notSent(err, hold) {
			return ApproveResult{}, err
		}
		_, r.Reason, _ = fault.Public(err)
		r.Outcome, r.Approved = OutcomeUncertain, false
		return r, nil
	}
	_, err = hold.Await(ctx, takenLimit, func(shot keyboard.Shot) bool { return left(shot, prompt) })
	r.PromptGone = err == nil
	return r, nil
}

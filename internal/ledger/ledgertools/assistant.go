package ledgertools

import (
	"context"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

func proposalLine(r ledger.ProposalRecord) string {
	return fmt.Sprintf("%s %s %d actions %s", r.ID, r.Status, len(r.Proposal.Actions), oneLine(r.Proposal.Title))
}

func addAssistant() {
	tool("assistant.propose", func(ctx context.Context, s *coord.Service, in ledger.Proposal) (Outcome, error) {
		r, err := s.Propose(ctx, in)
		return record(r, err, func(r ledger.ProposalRecord) string { return "Recorded proposal " + proposalLine(r) })
	})
	optional("assistant.proposals.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		span, err := in.span()
		if err != nil {
			return Outcome{}, err
		}
		p, err := s.ListProposals(ctx, in.ProjectID, span)
		return lines(p, err, "No proposals.", proposalLine)
	})
	tool("assistant.proposals.get", func(ctx context.Context, s *coord.Service, in struct{ ID string }) (Outcome, error) {
		r, err := s.GetProposal(ctx, in.ID)
		return record(r, err, proposalLine)
	})
	tool("assistant.apply", func(ctx context.Context, s *coord.Service, in struct {
		ProposalID string           `json:"proposal_id"`
		Proposal   *ledger.Proposal `json:"proposal"`
		Confirm    bool             `json:"confirm"`
	}) (Outcome, error) {
		var r *ledger.ApplyResult
		var err error
		switch {
		case ledger.Trim(in.ProposalID) != "":
			r, err = s.ApplyProposal(ctx, in.ProposalID, in.Confirm)
		case in.Proposal != nil:
			r, err = s.ApplyInline(ctx, *in.Proposal, in.Confirm)
		default:
			err = fault.New(fault.Invalid, "ledger", "proposal_id or proposal is required")
		}
		if r == nil {
			return Outcome{}, err
		}
		return Outcome{Text: fmt.Sprintf("Applied proposal %s: %d of %d actions", r.ProposalID, r.AppliedActionCount, r.TotalActionCount), Value: r}, err
	})
}

package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Propose records a proposal. It changes nothing else.
func (s *Service) Propose(ctx context.Context, p ledger.Proposal) (ledger.ProposalRecord, error) {
	return s.recordProposal(ctx, ledger.ProposalRecord{Proposal: p}, true)
}

// ImportProposal records a historical proposal. An update_handoff action without a
// revision is accepted and can never be applied.
func (s *Service) ImportProposal(ctx context.Context, r ledger.ProposalRecord) (ledger.ProposalRecord, error) {
	return s.recordProposal(ctx, r, false)
}

func (s *Service) recordProposal(ctx context.Context, r ledger.ProposalRecord, live bool) (ledger.ProposalRecord, error) {
	p, err := ledger.CleanProposal(r.Proposal, live)
	if err != nil {
		return r, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		if err := free(ledger.KindProposal, "proposal", &p.ID, found(func(id string) (ledger.ProposalRecord, bool, error) { return ledgersql.Proposal(tx, id) })); err != nil {
			return err
		}
		if live || p.CreatedAt.IsZero() {
			p.CreatedAt = now
		}
		r.Proposal, r.ID, r.ProjectID, r.Source = p, p.ID, p.ProjectID, p.Source
		if live || r.Status == "" {
			r.Status = ledger.Proposed
		}
		if live || r.CreatedAt.IsZero() {
			r.CreatedAt, r.UpdatedAt = now, now
		}
		return ledgersql.PutProposal(tx, r)
	})
	return r, err
}

// ListProposals lists proposals, of one project or of all.
func (s *Service) ListProposals(ctx context.Context, projectID string, span Span) (out Page[ledger.ProposalRecord], err error) {
	err = s.view(ctx, func(tx *store.Tx) error {
		out, err = page(span, func(p ledgersql.Page) ([]ledger.ProposalRecord, error) {
			return ledgersql.Proposals(tx, ledger.Trim(projectID), p)
		})
		return err
	})
	return out, err
}

// GetProposal reads a proposal.
func (s *Service) GetProposal(ctx context.Context, id string) (r ledger.ProposalRecord, err error) {
	if err := requireIDs("id", &id); err != nil {
		return r, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { r, err = proposal(tx, id); return err })
	return r, err
}

func proposal(tx *store.Tx, id string) (ledger.ProposalRecord, error) {
	r, ok, err := ledgersql.Proposal(tx, id)
	return must[ledger.ProposalRecord]("proposal", id)(r, ok, err)
}

// ApplyProposal applies a recorded proposal, once ever and in one transaction: all its
// actions happen or none. The result is also returned with an error, where there is one.
func (s *Service) ApplyProposal(ctx context.Context, id string, confirm bool) (out *ledger.ApplyResult, err error) {
	if err := requireIDs("proposal_id", &id); err != nil {
		return nil, err
	}
	var failed *failedAction
	repeated := false
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		r, err := proposal(tx, id)
		if err != nil {
			return err
		}
		if r.Status == ledger.Applied {
			out, repeated = r.LatestResult, true
			return ledger.AlreadyApplied(r.AppliedAt)
		}
		if !confirm {
			result := ledger.Unconfirmed(r.Proposal)
			out = &result
			return note(tx, now, r, result, ledger.NotConfirmed())
		}
		done, at, err := runActions(tx, now, r.Proposal)
		if err != nil {
			failed = &failedAction{r.Proposal, at, err}
			return err // the transaction takes back what the earlier actions did
		}
		result := ledger.Succeeded(r.Proposal, done)
		out = &result
		return note(tx, now, r, result, nil)
	})
	switch {
	case failed != nil:
		if out, err = failed.explain(); out == nil {
			return nil, err
		}
		return out, s.noteFailure(ctx, id, *out, err)
	case err != nil && !repeated: // what was told did not happen: it was not committed
		return nil, err
	case err == nil && !confirm:
		return out, ledger.NotConfirmed()
	}
	return out, err
}

type failedAction struct {
	proposal ledger.Proposal
	at       int
	err      error
}

// explain returns the result of an attempt that was refused, or none when the Store or the
// caller's time failed and not the action.
func (f failedAction) explain() (*ledger.ApplyResult, error) {
	switch fault.CodeOf(f.err) {
	case fault.NotFound, fault.Invalid, fault.AlreadyExists, fault.Conflict:
	default:
		return nil, f.err
	}
	_, msg, _ := fault.Public(f.err)
	r := ledger.RolledBack(f.proposal, f.at, msg)
	return &r, ledger.ActionFailed(f.at, f.proposal.Actions[f.at].Kind, f.err)
}

// noteFailure records an attempt whose transaction was rolled back and returns its cause.
func (s *Service) noteFailure(ctx context.Context, id string, result ledger.ApplyResult, cause error) error {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) error {
		r, err := proposal(tx, id)
		if err != nil || r.Status == ledger.Applied { // deleted, or applied by somebody else since
			return err
		}
		return note(tx, now, r, result, cause)
	})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return cause
}

func note(tx *store.Tx, now time.Time, r ledger.ProposalRecord, result ledger.ApplyResult, cause error) error {
	a := ledger.Attempt{ID: ledger.NewID(ledger.KindAttempt), ProposalID: r.ID, Status: result.Status, Confirmed: result.Confirmed, Result: &result, CreatedAt: now}
	if cause != nil {
		_, a.ErrorMessage, _ = fault.Public(cause)
	}
	r.Status, r.LatestResult, r.UpdatedAt = result.Status, &result, ledger.Next(r.UpdatedAt, now)
	if result.Applied {
		r.AppliedAt = r.UpdatedAt
	}
	r.ApplyAttempts = append(r.ApplyAttempts, a)
	return ledgersql.PutProposal(tx, r)
}

// ApplyInline applies a proposal that is not recorded, in one transaction.
func (s *Service) ApplyInline(ctx context.Context, p ledger.Proposal, confirm bool) (*ledger.ApplyResult, error) {
	p, err := ledger.CleanProposal(p, true)
	if err != nil {
		return nil, err
	}
	if p.ID == "" {
		p.ID = ledger.NewID(ledger.KindProposal)
	}
	if !confirm {
		r := ledger.Unconfirmed(p)
		return &r, ledger.NotConfirmed()
	}
	var done []ledger.ActionResult
	var failed *failedAction
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error {
		var at int
		var err error
		if done, at, err = runActions(tx, now, p); err != nil {
			failed = &failedAction{p, at, err}
		}
		return err
	})
	if failed != nil {
		return failed.explain()
	}
	if err != nil {
		return nil, err
	}
	r := ledger.Succeeded(p, done)
	return &r, nil
}

// runActions applies the actions in order. It returns the index of the one that failed.
func runActions(tx *store.Tx, now time.Time, p ledger.Proposal) ([]ledger.ActionResult, int, error) {
	var out []ledger.ActionResult
	for i, a := range p.Actions {
		r, err := runAction(tx, now, a)
		if err != nil {
			return nil, i, err
		}
		r.Kind = a.Kind
		out = append(out, r)
	}
	return out, 0, nil
}

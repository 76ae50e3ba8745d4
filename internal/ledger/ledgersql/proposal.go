package ledgersql

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var proposals = table.New("ledger_proposal", []string{"id"},
	[]string{"id", "project_id", "source", "source_id", "status", "proposal", "result", "created_at", "updated_at", "applied_at"},
	func(p *ledger.ProposalRecord) []any {
		return []any{&p.ID, &p.ProjectID, &p.Source, &p.SourceID, &p.Status, table.Pack(&p.Proposal), table.Pack(&p.LatestResult), table.Nanos(&p.CreatedAt), table.Nanos(&p.UpdatedAt), table.Nanos(&p.AppliedAt)}
	})

type attemptRow struct {
	place int
	ledger.Attempt
}

var attempts = table.New("ledger_attempt", []string{"proposal_id", "place"},
	[]string{"proposal_id", "place", "id", "status", "confirmed", "result", "error_message", "created_at"},
	func(a *attemptRow) []any {
		return []any{&a.ProposalID, &a.place, &a.ID, &a.Status, &a.Confirmed, table.Pack(&a.Result), &a.ErrorMessage, table.Nanos(&a.CreatedAt)}
	})

// Proposal reads a recorded proposal with its attempts.
func Proposal(tx *store.Tx, id string) (ledger.ProposalRecord, bool, error) {
	p, ok, err := proposals.Get(tx, id)
	if err != nil || !ok {
		return p, ok, err
	}
	return p, true, withAttempts(tx, &p)
}

func withAttempts(tx *store.Tx, p *ledger.ProposalRecord) error {
	rows, err := attempts.List(tx, "WHERE proposal_id = ? ORDER BY place", p.ID)
	for _, r := range rows {
		p.ApplyAttempts = append(p.ApplyAttempts, r.Attempt)
	}
	return err
}

// Proposals lists proposals, of one project or of all, the most recently changed first.
func Proposals(tx *store.Tx, project string, page Page) ([]ledger.ProposalRecord, error) {
	tail, args := "", []any{}
	if project != "" {
		tail, args = "WHERE project_id = ? ", []any{project}
	}
	out, err := proposals.List(tx, tail+"ORDER BY updated_at DESC, id"+page.sql(), args...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if err := withAttempts(tx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PutProposal inserts or replaces a record; attempts are only ever added.
func PutProposal(tx *store.Tx, p ledger.ProposalRecord) error {
	if err := proposals.Put(tx, p); err != nil {
		return err
	}
	for i, a := range p.ApplyAttempts {
		a.ProposalID = p.ID
		if err := attempts.Put(tx, attemptRow{i, a}); err != nil {
			return err
		}
	}
	return nil
}

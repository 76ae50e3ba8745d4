package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ExportSnapshot reads the whole ledger at one moment.
func (s *Service) ExportSnapshot(ctx context.Context) (out ledger.Snapshot, err error) {
	err = s.view(ctx, func(tx *store.Tx) error { out, err = s.dump(tx); return err })
	return out, err
}

func (s *Service) dump(tx *store.Tx) (ledger.Snapshot, error) {
	out, err := ledgersql.Dump(tx)
	out.Version, out.ExportedAt = ledger.SnapshotVersion, s.now()
	return out, err
}

// ImportSnapshot puts the records of a snapshot into the ledger, all or none, and returns
// a fresh export. Records that exist are replaced, but artifacts, evidence and reviews are
// only added; nothing is deleted. Proposals are recorded, never applied. Claimed work of a
// version 1 snapshot stays its host's, without a lease.
func (s *Service) ImportSnapshot(ctx context.Context, in ledger.Snapshot) (out ledger.Snapshot, err error) {
	in = in.Clean()
	err = s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		var failed error
		known := func(ok bool, err error) bool {
			if err != nil {
				failed = err
			}
			return ok
		}
		err := in.Check(func(_, id string) bool { return known(ledgersql.ProjectExists(tx, id)) },
			func(projectID, id string) bool {
				_, ok, err := ledgersql.WorkItem(tx, projectID, id)
				return known(ok, err)
			})
		if failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		if err := ledgersql.Restore(tx, in); err != nil {
			return err
		}
		out, err = s.dump(tx)
		return err
	})
	return out, err
}

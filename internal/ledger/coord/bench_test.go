package coord_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// filled is a durable ledger with a project of n queued assignments, ten an item.
func filled(b *testing.B, n int) (s *coord.Service, project string) {
	b.Helper()
	db, err := store.OpenFile(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	s = coord.New(db)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	snap := ledger.Snapshot{Version: 2, Projects: []ledger.Project{{ID: "p", Name: "P", CreatedAt: now, UpdatedAt: now}}, Roles: []ledger.Role{{ID: "r", ProjectID: "p", Name: "R"}}}
	for i := range n {
		item := fmt.Sprint("w", i/10)
		now = now.Add(time.Millisecond)
		if i%10 == 0 {
			snap.WorkItems = append(snap.WorkItems, ledger.WorkItem{ID: item, ProjectID: "p", Title: item, Status: "ready", Priority: "normal", CreatedAt: now, UpdatedAt: now})
		}
		snap.Assignments = append(snap.Assignments, ledger.Assignment{ID: fmt.Sprint("a", i), ProjectID: "p", WorkItemID: item, RoleID: "r", ExecutionMode: "mcp_pull", Status: ledger.Queued,
			DesiredAgent: ledger.DesiredAgent{Kind: "any"}, CreatedAt: now, UpdatedAt: now})
	}
	if _, err := s.ImportSnapshot(b.Context(), snap); err != nil {
		b.Fatal(err)
	}
	return s, "p"
}

// Each operation is one claim and one completion, both durable.
func BenchmarkClaimAndComplete(b *testing.B) {
	s, project := filled(b, 20000)
	for b.Loop() {
		next, err := s.NextAssignments(b.Context(), project, coord.NextFilter{Limit: 1})
		if err != nil || len(next) == 0 {
			b.Fatal(next, err)
		}
		a, err := s.ClaimAssignmentWithLease(b.Context(), project, next[0].ID, "w")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.CompleteAssignmentWithClaim(b.Context(), project, a.ID, a.Claim.ID, "", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The same disk's own pace: one write and one fsync, twice an operation.
func BenchmarkTwoWritesAndSyncs(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		for range 2 {
			if _, err := f.Write(page); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// What is read must not grow with the ledger.
func BenchmarkReads(b *testing.B) {
	for _, n := range []int{100, 10000, 50000} {
		s, project := filled(b, n)
		ctx := b.Context()
		for _, c := range []struct {
			name string
			read func() error
		}{
			{"next", func() error { _, err := s.NextAssignments(ctx, project, coord.NextFilter{Limit: 1}); return err }},
			{"health", func() error { _, err := s.Health(ctx, project); return err }},
			{"brief", func() error { _, err := s.OperationsBrief(ctx, project); return err }},
			{"activity", func() error { _, err := s.Activity(ctx, project); return err }},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				for b.Loop() {
					if err := c.read(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package coord_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	workerEnv = "AKK_LEDGER_TEST_WORKER" // file of a ledger: drain its queue
	writerEnv = "AKK_LEDGER_TEST_WRITER" // file of a ledger: write until killed
)

// TestMain lets the test binary be the other processes on a ledger.
func TestMain(m *testing.M) {
	ctx := context.Background()
	for env, run := range map[string]func(context.Context, string) error{workerEnv: drainAsProcess, writerEnv: writeUntilKilled, claimerEnv: claimAsProcess} {
		if file := os.Getenv(env); file != "" {
			if err := run(ctx, file); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func openFile(ctx context.Context, file string) (*coord.Service, error) {
	db, err := store.OpenFile(ctx, file, store.Options{Relaxed: true, Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		return nil, err
	}
	return coord.New(db), nil
}

func open(t testing.TB, file string) *coord.Service {
	t.Helper()
	s, err := openFile(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// queue makes a project with n queued assignments, ten an item.
func queue(t testing.TB, s *coord.Service, n int) (project string) {
	t.Helper()
	ctx := t.Context()
	p, err := s.CreateProject(ctx, ledger.Project{Name: "P"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.CreateRole(ctx, ledger.Role{ProjectID: p.ID, Name: "R"})
	if err != nil {
		t.Fatal(err)
	}
	var item string
	for i := range n {
		if i%10 == 0 {
			w, err := s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: p.ID, Title: fmt.Sprint("W", i)})
			if err != nil {
				t.Fatal(err)
			}
			item = w.ID
		}
		if _, err := s.CreateAssignment(ctx, ledger.Assignment{ProjectID: p.ID, WorkItemID: item, RoleID: r.ID}); err != nil {
			t.Fatal(err)
		}
	}
	return p.ID
}

// drain claims and completes until nothing is offered. It returns what it claimed; every
// failure but a lost race is an error.
func drain(ctx context.Context, s *coord.Service, project, worker string) (claimed []string, err error) {
	for {
		next, err := s.NextAssignments(ctx, project, coord.NextFilter{Limit: 3})
		if err != nil || len(next) == 0 {
			return claimed, err
		}
		for _, a := range next {
			got, err := s.ClaimAssignmentWithLease(ctx, project, a.ID, worker)
			if fault.Is(err, fault.Conflict) {
				continue
			}
			if err != nil {
				return claimed, err
			}
			claimed = append(claimed, a.ID)
			if _, err := s.CompleteAssignmentWithClaim(ctx, project, a.ID, got.Claim.ID, "", nil); err != nil {
				return claimed, err
			}
		}
	}
}

func drainAsProcess(ctx context.Context, file string) error {
	s, err := openFile(ctx, file)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := s.ListProjects(ctx, coord.Span{})
	if err != nil {
		return err
	}
	claimed, err := drain(ctx, s, p.Items[0].ID, fmt.Sprint("process ", os.Getpid()))
	fmt.Fprintln(os.Stdout, strings.Join(claimed, "\n"))
	return err
}

// Cases 10 and 60, H6 1: eight goroutines here and one in each of two more processes: each
// assignment is claimed exactly once, none is lost, and no failure is anything but a lost
// race.
func TestNothingIsClaimedTwiceByGoroutinesAndProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, file)
	const n = 150
	project := queue(t, s, n)
	var mu sync.Mutex
	owners := map[string][]string{}
	note := func(who string, ids []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			owners[id] = append(owners[id], who)
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), workerEnv+"="+file)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			note(fmt.Sprint("process ", i), strings.Fields(string(out)))
		})
	}
	for i := range 8 {
		wg.Go(func() {
			ids, err := drain(t.Context(), s, project, fmt.Sprint("goroutine ", i))
			if err != nil {
				t.Errorf("goroutine %d: %v", i, err)
			}
			note(fmt.Sprint("goroutine ", i), ids)
		})
	}
	wg.Wait()
	for id, who := range owners {
		if len(who) != 1 {
			t.Errorf("%s was claimed by %v", id, who)
		}
	}
	a, err := s.Activity(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	if len(owners) != n || a.Counts.Completed != n || a.Counts.Assignments != n {
		t.Errorf("%d owners, counts %+v; want %d", len(owners), a.Counts, n)
	}
}

// Case 59, D8 and H7 2: edits of different fields and additions at once all survive.
func TestParallelPatchesAllSurvive(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	project := queue(t, s, 1)
	items, err := s.ListWorkItems(t.Context(), project, coord.Span{})
	if err != nil {
		t.Fatal(err)
	}
	item := items.Items[0].ID
	text := func(s string) *string { return &s }
	patches := []coord.WorkItemPatch{{Title: text("t")}, {Brief: text("b")}, {Status: text("s")}, {Priority: text("p")}}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := s.CreateRoot(t.Context(), project, ledger.RootInput{Path: text(fmt.Sprint("/r", i))}); err != nil {
				t.Error(err)
			}
			if _, err := s.UpdateWorkItem(t.Context(), project, item, patches[i%4]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	roots, err := s.ListRoots(t.Context(), project)
	if err != nil || len(roots) != 20 {
		t.Errorf("%d roots, %v", len(roots), err)
	}
	w, err := s.GetWorkItem(t.Context(), project, item)
	if err != nil || w.Title != "t" || w.Brief != "b" || w.Status != "s" || w.Priority != "p" {
		t.Errorf("%+v, %v", w, err)
	}
}

// D8: of a promotion and a rejection at once one wins, and memory says the same.
func TestACandidateIsDecidedOnce(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	project := queue(t, s, 1)
	for range 20 {
		c, err := s.CreateMemoryCandidate(t.Context(), ledger.MemoryCandidate{ProjectID: project, Title: "C", Body: "b"})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var promoted, rejected error
		wg.Go(func() { _, promoted = s.PromoteMemoryCandidate(t.Context(), project, c.ID, ledger.Promotion{}) })
		wg.Go(func() { _, rejected = s.RejectMemoryCandidate(t.Context(), project, c.ID, "no") })
		wg.Wait()
		if (promoted == nil) == (rejected == nil) {
			t.Fatalf("promoted: %v, rejected: %v", promoted, rejected)
		}
		m, err := s.ListMemoryEntries(t.Context(), project, true, coord.Span{})
		if err != nil || (len(m.Items) == 1) != (promoted == nil) {
			t.Fatalf("%d entries, promoted: %v", len(m.Items), promoted)
		}
		for _, e := range m.Items {
			if err := s.DeleteMemoryEntry(t.Context(), project, e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func writeUntilKilled(ctx context.Context, file string) error {
	db, err := store.OpenFile(ctx, file, store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		return err
	}
	s := coord.New(db)
	p, err := s.ListProjects(ctx, coord.Span{})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		w, err := s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: p.Items[0].ID, Title: fmt.Sprint("W", i)})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, w.ID); err != nil {
			return err
		}
	}
}

// What was acknowledged to a process that is killed at any moment is stored, and the
// counters agree with the records. (H7 5.)
func TestWhatAKilledProcessAcknowledgedIsStored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, file)
	project := queue(t, s, 1)
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	acknowledged := map[string]bool{}
	for round := range rounds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+file)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged[lines.Text()] = true
			if n == 3+round*5 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
	}
	stored, err := s.ListWorkItems(t.Context(), project, coord.Span{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, w := range stored.Items {
		have[w.ID] = true
	}
	for id := range acknowledged {
		if len(id) == len("work_")+16 && !have[id] {
			t.Errorf("%s was acknowledged and is gone", id)
		}
	}
	b, err := s.OperationsBrief(t.Context(), project)
	if err != nil || b.Counts.WorkItems != len(stored.Items) || len(acknowledged) < rounds {
		t.Errorf("%d acknowledged, %d stored, the counter says %d, %v", len(acknowledged), len(stored.Items), b.Counts.WorkItems, err)
	}
}

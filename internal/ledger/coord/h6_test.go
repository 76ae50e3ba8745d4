package coord_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

// claimerEnv is the file of a ledger: claim each assignment whose id comes on stdin.
const claimerEnv = "AKK_LEDGER_TEST_CLAIMER"

// claimAsProcess answers each line "<project> <assignment>" with what came of the claim.
func claimAsProcess(ctx context.Context, file string) error {
	s, err := openFile(ctx, file)
	if err != nil {
		return err
	}
	defer s.Close()
	who := fmt.Sprint("process-", os.Getpid())
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		project, id, _ := strings.Cut(lines.Text(), " ")
		got, err := s.ClaimAssignmentWithLease(ctx, project, id, who)
		switch {
		case err == nil:
			fmt.Println("won", who, got.Claim.ID)
		case fault.Is(err, fault.Conflict):
			fmt.Println("conflict", err)
		default:
			fmt.Println("failed", err)
		}
	}
	return nil
}

// claimer is another process on the ledger.
type claimer struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startClaimer(t *testing.T, file string) claimer {
	t.Helper()
	cmd := exec.Command(os.Args[0]) // it ends with its stdin
	cmd.Env = append(os.Environ(), claimerEnv+"="+file)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := claimer{in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("a claimer: %v", err)
		}
	})
	if !c.out.Scan() || c.out.Text() != "ready" {
		t.Fatalf("a claimer said %q", c.out.Text())
	}
	return c
}

// H6 1, 2: eight processes claim the same assignment at once, in fifty rounds: one holds it, seven
// hear who does, no claim id comes twice, and a claim that is asked for once more, as after a
// reply that was lost, makes no second one.
func TestH6OfEightProcessesOneClaimsInFiftyRounds(t *testing.T) {
	const rounds = 50
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, file)
	project := queue(t, s, rounds)
	claimers := make([]claimer, 8)
	for i := range claimers {
		claimers[i] = startClaimer(t, file)
	}
	next, err := s.NextAssignments(t.Context(), project, coord.NextFilter{Limit: rounds})
	if err != nil || len(next) != rounds {
		t.Fatalf("%d assignments, %v", len(next), err)
	}
	seen := map[string]bool{}
	for _, a := range next {
		for _, c := range claimers {
			if _, err := fmt.Fprintln(c.in, project, a.ID); err != nil {
				t.Fatal(err)
			}
		}
		winner, claim := "", ""
		var lost []string
		for _, c := range claimers {
			if !c.out.Scan() {
				t.Fatalf("a claimer ended: %v", c.out.Err())
			}
			words := strings.Fields(c.out.Text())
			switch {
			case words[0] == "won" && winner == "":
				winner, claim = words[1], words[2]
			case words[0] == "conflict":
				lost = append(lost, c.out.Text())
			default:
				t.Errorf("%s: %q beside the winner %s", a.ID, c.out.Text(), winner)
			}
		}
		held, err := s.GetAssignment(t.Context(), project, a.ID)
		if err != nil || winner == "" || len(lost) != 7 || held.Claim == nil || held.Claim.ID != claim || seen[claim] {
			t.Fatalf("%s: won by %q with %q (seen before: %v), %d conflicts, stored %+v, %v", a.ID, winner, claim, seen[claim], len(lost), held.Claim, err)
		}
		seen[claim] = true
		for _, line := range lost {
			if !strings.Contains(line, winner) || !strings.Contains(line, claim) { // so that a lost reply is no lost lease
				t.Errorf("%q does not name the holder %s and its claim", line, winner)
			}
		}
		if _, err := s.ClaimAssignmentWithLease(t.Context(), project, a.ID, winner); !fault.Is(err, fault.Conflict) {
			t.Errorf("a repeated claim: %v", err)
		}
		if again, err := s.GetAssignment(t.Context(), project, a.ID); err != nil || again.Claim == nil || again.Claim.ID != claim || !again.Claim.ExpiresAt.Equal(held.Claim.ExpiresAt) {
			t.Errorf("a repeated claim changed %+v to %+v, %v", held.Claim, again.Claim, err)
		}
	}
}

// H6 3, 4: claimed, given back and claimed by another within the same second: the first
// fence writes nothing any more, and the record stays as it was to the byte.
func TestH6AnOldFenceOfTheSameSecondWritesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	project := queue(t, s, 1)
	next, err := s.NextAssignments(t.Context(), project, coord.NextFilter{Limit: 1})
	if err != nil || len(next) != 1 {
		t.Fatal(next, err)
	}
	id, ctx := next[0].ID, t.Context()
	first, err := s.ClaimAssignmentWithLease(ctx, project, id, "a")
	if err != nil {
		t.Fatal(err)
	}
	old := first.Claim.ID
	if _, err := s.ReleaseAssignmentWithClaim(ctx, project, id, old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ClaimAssignmentWithLease(ctx, project, id, "b"); err != nil {
		t.Fatal(err)
	}
	get := func() string {
		a, err := s.GetAssignment(ctx, project, id)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := get()
	for name, write := range map[string]func() (ledger.Assignment, error){
		"renew": func() (ledger.Assignment, error) { return s.RenewAssignmentClaim(ctx, project, id, old) },
		"prepare": func() (ledger.Assignment, error) {
			return s.PrepareAssignmentWithClaim(ctx, project, id, old, nil, "c")
		},
		"progress": func() (ledger.Assignment, error) {
			return s.UpdateAssignmentStatusWithClaim(ctx, project, id, old, "running", nil)
		},
		"complete": func() (ledger.Assignment, error) {
			return s.CompleteAssignmentWithClaim(ctx, project, id, old, "completed", nil)
		},
		"release": func() (ledger.Assignment, error) { return s.ReleaseAssignmentWithClaim(ctx, project, id, old) },
		"recover": func() (ledger.Assignment, error) { return s.RecoverAssignmentClaim(ctx, project, id, old) },
	} {
		if _, err := write(); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s with an old fence: %v", name, err)
		}
		if after := get(); after != before {
			t.Errorf("%s with an old fence changed\n%s\nto\n%s", name, before, after)
		}
	}
}

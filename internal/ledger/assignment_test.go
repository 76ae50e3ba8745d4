package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// step is a rule with everything but the assignment and the time.
type step struct {
	name   string
	fenced bool // it takes a claim id
	host   bool
	do     func(a ledger.Assignment, claim string, now time.Time) (ledger.Assignment, error)
}

var steps = []step{
	{"claim", false, false, func(a ledger.Assignment, _ string, now time.Time) (ledger.Assignment, error) {
		return a.Acquire("w", ledger.NewClaimID(), now, 5*time.Minute)
	}},
	{"renew", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Renew(c, now, 5*time.Minute)
	}},
	{"prepare", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Prepare(c, nil, "ctx", now)
	}},
	{"release", true, false, ledger.Assignment.Release},
	{"recover", true, false, ledger.Assignment.Recover},
	{"run", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Progress(c, ledger.Running, &ledger.ExecutionRef{RunID: "r"}, now)
	}},
	{"pause", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Progress(c, ledger.AwaitingApproval, nil, now)
	}},
	{"complete", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Finish(c, "", nil, now)
	}},
	{"fail", true, false, func(a ledger.Assignment, c string, now time.Time) (ledger.Assignment, error) {
		return a.Finish(c, ledger.Failed, nil, now)
	}},
	{"host claim", false, true, func(a ledger.Assignment, _ string, now time.Time) (ledger.Assignment, error) {
		return a.AcquireByHost("w", now)
	}},
	{"host release", false, true, func(a ledger.Assignment, _ string, now time.Time) (ledger.Assignment, error) {
		return a.ReleaseByHost("w", now)
	}},
	{"host run", false, true, func(a ledger.Assignment, _ string, now time.Time) (ledger.Assignment, error) {
		return a.ProgressByHost(ledger.Running, nil, now)
	}},
	{"host cancel", false, true, func(a ledger.Assignment, _ string, now time.Time) (ledger.Assignment, error) {
		return a.FinishByHost(ledger.Cancelled, nil, now)
	}},
}

// The invariants of a life, whatever is tried in whatever order and however the clock
// moves: a claim always fits its status, an end is final, a start is kept, a revision only
// grows, a refusal changes nothing, and only the holder of the current fence writes.
func TestTheLifeOfAnAssignmentKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := ledger.CleanAssignment(ledger.Assignment{ID: "a", ProjectID: "p", WorkItemID: "w", RoleID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		a.CreatedAt, a.UpdatedAt = noon, noon
		now, hosted, past := noon, false, []string{"claim_none"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-60, 400).Draw(t, "seconds")) * time.Second)
			s := rapid.SampledFrom(steps).Draw(t, "step")
			claim := rapid.SampledFrom(past).Draw(t, "claim")
			if a.Claim != nil && rapid.Bool().Draw(t, "mine") {
				claim = a.Claim.ID
			}
			before := a
			got, err := s.do(a, claim, now)
			if diff := cmp.Diff(before, a); diff != "" {
				t.Fatalf("%s changed what it was given: %s", s.name, diff)
			}
			if err != nil {
				if !fault.Is(err, fault.Conflict) {
					t.Fatalf("%s: %v", s.name, err)
				}
				continue
			}
			a = got
			hosted = hosted || s.host
			if a.Claim != nil {
				past = append(past, a.Claim.ID)
			}
			if before.Terminal() {
				t.Fatalf("%s changed what had ended", s.name)
			}
			if s.fenced && (before.Claim == nil || before.Claim.ID != claim) {
				t.Fatalf("%s was done without the current fence", s.name)
			}
			if s.fenced && s.name != "recover" && before.Expired(now) {
				t.Fatalf("%s was done after the expiry", s.name)
			}
			if err := a.CheckClaim(); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if s.name == "renew" {
				if !a.UpdatedAt.Equal(before.UpdatedAt) || a.Claim.ExpiresAt.Before(before.Claim.ExpiresAt) {
					t.Fatalf("a renewal gave %+v from %+v", a, before)
				}
			} else if !a.UpdatedAt.After(before.UpdatedAt) {
				t.Fatalf("%s did not advance the revision", s.name)
			}
			if !before.StartedAt.IsZero() && a.Status != ledger.Queued && !a.StartedAt.Equal(before.StartedAt) {
				t.Fatalf("%s moved the start", s.name)
			}
			if a.Terminal() == a.CompletedAt.IsZero() || !hosted && a.Terminal() && a.StartedAt.IsZero() {
				t.Fatalf("%s: %+v", s.name, a)
			}
			if a.Status == ledger.Queued && (a.Claim != nil || a.ClaimedBy != "" || a.ExecutionRef != nil || a.ContextSnapshotID != "" || !a.StartedAt.IsZero()) {
				t.Fatalf("%s left something on queued work: %+v", s.name, a)
			}
		}
	})
}

func TestTheTermOfAClaimIsWholeSeconds(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{0: 5 * time.Minute, -1: 5 * time.Minute, 1: time.Second, time.Second: time.Second,
		1500 * time.Millisecond: 2 * time.Second, 1<<63 - 1: (1<<63 - 1) / time.Second * time.Second} {
		if got := ledger.Lease(ttl); got != want {
			t.Errorf("%v gives %v, want %v", ttl, got, want)
		}
	}
	a := ledger.Assignment{Status: ledger.Queued, UpdatedAt: noon}
	a, err := a.Acquire("w", "c", noon, ledger.Lease(1<<63-1)) // a term without end does not overflow
	if err != nil || !a.Claim.ExpiresAt.After(noon.AddDate(50, 0, 0)) {
		t.Errorf("%+v, %v", a.Claim, err)
	}
}

// The host's authority: queued work that it ends was never running, unless it did the work.
func TestWhatAHostEndsFromTheQueue(t *testing.T) {
	queued := ledger.Assignment{Status: ledger.Queued, UpdatedAt: noon}
	for status, started := range map[string]bool{ledger.Completed: true, ledger.Failed: true, ledger.Cancelled: false, ledger.AwaitingReview: true} {
		a, err := queued.FinishByHost(status, nil, noon.Add(time.Hour))
		if err != nil || a.StartedAt.IsZero() == started || a.CompletedAt.IsZero() != (status == ledger.AwaitingReview) {
			t.Errorf("%s: %+v, %v", status, a, err)
		}
	}
	if _, err := queued.ProgressByHost(ledger.Running, nil, noon); !fault.Is(err, fault.Conflict) {
		t.Error("a host started what nobody claimed")
	}
}

func TestSkillIDsHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]string{"Code Review": "code-review", "a..b--c": "a-b-c", " -x_1- ": "x_1", "!!!": "", "é": "", "A": "a"} {
		if got := ledger.NormalSkill(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// FuzzReadSkill: whatever a SKILL.md holds, its metadata is bounded and has an id's form.
func FuzzReadSkill(f *testing.F) {
	f.Add("Code Review", "---\nname: x\ncairnline:\n  suggested_tools: [a, 'b']\n  required_permissions:\n    writes: no\n---\n# T\n")
	f.Add("x", "---\nno end")
	f.Add("", "# only a heading")
	f.Fuzz(func(t *testing.T, folder, text string) {
		s := ledger.ReadSkill(folder, text)
		if ledger.NormalSkill(s.ID) != s.ID || len(s.Title) > ledger.MaxID || len(s.Description) > 16*ledger.MaxID {
			t.Errorf("%+v", s)
		}
	})
}

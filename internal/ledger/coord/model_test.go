package coord_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
)

// world is a ledger that a property test changes at random.
type world struct {
	t       *rapid.T
	s       *coord.Service
	project string
	roles   []string
	items   []string
	asgns   []string
	reviews map[string]string // id to item
	hands   map[string]string
}

func (w *world) pick(name string, from []string) string {
	if len(from) == 0 {
		w.t.Skip("nothing to pick")
	}
	return rapid.SampledFrom(from).Draw(w.t, name)
}

func (w *world) pickKey(name string, from map[string]string) (key, value string) {
	keys := make([]string, 0, len(from))
	for k := range from {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	key = w.pick(name, keys)
	return key, from[key]
}

// expect fails on anything but success and a refusal.
func (w *world) expect(err error) bool {
	switch fault.CodeOf(err) {
	case "":
		return true
	case fault.Conflict, fault.NotFound:
		return false
	}
	w.t.Fatalf("%v", err)
	return false
}

func (w *world) claim() string {
	id := w.pick("assignment", w.asgns)
	a, err := w.s.GetAssignment(w.t.Context(), w.project, id)
	if err != nil || a.Claim == nil {
		return "claim_none"
	}
	return a.Claim.ID
}

// actions are what may happen. Each leaves what is read from the ledger consistent.
func (w *world) actions() map[string]func(*rapid.T) {
	ctx, s, p := w.t.Context(), w.s, w.project
	return map[string]func(*rapid.T){
		"item": func(*rapid.T) {
			v, err := s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: p, Title: "W"})
			w.expect(err)
			w.items = append(w.items, v.ID)
		},
		"queue": func(*rapid.T) {
			v, err := s.CreateAssignment(ctx, ledger.Assignment{ProjectID: p, WorkItemID: w.pick("item", w.items), RoleID: w.pick("role", w.roles)})
			if w.expect(err) {
				w.asgns = append(w.asgns, v.ID)
			}
		},
		"claim": func(*rapid.T) {
			_, err := s.ClaimAssignmentWithLease(ctx, p, w.pick("assignment", w.asgns), "w")
			w.expect(err)
		},
		"finish": func(*rapid.T) {
			id := w.pick("which", w.asgns)
			a, err := s.GetAssignment(ctx, p, id)
			if !w.expect(err) || a.Claim == nil {
				return
			}
			_, err = s.CompleteAssignmentWithClaim(ctx, p, id, a.Claim.ID, rapid.SampledFrom([]string{"completed", "completed", "failed", "cancelled", "awaiting_review"}).Draw(w.t, "end"), nil)
			w.expect(err)
		},
		"release": func(*rapid.T) {
			_, err := s.ReleaseAssignmentWithClaim(ctx, p, w.pick("which", w.asgns), w.claim())
			w.expect(err)
		},
		"move": func(*rapid.T) {
			id := w.pick("which", w.asgns)
			a, err := s.GetAssignment(ctx, p, id)
			if !w.expect(err) {
				return
			}
			to := a.Coordination()
			to.WorkItemID, to.DesiredAgent.Kind = w.pick("to", w.items), rapid.SampledFrom([]string{"any", "human"}).Draw(w.t, "kind")
			_, err = s.UpdateQueuedAssignment(ctx, p, id, ledger.QueuedUpdate{Expected: a.Coordination(), ExpectedUpdatedAt: a.UpdatedAt, Replacement: to})
			w.expect(err)
		},
		"drop": func(*rapid.T) {
			w.expect(s.DeleteAssignment(ctx, p, w.pick("which", w.asgns)))
		},
		"prove": func(*rapid.T) {
			id := w.pick("which", w.asgns)
			a, err := s.GetAssignment(ctx, p, id)
			if !w.expect(err) {
				return
			}
			if rapid.IntRange(0, 3).Draw(w.t, "loose") == 0 {
				id = ""
			}
			_, err = s.RecordEvidence(ctx, ledger.Evidence{ProjectID: p, WorkItemID: a.WorkItemID, AssignmentID: id, Title: "E", Body: "b"})
			w.expect(err)
		},
		"review": func(*rapid.T) {
			item := w.pick("item", w.items)
			v, err := s.RecordReview(ctx, ledger.Review{ProjectID: p, WorkItemID: item, Body: "b", Verdict: rapid.SampledFrom([]string{"approved", "changes_requested", "blocked"}).Draw(w.t, "verdict")})
			if w.expect(err) {
				w.reviews[v.ID] = item
			}
		},
		"hand": func(*rapid.T) {
			review, item := w.pickKey("review", w.reviews)
			to := ledger.Handoff{ProjectID: p, WorkItemID: item, Title: "H", Body: "b", ToRoleID: w.pick("role", w.roles), LinkedArtifactIDs: []string{review}}
			switch rapid.IntRange(0, 5).Draw(w.t, "where") { // the follow-up may be anywhere
			case 0:
				to.WorkItemID = w.pick("on", w.items)
			case 1:
				to.TargetWorkItemID = w.pick("towards", w.items)
			case 2:
				to.TargetAssignmentID = w.pick("for", append([]string{""}, w.asgns...))
			}
			item = to.WorkItemID
			h, err := s.CreateHandoff(ctx, to)
			if w.expect(err) {
				w.hands[h.ID] = item
			}
		},
		"answer": func(*rapid.T) {
			id, item := w.pickKey("handoff", w.hands)
			h, err := s.GetHandoff(ctx, p, item, id)
			if !w.expect(err) {
				return
			}
			switch rapid.IntRange(0, 3).Draw(w.t, "how") {
			case 0:
				w.expect(s.DeleteHandoff(ctx, p, item, id, h.UpdatedAt))
			case 1:
				_, err := s.UpdateHandoffStatus(ctx, p, item, id, h.UpdatedAt, rapid.SampledFrom(ledger.HandoffStatuses).Draw(w.t, "status"))
				w.expect(err)
			default:
				got, err := s.AcceptHandoffWithFollowUp(ctx, ledger.Acceptance{ProjectID: p, WorkItemID: item, HandoffID: id, ExpectedUpdatedAt: h.UpdatedAt, IdempotencyKey: id + fmt.Sprint(h.UpdatedAt), Intent: ledger.AcceptIntent})
				if w.expect(err) {
					w.asgns = append(w.asgns, got.Assignment.ID)
				}
			}
		},
		"close": func(*rapid.T) {
			status := rapid.SampledFrom([]string{"done", "ready", "cancelled", "odd"}).Draw(w.t, "status")
			_, err := s.UpdateWorkItem(ctx, p, w.pick("item", w.items), coord.WorkItemPatch{Status: &status})
			w.expect(err)
		},
		"forget": func(*rapid.T) {
			if rapid.IntRange(0, 4).Draw(w.t, "rarely") == 0 {
				w.expect(s.DeleteWorkItem(ctx, p, w.pick("item", w.items)))
			}
		},
		"": w.check,
	}
}

// check counts everything anew from an export and compares the counters.
func (w *world) check(t *rapid.T) {
	snap, err := w.s.ExportSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want overview.BriefCounts
	want.WorkItems, want.Assignments = len(snap.WorkItems), len(snap.Assignments)
	done := map[string]bool{}
	for _, a := range snap.Assignments {
		done[a.ID] = a.Status == ledger.Completed
	}
	for _, item := range snap.WorkItems {
		c := recount(snap, item, done)
		r, err := w.s.CloseoutReadiness(t.Context(), w.project, item.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.AssignmentCount != c.all || r.CompletedAssignments != c.completed || r.ReviewFollowUpCount != c.followUps || item.Open() && (len(r.Blockers) == 0) != c.ready() {
			t.Fatalf("readiness %+v, counted %+v", r, c)
		}
		want.ActiveAssignments += c.active
		want.BlockedAssignments += c.blocked
		if !item.Open() {
			want.BlockedAssignments -= c.settled
			continue
		}
		want.OpenWorkItems++
		want.MissingEvidence += c.missing
		want.ReviewFollowUps += c.followUps
		want.OpenHandoffs += c.handoffs
		if c.ready() && c.all > 0 {
			want.CloseoutReady++
		}
	}
	b, err := w.s.OperationsBrief(t.Context(), w.project)
	if err != nil {
		t.Fatal(err)
	}
	if b.Counts != want {
		t.Fatalf("the brief counts %+v, there are %+v", b.Counts, want)
	}
	if b.Omitted != 0 && len(b.Items) < 100 {
		t.Fatalf("%d items shown, %d said to be left out", len(b.Items), b.Omitted)
	}
}

type count struct{ all, completed, active, blocked, settled, missing, followUps, handoffs int }

func (c count) ready() bool {
	return c.active+c.blocked+c.missing+c.followUps+c.handoffs == 0
}

// recount judges one item the slow way.
func recount(s ledger.Snapshot, item ledger.WorkItem, done map[string]bool) (c count) {
	proved, loose := map[string]bool{}, false
	for _, e := range s.Evidence {
		if e.WorkItemID == item.ID {
			proved[e.AssignmentID], loose = true, loose || e.AssignmentID == ""
		}
	}
	for _, a := range s.Assignments {
		if a.WorkItemID != item.ID {
			continue
		}
		c.all++
		switch a.Status {
		case ledger.Completed:
			c.completed++
			if !loose && !proved[a.ID] {
				c.missing++
			}
		case ledger.Claimed, ledger.Running, ledger.AwaitingReview:
			c.active++
		case ledger.Queued, ledger.Failed:
			c.blocked++
			c.settled++ // by the end of the item
		default:
			c.blocked++
		}
	}
	for _, h := range s.Handoffs {
		if h.WorkItemID == item.ID && h.Status == ledger.HandoffOpen {
			c.handoffs++
		}
	}
	for _, r := range s.Reviews {
		if r.WorkItemID != item.ID || !r.AsksFollowUp() {
			continue
		}
		finished, targeted, waved := false, false, false
		for _, h := range s.Handoffs {
			if !slices.Contains(h.LinkedArtifactIDs, r.ID) {
				continue
			}
			finished = finished || done[h.TargetAssignmentID]
			targeted = targeted || h.TargetAssignmentID != ""
			waved = waved || h.Status == ledger.HandoffDismissed || h.Status == ledger.HandoffSuperseded
		}
		if !finished && (targeted || !waved) {
			c.followUps++
		}
	}
	return c
}

// Case 51: whatever happens in whatever order, the counters that triggers keep are what a
// count of the records gives.
func TestTheCountersAlwaysAgreeWithTheRecords(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		db, err := store.OpenMemory(rt.Context(), store.Options{Sets: []store.Set{ledgersql.Tables()}})
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		w := &world{t: rt, s: coord.New(db), reviews: map[string]string{}, hands: map[string]string{}}
		p, err := w.s.CreateProject(rt.Context(), ledger.Project{Name: "P"})
		if err != nil {
			rt.Fatal(err)
		}
		w.project = p.ID
		for range 2 {
			r, err := w.s.CreateRole(rt.Context(), ledger.Role{ProjectID: p.ID, Name: "R"})
			if err != nil {
				rt.Fatal(err)
			}
			w.roles = append(w.roles, r.ID)
		}
		rt.Repeat(w.actions())
	})
}

// Evidence proves an assignment in the work item it was recorded for. Work that is queued
// again and moved leaves it behind, and finds it again when it comes back.
func TestWorkThatMovesLeavesItsEvidenceBehind(t *testing.T) {
	ctx, s := t.Context(), open(t, filepath.Join(t.TempDir(), "ledger.db"))
	project := queue(t, s, 1)
	next, err := s.NextAssignments(ctx, project, coord.NextFilter{})
	if err != nil || len(next) != 1 {
		t.Fatal(next, err)
	}
	id, home := next[0].ID, next[0].WorkItemID
	if _, err := s.RecordEvidence(ctx, ledger.Evidence{ProjectID: project, WorkItemID: home, AssignmentID: id, Title: "E", Body: "b"}); err != nil {
		t.Fatal(err)
	}
	other, err := s.CreateWorkItem(ctx, ledger.WorkItem{ProjectID: project, Title: "other"})
	if err != nil {
		t.Fatal(err)
	}
	// ends moves the work to an item, ends it there, tells what is missing and queues it again.
	ends := func(item string) []string {
		t.Helper()
		a, err := s.GetAssignment(ctx, project, id)
		if err != nil {
			t.Fatal(err)
		}
		to := a.Coordination()
		to.WorkItemID = item
		if a, err = s.UpdateQueuedAssignment(ctx, project, id, ledger.QueuedUpdate{Expected: a.Coordination(), ExpectedUpdatedAt: a.UpdatedAt, Replacement: to}); err != nil {
			t.Fatal(err)
		}
		snap, err := s.ExportSnapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if a, err = s.ClaimAssignmentWithLease(ctx, project, id, "w"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompleteAssignmentWithClaim(ctx, project, id, a.Claim.ID, ledger.Completed, nil); err != nil {
			t.Fatal(err)
		}
		r, err := s.CloseoutReadiness(ctx, project, item)
		if err != nil {
			t.Fatal(err)
		}
		missing := r.MissingEvidenceAssignmentIDs
		// The same work, imported into a Store of its own, is judged alike.
		s = open(t, filepath.Join(t.TempDir(), "ledger.db"))
		if _, err := s.ImportSnapshot(ctx, snap); err != nil {
			t.Fatal(err)
		}
		return missing
	}
	if got := ends(other.ID); !slices.Equal(got, []string{id}) {
		t.Errorf("in the other item evidence is missing for %v", got)
	}
	if got := ends(home); len(got) != 0 {
		t.Errorf("at home evidence is missing for %v", got)
	}
}

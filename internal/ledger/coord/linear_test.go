package coord_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// An assignment as its contract has it, without a store: what each call may answer.
type model struct {
	status, claim string
	expired       bool
}

// call is one call on an assignment: what was asked, when, and what came back.
type call struct {
	kind, fence, status string // status is that of a progress or an end

	began, ended int64
	ok           bool
	got          model // the record that came back
}

// next is the model after c, and whether c may have answered what it did.
func (m model) next(c call) (model, bool) {
	active := m.status != ledger.Queued && m.status != ledger.Completed && m.status != ledger.Failed && m.status != ledger.Cancelled
	held := active && m.claim == c.fence && !(m.status == ledger.Claimed && m.expired)
	after, may := m, false
	switch c.kind {
	case "read":
		return m, c.ok && c.got.status == m.status && c.got.claim == m.claim
	case "claim":
		if may = m.status == ledger.Queued; may {
			after = model{status: ledger.Claimed, claim: c.got.claim}
		}
	case "renew":
		may = held && m.status == ledger.Claimed
	case "release":
		if may = held && m.status == ledger.Claimed; may {
			after = model{status: ledger.Queued}
		}
	case "recover":
		if may = m.status == ledger.Claimed && m.claim == c.fence && m.expired; may {
			after = model{status: ledger.Queued}
		}
	case "move", "end":
		if may = held; may {
			after.status = c.status
		}
	}
	if c.ok != may {
		return m, false
	}
	if c.ok && (c.got.status != after.status || c.got.claim != after.claim || after.status == ledger.Claimed && after.claim == "") {
		return m, false
	}
	return after, true
}

// linear returns the states in which an assignment may be after a history: there is an
// order of the calls that keeps "before" wherever one call ended before another began, and
// in which each answer is the model's. No state means that there is no such order.
func linear(from []model, history []call) []model {
	type point struct {
		done uint64
		m    model
	}
	seen, ends := map[point]bool{}, map[model]bool{}
	var out []model
	var walk func(point)
	walk = func(p point) {
		if seen[p] {
			return
		}
		seen[p] = true
		if p.done == 1<<len(history)-1 {
			if !ends[p.m] {
				ends[p.m] = true
				out = append(out, p.m)
			}
			return
		}
		first := int64(1<<62 - 1) // the earliest end of what is not done: nothing that began later is next
		for i, c := range history {
			if p.done&(1<<i) == 0 {
				first = min(first, c.ended)
			}
		}
		for i, c := range history {
			if p.done&(1<<i) != 0 || c.began > first {
				continue
			}
			if m, may := p.m.next(c); may {
				walk(point{p.done | 1<<i, m})
			}
		}
	}
	for _, m := range from {
		walk(point{0, m})
	}
	return out
}

// hands is a clock that moves when it is told to.
type hands struct {
	clock.System
	now atomic.Int64
}

func (h *hands) Now() time.Time { return time.Unix(0, h.now.Load()) }

func ran(ctx context.Context, s *coord.Service, project, id string, c call) call {
	var a ledger.Assignment
	var err error
	switch c.kind {
	case "read":
		a, err = s.GetAssignment(ctx, project, id)
	case "claim":
		a, err = s.ClaimAssignmentWithLease(ctx, project, id, "w")
	case "renew":
		a, err = s.RenewAssignmentClaim(ctx, project, id, c.fence)
	case "release":
		a, err = s.ReleaseAssignmentWithClaim(ctx, project, id, c.fence)
	case "recover":
		a, err = s.RecoverAssignmentClaim(ctx, project, id, c.fence)
	case "move":
		a, err = s.UpdateAssignmentStatusWithClaim(ctx, project, id, c.fence, c.status, nil)
	case "end":
		a, err = s.CompleteAssignmentWithClaim(ctx, project, id, c.fence, c.status, nil)
	}
	if c.ok = err == nil; c.ok {
		c.got.status = a.Status
		if a.Claim != nil {
			c.got.claim = a.Claim.ID
		}
	} else if !fault.Is(err, fault.Conflict) {
		c.kind = fmt.Sprintf("%s: %v", c.kind, err) // no model answers that
	}
	return c
}

// Cases 10, 14, 16, 17 and H7: whatever several workers on several connections ask at once,
// each assignment answers as if they had asked one after the other.
func TestEveryHistoryOfAnAssignmentIsLinear(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	h := &hands{}
	h.now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	var services []*coord.Service
	for range 3 {
		db, err := store.OpenFile(t.Context(), file, store.Options{Relaxed: true, Sets: []store.Set{ledgersql.Tables()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		services = append(services, coord.New(db, coord.WithClock(h)))
	}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		project := queue(t, services[0], 2)
		next, err := services[0].NextAssignments(ctx, project, coord.NextFilter{})
		if err != nil || len(next) != 2 {
			rt.Fatal(next, err)
		}
		ids := []string{next[0].ID, next[1].ID}
		states := [][]model{{{status: ledger.Queued}}, {{status: ledger.Queued}}}
		var ticks atomic.Int64
		var mu sync.Mutex
		fences := []string{"claim_0", "claim_0"} // the newest claim that anybody saw of each
		older := []string{"claim_0", "claim_0"}

		for round := range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			if round > 0 && rapid.Bool().Draw(rt, "time passes") {
				h.now.Add(int64(ledger.DefaultLease) + 1)
				for _, of := range states {
					for i := range of {
						of[i].expired = true
					}
				}
			}
			type step struct {
				which int
				stale bool
				call  call
			}
			plan := make([][]step, len(services))
			for w := range plan {
				for range rapid.IntRange(1, 4).Draw(rt, "calls") {
					s := step{which: rapid.IntRange(0, 1).Draw(rt, "assignment"), stale: rapid.IntRange(0, 4).Draw(rt, "stale") == 0}
					s.call.kind = rapid.SampledFrom([]string{"claim", "claim", "claim", "renew", "release", "recover", "recover", "move", "end", "read"}).Draw(rt, "call")
					switch s.call.kind {
					case "move":
						s.call.status = rapid.SampledFrom([]string{ledger.Running, ledger.AwaitingApproval, ledger.AwaitingReview}).Draw(rt, "to")
					case "end":
						s.call.status = rapid.SampledFrom([]string{ledger.Completed, ledger.Failed, ledger.Cancelled, ledger.AwaitingReview}).Draw(rt, "end")
					}
					plan[w] = append(plan[w], s)
				}
			}
			histories := make([][]call, 2)
			var workers sync.WaitGroup
			for w, steps := range plan {
				workers.Go(func() {
					for _, s := range steps {
						c := s.call
						mu.Lock()
						if c.fence = fences[s.which]; s.stale {
							c.fence = older[s.which]
						}
						mu.Unlock()
						c.began = ticks.Add(1)
						c = ran(ctx, services[w], project, ids[s.which], c)
						c.ended = ticks.Add(1)
						mu.Lock()
						if c.kind == "claim" && c.ok {
							older[s.which], fences[s.which] = fences[s.which], c.got.claim
						}
						histories[s.which] = append(histories[s.which], c)
						mu.Unlock()
					}
				})
			}
			workers.Wait()
			for i, history := range histories {
				after := linear(states[i], history)
				if len(after) == 0 {
					rt.Fatalf("from %+v there is no order of\n%+v", states[i], history)
				}
				states[i] = after
			}
		}
	})
}

// The check of histories itself: it refuses what no order explains, and takes an order that
// only the overlap allows.
func TestAHistoryThatNoOrderExplainsIsFound(t *testing.T) {
	queued := []model{{status: ledger.Queued}}
	claim := func(id string, began, ended int64, ok bool) call {
		c := call{kind: "claim", began: began, ended: ended, ok: ok}
		if ok {
			c.got = model{status: ledger.Claimed, claim: id}
		}
		return c
	}
	end := call{kind: "end", fence: "a", status: ledger.Completed, began: 5, ended: 6, ok: true, got: model{status: ledger.Completed, claim: "a"}}
	late := end
	late.fence, late.got.claim = "b", "b"
	for name, c := range map[string]struct {
		history []call
		want    bool
	}{
		"two claims at once":             {[]call{claim("a", 1, 4, true), claim("b", 2, 3, true)}, false},
		"a lost claim before the winner": {[]call{claim("", 1, 2, false), claim("a", 3, 4, true)}, false},
		"a lost claim beside the winner": {[]call{claim("", 1, 4, false), claim("a", 2, 3, true)}, true},
		"an end with the fence":          {[]call{claim("a", 1, 2, true), end}, true},
		"an end with another fence":      {[]call{claim("a", 1, 2, true), late}, false},
	} {
		if got := len(linear(queued, c.history)) > 0; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

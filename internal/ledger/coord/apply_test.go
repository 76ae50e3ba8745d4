package coord_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

// dying is a context that ends when it has been asked for its end so many times, so that
// a call can be cut off at every step it takes.
type dying struct {
	context.Context
	left atomic.Int64
	stop context.CancelFunc
}

func die(ctx context.Context, after int) *dying {
	inner, stop := context.WithCancel(ctx)
	d := &dying{Context: inner, stop: stop}
	d.left.Store(int64(after))
	return d
}

func (d *dying) Done() <-chan struct{} {
	if d.left.Add(-1) < 0 {
		d.stop()
	}
	return d.Context.Done()
}

// A caller that goes away, wherever in the application that is, gets its own error and no
// result, and the proposal is applied later as if nobody had tried.
func TestAnApplicationThatIsCutOffAnywhereLeavesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx := t.Context()
	p, err := s.CreateProject(ctx, ledger.Project{Name: "P"})
	if err != nil {
		t.Fatal(err)
	}
	var actions []ledger.Action
	for i := range 5 {
		actions = append(actions, ledger.Action{Kind: ledger.CreateWorkItem, WorkItem: &ledger.WorkItem{ProjectID: p.ID, Title: fmt.Sprint("W", i)}})
	}
	apply := func(ctx context.Context, recorded string) (*ledger.ApplyResult, error) {
		if recorded == "" {
			return s.ApplyInline(ctx, ledger.Proposal{Title: "T", Actions: actions}, true)
		}
		return s.ApplyProposal(ctx, recorded, true)
	}
	r, err := s.Propose(ctx, ledger.Proposal{ProjectID: p.ID, Title: "T", Actions: actions})
	if err != nil {
		t.Fatal(err)
	}
	cut, items := 0, 0
	for _, recorded := range []string{r.ID, ""} {
		for after := range 400 {
			out, err := apply(die(ctx, after), recorded)
			if err == nil {
				items += 5
				break
			}
			cut++
			if out != nil {
				t.Fatalf("after %d steps: %v with the result %+v", after, err, out)
			}
			if got := coord.Classify(err); got != fault.Internal {
				t.Fatalf("after %d steps: %v is %s", after, err, got)
			}
		}
	}
	page, err := s.ListWorkItems(ctx, p.ID, coord.Span{})
	if err != nil || len(page.Items) != items || items != 10 || cut < 20 {
		t.Fatalf("%d work items after %d cuts and %d applied, %v", len(page.Items), cut, items, err)
	}
	if again, err := s.ApplyProposal(ctx, r.ID, true); !fault.Is(err, fault.Conflict) || again == nil || !again.Applied {
		t.Errorf("applied again: %+v, %v", again, err)
	}
}

// What an action does is told by its payload: a target that names another project is
// refused, because the operator was shown that one.
func TestAProjectActionIsAboutTheProjectOfItsPayload(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx := t.Context()
	var made []ledger.Project
	for _, name := range []string{"A", "B"} {
		p, err := s.CreateProject(ctx, ledger.Project{Name: name, Roots: []ledger.Root{{ID: "one", Path: "/1"}, {ID: "two", Path: "/2"}}})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, p)
	}
	action := func(kind, target string) ledger.Proposal {
		return ledger.Proposal{Title: "T", Actions: []ledger.Action{{Kind: kind, Target: ledger.Target{ProjectID: target},
			Project: &ledger.ProposedProject{ID: made[1].ID, Name: "Z", DefaultRootID: "two", Roots: []ledger.RootInput{{ID: "two", Path: &made[1].Roots[1].Path}}}}}}
	}
	for _, kind := range []string{ledger.UpdateProject, ledger.SetDefaults} {
		if _, err := s.ApplyInline(ctx, action(kind, made[0].ID), true); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s of two projects: %v", kind, err)
		}
		if _, err := s.Propose(ctx, action(kind, made[0].ID)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s of two projects is proposed: %v", kind, err)
		}
		old, err := s.ImportProposal(ctx, ledger.ProposalRecord{Proposal: action(kind, made[0].ID)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ApplyProposal(ctx, old.ID, true); !fault.Is(err, fault.Invalid) {
			t.Errorf("a historical %s of two projects: %v", kind, err)
		}
	}
	for _, target := range []string{"", " " + made[1].ID + " "} {
		for _, kind := range []string{ledger.SetDefaults, ledger.UpdateProject} {
			if _, err := s.ApplyInline(ctx, action(kind, target), true); err != nil {
				t.Errorf("%s with the target %q: %v", kind, target, err)
			}
		}
	}
	a, err := s.GetProject(ctx, made[0].ID)
	if err != nil || a.Name != "A" || a.DefaultRootID != "one" || len(a.Roots) != 2 {
		t.Errorf("the other project is %+v, %v", a, err)
	}
	if b, err := s.GetProject(ctx, made[1].ID); err != nil || b.Name != "Z" || b.DefaultRootID != "two" || len(b.Roots) != 1 {
		t.Errorf("the project is %+v, %v", b, err)
	}
}

package native_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func prepared(op native.Operation) native.Transition {
	t := native.Transition{ID: ids.NewTransition(), Operation: op, FromThread: "old"}
	if op == native.ResumeThread {
		t.WantThread = "wanted"
	}
	return native.Prepare(t, t0).Transition
}

// step carries a Transition forward or ends the test.
func step(t *testing.T, tr native.Transition, f func(native.Transition, time.Time) (native.Plan, error)) native.Transition {
	t.Helper()
	p, err := f(tr, t0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Transition
}

func TestWhateverHappensACommandIsTypedOnceAndClaimsNeedProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]native.Operation{native.NewThread, native.ResumeThread}).Draw(t, "op")
		first := native.Transition{ID: "transition-1", Operation: op, FromThread: rapid.SampledFrom([]string{"", "old"}).Draw(t, "from")}
		if op == native.ResumeThread {
			first.WantThread = "wanted"
		}
		p := native.Prepare(first, t0)
		tr, journal, now, typed := p.Transition, p.Events, t0, 0
		take := func(p native.Plan, err error) {
			if err != nil {
				if !fault.Is(err, native.CodeNotAllowed) {
					t.Fatalf("refused without the code: %v", err)
				}
				return
			}
			if len(p.Events) == 0 && p.Transition != tr {
				t.Fatal("an empty plan changed the Transition")
			}
			wasOpen := tr.Open()
			tr = p.Transition
			journal = append(journal, p.Events...)
			if tr.Open() && !wasOpen {
				t.Fatalf("a closed Transition opened again: %+v", tr)
			}
		}
		threads := rapid.SampledFrom([]string{"", "old", "wanted", "other"})
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 8).Draw(t, "do") {
			case 0:
				may := tr.MayType()
				p, err := native.Dispatch(tr, now)
				if (err == nil) != may {
					t.Fatalf("MayType %v, Dispatch %v", may, err)
				}
				if err == nil {
					typed++
				}
				take(p, err)
			case 1:
				take(native.Submit(tr, now))
			case 2:
				take(native.Verify(tr, threads.Draw(t, "thread"), now))
			case 3:
				take(native.Commit(tr, "session-1", "binding-1", 1, now))
			case 4:
				take(native.Abort(tr, "why", now))
			case 5:
				take(native.MarkUncertain(tr, "why", now), nil)
			case 6:
				take(native.Adopt(tr, "a", "b", now), nil)
			case 7:
				take(native.Abandon(tr, "why", now), nil)
			case 8:
				e := native.Evidence{Gone: rapid.Bool().Draw(t, "gone"), Finished: rapid.Bool().Draw(t, "finished"), Thread: threads.Draw(t, "shown")}
				take(native.Recover(tr, e, now), nil)
			}
			if typed > 1 {
				t.Fatal("the command may be typed twice")
			}
			if typed == 0 && tr.Status != native.Prepared && tr.Status != native.Aborted && !tr.Abandoned {
				t.Fatalf("%s without a command", tr.Status)
			}
			if (tr.Status == native.Verified || tr.Status == native.Committed) && !tr.Proves(tr.ThreadID) {
				t.Fatalf("%s with thread %q", tr.Status, tr.ThreadID)
			}
			if tr.Status == native.Committed && tr.SessionID == "" {
				t.Fatal("committed without a Session")
			}
		}
		var fold native.Transition
		for _, e := range journal {
			var err error
			if fold, err = native.Apply(fold, e); err != nil {
				t.Fatal(err)
			}
		}
		if fold != tr {
			t.Fatalf("fold %+v\nstate %+v", fold, tr)
		}
	})
}

func TestRecoveryOfACutOffTransition(t *testing.T) { // spec case 59
	dispatching := step(t, prepared(native.NewThread), native.Dispatch)
	submitted := step(t, dispatching, native.Submit)
	verified := step(t, submitted, func(tr native.Transition, now time.Time) (native.Plan, error) { return native.Verify(tr, "new", now) })
	uncertain := native.MarkUncertain(submitted, "x", t0).Transition
	resume := native.MarkUncertain(step(t, prepared(native.ResumeThread), native.Dispatch), "x", t0).Transition
	late := t0.Add(native.SettleLimit)
	for name, c := range map[string]struct {
		tr   native.Transition
		e    native.Evidence
		at   time.Time
		want native.Status
		open bool
	}{
		"prepared, nobody types":           {prepared(native.NewThread), native.Evidence{Finished: true}, t0, native.Aborted, false},
		"prepared, somebody types":         {prepared(native.NewThread), native.Evidence{}, late, native.Prepared, true},
		"dispatching, new thread is shown": {dispatching, native.Evidence{Finished: true, Thread: "new"}, late, native.Verified, true},
		"dispatching, the old one":         {dispatching, native.Evidence{Finished: true, Thread: "old"}, t0, native.Dispatching, true},
		"dispatching, the old one, late":   {dispatching, native.Evidence{Finished: true, Thread: "old"}, late, native.Uncertain, true},
		"submitted, nothing provable":      {submitted, native.Evidence{Finished: true}, late, native.Uncertain, true},
		"submitted, process dead":          {submitted, native.Evidence{Finished: true, Gone: true}, t0, native.Uncertain, false},
		"verified is left for its commit":  {verified, native.Evidence{Finished: true, Gone: true}, late, native.Verified, true},
		"uncertain stays uncertain":        {uncertain, native.Evidence{Finished: true, Thread: "new"}, late, native.Uncertain, true},
		"an uncertain resume that is seen": {resume, native.Evidence{Finished: true, Thread: "wanted"}, late, native.Verified, true},
		"another thread proves no resume":  {resume, native.Evidence{Finished: true, Thread: "other"}, late, native.Uncertain, true},
	} {
		got := native.Recover(c.tr, c.e, c.at).Transition
		if got.Status != c.want || got.Open() != c.open {
			t.Errorf("%s: %s, open %v, want %s, %v", name, got.Status, got.Open(), c.want, c.open)
		}
		if got.MayType() && c.tr.Status != native.Prepared {
			t.Errorf("%s: it may be typed again", name)
		}
	}
}

func TestAnAbandonedTransitionNeverMoves(t *testing.T) {
	tr := native.Abandon(step(t, prepared(native.NewThread), native.Dispatch), "a person decided", t0).Transition
	if tr.Open() || tr.Status != native.Uncertain || tr.Reason != "a person decided" {
		t.Errorf("%+v", tr)
	}
	for kind := range map[native.EventKind]bool{native.EvSubmitted: true, native.EvVerified: true, native.EvAborted: true, native.EvAdopted: true, native.EvAbandoned: true} {
		if _, err := native.Apply(tr, native.Event{Seq: tr.Seq + 1, Kind: kind, At: t0}); err == nil {
			t.Errorf("%s was taken", kind)
		}
	}
}

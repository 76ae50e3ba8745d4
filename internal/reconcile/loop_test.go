package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/reconcile"
)

func TestAFailingOrPanickingPhaseSuppressesNoOther(t *testing.T) { // spec case 22
	synctest.Test(t, func(t *testing.T) {
		var a, b, c atomic.Int32
		loop := reconcile.New(clock.System{}, slog.New(slog.DiscardHandler), 5*time.Second,
			reconcile.Phase{Name: "a", Startup: func(context.Context) error { a.Add(1); return errors.New("no") }, Sweep: func(context.Context) error { a.Add(1); return errors.New("no") }},
			reconcile.Phase{Name: "b", Startup: func(context.Context) error { b.Add(1); panic("no") }, Sweep: func(context.Context) error { b.Add(1); panic("no") }},
			reconcile.Phase{Name: "c", Startup: func(context.Context) error { c.Add(1); return nil }, Sweep: func(context.Context) error { c.Add(1); return nil }},
		)
		loop.Start(t.Context())
		defer loop.Stop()
		time.Sleep(12 * time.Second) // of the bubble's clock: passes at 0, 5 and 10 s
		synctest.Wait()
		if a.Load() != 3 || b.Load() != 3 || c.Load() != 3 {
			t.Fatalf("passes %d %d %d, want 3 each", a.Load(), b.Load(), c.Load())
		}
	})
}

func TestPassesNeverOverlapAndNeverCatchUp(t *testing.T) { // spec case 22
	synctest.Test(t, func(t *testing.T) {
		var running, most, passes atomic.Int32
		slow := func(context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(12 * time.Second)
			running.Add(-1)
			passes.Add(1)
			return nil
		}
		loop := reconcile.New(clock.System{}, slog.New(slog.DiscardHandler), 5*time.Second, reconcile.Phase{Name: "slow", Startup: slow, Sweep: slow})
		loop.Start(t.Context())
		time.Sleep(50 * time.Second) // ends at 12, 29, 46
		loop.Stop()
		if most.Load() != 1 || passes.Load() != 3 {
			t.Fatalf("%d at once, %d passes; want 1 and 3", most.Load(), passes.Load())
		}
	})
}

func TestStopWaitsForThePassInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		loop := reconcile.New(clock.System{}, slog.New(slog.DiscardHandler), time.Second, reconcile.Phase{Name: "p", Startup: func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			done.Store(ctx.Err() == nil)
			return nil
		}})
		loop.Start(t.Context())
		synctest.Wait()
		loop.Stop()
		if !done.Load() {
			t.Fatal("the pass was cut")
		}
	})
}

func TestStopCutsAPassThatWaitsForEver(t *testing.T) { // spec part 14: the drain is bounded
	synctest.Test(t, func(t *testing.T) {
		var after atomic.Bool
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		loop := reconcile.New(clock.System{}, slog.New(slog.DiscardHandler), time.Second, reconcile.Phase{Name: "hangs", Startup: hang},
			reconcile.Phase{Name: "next", Startup: func(context.Context) error { after.Store(true); return nil }})
		loop.Start(t.Context())
		synctest.Wait()
		begin := time.Now()
		loop.Stop()
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("Stop took %v", d)
		}
		if after.Load() {
			t.Error("a phase began after Stop")
		}
	})
}

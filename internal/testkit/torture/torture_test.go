package torture

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
)

// The environment of a run: how many rounds, of which seed, and one of them alone.
const (
	envRounds = "AKK_TORTURE_ROUNDS"
	envSeed   = "AKK_TORTURE_SEED"
	envOnly   = "AKK_TORTURE_ONLY"
)

// fewRounds is what an ordinary test run plays, of a seed that is fixed: a change of the
// code must be what changes the result.
const (
	fewRounds = 4
	fixedSeed = 20
)

func number(t *testing.T, name string, def int64) int64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestTorture kills, freezes and starves whatever a task touches, at each of its
// boundaries. (H3, H4, S01, S12, L16, spec cases 32, 38, 53.)
func TestTorture(t *testing.T) {
	rounds, seed, only := number(t, envRounds, fewRounds), uint64(number(t, envSeed, fixedSeed)), number(t, envOnly, -1)
	all := Strikes(seed)
	t.Logf("seed %d, %d rounds of %d strikes; one again: make torture SEED=%d ONLY=<round>", seed, rounds, len(all), seed)
	var mu sync.Mutex
	var sum Figures
	t.Run("rounds", func(t *testing.T) {
		for n := range int(rounds) {
			if only >= 0 && n != int(only) {
				continue
			}
			s := all[n%len(all)]
			t.Run(fmt.Sprintf("%03d", n), func(t *testing.T) {
				t.Parallel() // make torture plays one at a time
				start := time.Now()
				t.Logf("%v", s)
				f := Round(t, s, n, seed)
				t.Logf("%v: %s, %v", s, f.Ends, time.Since(start).Round(time.Millisecond))
				mu.Lock()
				defer mu.Unlock()
				sum.Gone = append(sum.Gone, f.Gone...)
				sum.FirstWrite = append(sum.FirstWrite, f.FirstWrite...)
				sum.Ends = append(sum.Ends, f.Ends...)
			})
		}
	})
	report(t, "nothing of a killed Bridge was left after", sum.Gone)
	report(t, "the first send after the strike took", sum.FirstWrite)
	ends := map[string]int{}
	for _, e := range sum.Ends {
		ends[e]++
	}
	names := []string{}
	for e := range ends {
		names = append(names, e)
	}
	slices.Sort(names)
	for _, e := range names {
		t.Logf("%4d × %s", ends[e], e)
	}
}

// The disk fails while the Store is made, while a Bridge takes over and while old tasks are
// forgotten; who makes it or forgets is killed in the middle. All of these are among the
// strikes of TestTorture too. (H3, L16, S01.)
func TestADiskThatFailsAtAStartOrASweepLosesNothing(t *testing.T) {
	all := outside()
	step := 9 // an ordinary run plays some
	if os.Getenv(envRounds) != "" {
		step = 1
	}
	for n := 0; n < len(all); n += step {
		t.Run(fmt.Sprint(all[n]), func(t *testing.T) {
			t.Parallel()
			t.Log(Round(t, all[n], n, fixedSeed).Ends)
		})
	}
}

func report(t *testing.T, what string, d []time.Duration) {
	t.Helper()
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(p int) time.Duration { return d[(len(d)-1)*p/100].Round(time.Millisecond) }
	t.Logf("%s: median %v, p99 %v, max %v (%d times)", what, at(50), at(99), at(100), len(d))
}

// A release holds no crash point: the names are not even in the file.
func TestAReleaseHoldsNoCrashPoint(t *testing.T) {
	for _, p := range []string{"bridge", "monitor", "worker"} {
		b, err := os.ReadFile(gobuild.Program(t, module+p))
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range []string{crashpoint.SendReserved, crashpoint.StoreCommitted, crashpoint.WorkerEnded, crashpoint.MonitorSaw, crashpoint.OutboxClaimed} {
			if bytes.Contains(b, []byte(point)) {
				t.Errorf("%s holds the crash point %s", p, point)
			}
		}
	}
}

func TestTheStrikesOfASeedAreTheSameEachTime(t *testing.T) {
	a, b, c := Strikes(7), Strikes(7), Strikes(8)
	if !slices.Equal(a, b) || slices.Equal(a, c) || len(a) < 300 {
		t.Errorf("%d strikes, the same: %v, another seed the same: %v", len(a), slices.Equal(a, b), slices.Equal(a, c))
	}
}

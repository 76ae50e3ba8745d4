package top

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/bigstore"
	"github.com/agent-knock-knock/akk/internal/testkit/golden"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/watch"
)

var now = time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC)

// day is a Snapshot of an ordinary day.
func day() Snapshot {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return Snapshot{
		StoreDir: "/home/someone/.agent-knock-knock/store",
		Bridges: []doctor.BridgeState{{BridgeID: "bridge-1", Host: "my-agent", PID: 4711, StartedAt: ago(3 * time.Hour), Memory: 25 << 20, Workers: []doctor.WorkerState{
			{Name: "akk-callback", Serves: "callbacks", State: "serving", PID: 4712, AgeSeconds: 10800, Memory: 16 << 20},
			{Name: "akk-monitor", Serves: "turn-20260304T150200-1a2b3c4d", State: "serving", PID: 4801, AgeSeconds: 125, Memory: 15 << 20},
			{Name: "akk-monitor", Serves: "turn-20260304T141000-5e6f7a8b", State: "backoff", Restarts: 6, Problem: "it ended and waits to be started again"},
		}}},
		Turns: []turn.Turn{
			{ID: "turn-20260304T150200-1a2b3c4d", Status: turn.WaitingForAgent, Agent: "codex", CreatedAt: ago(125 * time.Second), RequestSummary: "Add a test for the parser of dates, then run the whole suite"},
			{ID: "turn-20260304T145500-9c0d1e2f", Status: turn.WaitingForController, Agent: "claude", CreatedAt: ago(9 * time.Minute), RequestSummary: "日本語の説明を書いてください"},
			{ID: "turn-20260304T141000-5e6f7a8b", Status: turn.Stalled, Agent: "codex", CreatedAt: ago(54 * time.Minute), Reason: "the agent process ended before it answered"},
			{ID: "turn-20260304T120000-00000000", Status: turn.Idle, Agent: "claude", CreatedAt: ago(3 * time.Hour), RequestSummary: "Say what this repository is about"},
		},
		Watches: []watch.Watch{{ID: "watch-20260304T150000-abcdef01", Status: watch.Active, Agent: "codex", CreatedAt: ago(4 * time.Minute), Workspace: "/home/someone/src/shop"}},
		Outbox: []outbox.Delivery{
			{DeliveryID: "callback-delivery-aaaaaaaaaaaaaaaaaaaa1111", Status: outbox.Pending, Attempts: 2, CreatedAt: ago(20 * time.Second), NextAttemptAt: now.Add(12 * time.Second), Event: outbox.Event{Kind: "approval"}, Source: outbox.Source{ID: "turn-20260304T145500-9c0d1e2f"}},
			{DeliveryID: "callback-delivery-bbbbbbbbbbbbbbbbbbbb2222", Status: outbox.Unproved, Attempts: 1, CreatedAt: ago(40 * time.Minute), LastError: "callback_worker_lost", Event: outbox.Event{Kind: "stalled"}, Source: outbox.Source{ID: "turn-20260304T141000-5e6f7a8b"}},
		},
		Counts: map[outbox.Status]int{outbox.Pending: 1, outbox.Unproved: 1, outbox.Delivered: 12},
	}
}

func TestAnOrdinaryDayFits80x24(t *testing.T) {
	golden.Equal(t, filepath.Join("testdata", "day-80x24.txt"), Render(day(), Frame{Width: 80, Height: 24, Now: now, Focus: 1})+"\n")
	golden.Equal(t, filepath.Join("testdata", "nothing-80x24.txt"), Render(Snapshot{StoreDir: "/s"}, Frame{Width: 80, Height: 24, Now: now})+"\n")
}

func TestAnyPictureFitsItsTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := day()
		word := rapid.SampledFrom([]string{"x", "日本", "a\x1b[2Jb", "\x00\n\r\t", strings.Repeat("long ", 100), "", "é\u202e"})
		for range rapid.IntRange(0, 60).Draw(t, "turns") {
			s.Turns = append(s.Turns, turn.Turn{ID: ids.TurnID(word.Draw(t, "id")), Status: turn.Stalled, Agent: word.Draw(t, "agent"), Reason: word.Draw(t, "reason"), CreatedAt: now})
		}
		for range rapid.IntRange(0, 30).Draw(t, "bridges") {
			s.Bridges = append(s.Bridges, doctor.BridgeState{Host: word.Draw(t, "host"), Problem: word.Draw(t, "problem")})
		}
		s.Unasked, s.Unread = word.Draw(t, "what was not asked"), word.Draw(t, "what was not read")
		f := Frame{Width: rapid.IntRange(0, 200).Draw(t, "width"), Height: rapid.IntRange(0, 60).Draw(t, "height"), Now: now,
			Focus: rapid.IntRange(0, Sections-1).Draw(t, "focus"), Scroll: rapid.IntRange(0, 100).Draw(t, "scroll")}
		lines := strings.Split(Render(s, f), "\n")
		if len(lines) > max(f.Height, 1) {
			t.Fatalf("%d lines for %d", len(lines), f.Height)
		}
		for _, l := range lines {
			if columns(l) > max(f.Width, minWidth) || strings.ContainsAny(l, "\x1b\x00\r\t") {
				t.Fatalf("%q takes %d columns of %d", l, columns(l), f.Width)
			}
		}
	})
}

func TestTheSectionInFocusScrollsToItsEnd(t *testing.T) {
	s := day()
	for i := range 40 {
		s.Turns = append(s.Turns, turn.Turn{ID: ids.TurnID(fmt.Sprintf("turn-%02d", i)), Status: turn.Idle, CreatedAt: now})
	}
	f := Frame{Width: 80, Height: 24, Now: now, Focus: 1}
	if p := Render(s, f); strings.Contains(p, "turn-39") || !strings.Contains(p, "1a2b3c4d") {
		t.Errorf("%s", p)
	}
	f.Scroll = 1000
	if p := Render(s, f); !strings.Contains(p, "turn-39") {
		t.Errorf("%s", p)
	}
}

func TestALookAtAStoreThatIsNotThereIsEmptyAndOneThatIsBrokenSaysSo(t *testing.T) {
	dir := t.TempDir()
	eye := Eye{StoreDir: filepath.Join(dir, "none"), Places: []string{filepath.Join(dir, "bridges")}}
	if s := eye.Look(t.Context()); s.problem() != "" || len(s.Turns) != 0 {
		t.Errorf("%+v", s)
	}
	store := filepath.Join(dir, "store")
	bigstore.Fill(t, store, 40, now)
	whole := Eye{StoreDir: store, Places: eye.Places}
	if s := whole.Look(t.Context()); s.problem() != "" || len(s.Turns) != recent || len(s.Outbox) != recent || s.Counts[outbox.Delivered] != 40 {
		t.Errorf("%d turns, %d callbacks, %+v", len(s.Turns), len(s.Outbox), s.Counts)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
	broken := filepath.Join(dir, "broken")
	if err := mkBroken(broken); err != nil {
		t.Fatal(err)
	}
	eye = Eye{StoreDir: broken, Places: eye.Places}
	s := eye.Look(t.Context())
	if picture := Render(s, Frame{Width: 120, Height: 24, Now: now}); !strings.Contains(s.problem(), "damaged") || strings.Contains(picture, "no task was sent yet") || !strings.Contains(picture, "not read") {
		t.Errorf("a broken Store is drawn with %q as\n%s", s.problem(), picture)
	}
}

// A runtime directory that others may enter hides the Bridges, and not the Store.
func TestALookReadsTheStoreWhereNoBridgeCanBeAsked(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "akkv") // a place that is too long for sockets is not ours
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	place, storeDir := filepath.Join(dir, "runtime", "bridges"), filepath.Join(dir, "store")
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{place, filepath.Dir(place)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	bigstore.Fill(t, storeDir, 3, now)
	eye := Eye{StoreDir: storeDir, Places: []string{place}}
	defer eye.Close()
	s := eye.Look(t.Context())
	if s.problem() == "" || len(s.Turns) != 3 {
		t.Errorf("problem %q, %d turns", s.problem(), len(s.Turns))
	}
	if picture := Render(s, Frame{Width: 120, Height: 24, Now: now}); strings.Contains(picture, "no Bridge runs") || !strings.Contains(picture, "not asked") {
		t.Errorf("drawn as\n%s", picture)
	}
	// Both fail: both are told.
	if err := mkBroken(filepath.Join(dir, "broken")); err != nil {
		t.Fatal(err)
	}
	both := Eye{StoreDir: filepath.Join(dir, "broken"), Places: eye.Places}
	if got := both.Look(t.Context()).problem(); !strings.Contains(got, s.problem()) || !strings.Contains(got, "damaged") {
		t.Errorf("both are %q", got)
	}
}

func mkBroken(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, store.FileName), []byte(strings.Repeat("no database ", 1000)), 0o600)
}

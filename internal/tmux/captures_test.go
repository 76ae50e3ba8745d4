package tmux_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

func TestCapturesOfManyPanesAreThoseOfEachPane(t *testing.T) {
	server := faketmux.New(t)
	var ids []string
	for i := range 5 {
		r := server.Recorder(faketmux.RecorderSpec{
			Print: fmt.Sprintf("\x1b]2;title %d\x07pane \x1b[1;3%dm%d\x1b[0m\r\n", i, i+1, i),
			Spec:  faketmux.Spec{Width: 60 + i, Height: 10 + i},
		})
		r.WaitText("READY")
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids) // the answers follow the question, not tmux's order
	got, err := server.Client().Captures(t.Context(), ids)
	if err != nil || len(got) != len(ids) {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, id := range ids {
		want, err := server.Client().Capture(t.Context(), id, tmux.CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got[i].Capture); d != "" || got[i].Err != nil {
			t.Errorf("%s: %v\n%s", id, got[i].Err, d)
		}
	}
}

// A pane may vanish between the listing and the capture, and capture-pane of such a one
// ends the whole command.
func TestAVanishedPaneHidesNoOther(t *testing.T) {
	server := faketmux.New(t)
	a, b := server.Run(faketmux.Spec{Dir: "/tmp"}), server.Run(faketmux.Spec{Dir: "/tmp"})
	dead := server.Run(faketmux.Spec{Argv: []string{"true"}, Remain: true})
	dead.WaitScreen(func(c tmux.Capture) bool { return c.Pane.Dead })
	got, err := server.Client().Captures(t.Context(), []string{"%97", a.ID, "%98", dead.ID, b.ID, "%99"})
	if err != nil || len(got) != 6 {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, want := range []string{"", a.ID, "", dead.ID, b.ID, ""} {
		switch {
		case want == "" && !fault.Is(got[i].Err, fault.NotFound):
			t.Errorf("answer %d: %v", i, got[i].Err)
		case want != "" && (got[i].Err != nil || got[i].Pane.ID != want || len(got[i].Lines) != got[i].Pane.Height):
			t.Errorf("answer %d: %+v", i, got[i])
		}
	}
	if !got[3].Pane.Dead {
		t.Error("the dead pane is not told")
	}
}

// The client sends a command in one message of 16 KiB.
func TestMorePanesThanOneCommandHoldsAreAllCaptured(t *testing.T) {
	server := faketmux.New(t)
	p := server.Run(faketmux.Spec{Dir: "/tmp"})
	ids := slices.Repeat([]string{p.ID, "%4000000000"}, 100)
	got, err := server.Client().Captures(t.Context(), ids)
	if err != nil || len(got) != len(ids) {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i := range got {
		if (got[i].Err == nil) != (i%2 == 0) {
			t.Fatalf("answer %d: %v", i, got[i].Err)
		}
	}
}

func TestCapturesSayWhatIsWrongForAll(t *testing.T) {
	server := faketmux.New(t)
	p := server.Run(faketmux.Spec{Dir: "/tmp"})
	if got, err := server.Client().Captures(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("no panes: %v, %v", got, err)
	}
	if _, err := server.Client().Captures(t.Context(), []string{p.ID, "%1;kill-server"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no pane id: %v", err)
	}
	server.Kill()
	if _, err := server.Client().Captures(t.Context(), []string{p.ID}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a server: %v", err)
	}
}

// BenchmarkCaptures measures one client for n screens beside n clients.
func BenchmarkCaptures(b *testing.B) {
	server := faketmux.New(b)
	var ids []string
	for range 20 {
		p := server.Run(faketmux.Spec{Argv: []string{"sh", "-c", "printf %s '" + strings.Repeat("x", 400) + "'; sleep 600"}})
		ids = append(ids, p.ID)
	}
	c := server.Client()
	b.Run("20 panes, one client", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Captures(b.Context(), ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("20 panes, one client each", func(b *testing.B) {
		for b.Loop() {
			for _, id := range ids {
				if _, err := c.Capture(b.Context(), id, tmux.CaptureOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

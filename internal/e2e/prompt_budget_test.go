//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// painted notes when a word first comes out of a pane. It reads a copy of what the agent
// writes and disturbs nothing.
type painted struct {
	mu   sync.Mutex
	word []byte
	tail []byte
	at   time.Time
}

// watchPane starts the copy; it ends with the test.
func (r *real) watchPane() *painted {
	r.t.Helper()
	fifo := filepath.Join(r.t.TempDir(), "pane")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	r.tmux.Tmux("pipe-pane", "-O", "-t", r.agent.PaneID, "cat > '"+fifo+"'")
	p := &painted{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			p.saw(buf[:n], time.Now())
		}
	}()
	r.t.Cleanup(func() {
		r.tmux.Try("pipe-pane", "-t", r.agent.PaneID)
		f.Close()
		<-done
	})
	return p
}

func (p *painted) saw(b []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail = append(p.tail, b...)
	if len(p.word) > 0 && p.at.IsZero() && bytes.Contains(p.tail, p.word) {
		p.at = now
	}
	p.tail = append([]byte{}, p.tail[max(0, len(p.tail)-64):]...)
}

// next waits for the next time that the word is painted.
func (p *painted) next(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.tail, p.at = []byte(word), nil, time.Time{}
}

func (p *painted) when() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// TestPromptBudgetFromTheScreenToTheCallbackProgram: an approval that a real agent paints
// is heard by the Host at once. A budget fails the test at three times its figure only.
func TestPromptBudgetFromTheScreenToTheCallbackProgram(t *testing.T) {
	const rounds, budget = 12, 400.0
	var mu sync.Mutex
	var table []string
	for mode := range shapes {
		t.Run(string(mode), func(t *testing.T) {
			r := newReal(t, mode, nil)
			pane := r.watchPane()
			word := "following" // of "Would you like to run the following command?"
			if mode == realagent.ClaudePlain {
				word = "proceed?"
			}
			var took []float64
			for i := range rounds {
				pane.next(word)
				before := len(r.host.Deliveries())
				got := r.send(fmt.Sprintf("RUN:touch budget-%d.txt ;; SAY:round %d", i, i))
				r.until("the knock of a prompt", func() bool { return len(r.host.Deliveries()) > before }, r.screen)
				heard := r.host.Deliveries()[before].T
				r.until("the prompt on the screen", func() bool { return !pane.when().IsZero() }, r.screen)
				took = append(took, ms(pane.when(), heard))
				r.approve()
				r.knocks(got.TurnID, 2)
			}
			slices.Sort(took)
			p50, p99 := took[len(took)/2], took[len(took)-1]
			mu.Lock()
			table = append(table, fmt.Sprintf("| prompt on the screen of %s to callback program | p50 ≤ 400 ms | %.1f ms | %.1f ms | %.1f ms | %d |", mode, took[0], p50, p99, len(took)))
			mu.Unlock()
			if p50 > 3*budget {
				t.Errorf("median %.1f ms is over three times the budget of %.0f ms", p50, budget)
			}
		})
	}
	slices.Sort(table)
	t.Logf("\n| What | Budget | min | median | most | runs |\n| --- | --- | --- | --- | --- | --- |\n%s", strings.Join(table, "\n"))
}

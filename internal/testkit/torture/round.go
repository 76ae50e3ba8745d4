package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// Figures are what rounds measured.
type Figures struct {
	Gone       []time.Duration // from a SIGKILL of the Bridge until nothing of it was left
	FirstWrite []time.Duration // of the next Bridge: a whole send to a free terminal
	Ends       []string        // how the task ended
}

// round is one task under one strike.
type round struct {
	Strike
	*world
	disk      *small
	pane      *pane // the one that is struck
	text      string
	answer    string
	dead      bool // the Bridge was killed and none runs
	agentHurt bool
	tmuxGone  bool
	first     time.Duration
}

// reply is what the Host got for its send.
type reply struct {
	turn string // "" when it was refused, or nothing came
	code string // of the refusal
	said string // with it
	lost bool   // no reply at all
}

// busy reports that a machine with too much to do refused before anything was typed, and
// said so: a Host tries again then.
func (r reply) busy() bool {
	return r.code == string(fault.Unavailable) || r.code == string(fault.Timeout) && strings.Contains(r.said, `"retry":"safe"`)
}

// Round plays one strike in a world of its own and proves what must hold.
func Round(tb testing.TB, s Strike, n int, seed uint64) Figures {
	tb.Helper()
	r := &round{Strike: s, world: newWorld(tb), answer: fmt.Sprintf("answer %d of %x", n, seed)}
	r.text = fmt.Sprintf("task %d of %x\nSAY:%s", n, seed, r.answer)
	if s.How == Full || s.Start == Full {
		r.disk = mountSmall(tb, r.host.Store)
	}
	kinds := []string{standin.Codex, standin.Claude}
	r.pane = r.agent(kinds[n%2])
	spare := r.agent(kinds[(n+1)%2])
	r.host.SetMode(fakehost.Accept)
	if s.Point == crashpoint.StoreMigrate {
		r.failToMakeAStore()
	}
	r.start()
	terminal := r.ready(r.pane)
	got := r.sendUnderStrike(terminal)
	if r.dead {
		r.takeOver()
	}
	if r.tmuxGone {
		spare = r.agent(kinds[(n+1)%2])
	}
	r.firstWrite(spare)
	r.settle()
	r.settleLate()
	ended := time.Now()
	if code := r.c.Close(patience); code != 0 {
		tb.Errorf("the last Bridge ended with %d: %s", code, r.c.Stderr())
	}
	r.nobodyLeft(ended)
	gone := slices.Clone(r.gone[:len(r.gone)-1]) // the last one was no kill
	r.checkStore()
	end := r.check(got)
	if s.Point == sweep {
		end += " " + r.sweepUnderStrike()
	}
	return Figures{Gone: gone, FirstWrite: []time.Duration{r.first}, Ends: []string{end}}
}

// takeOver starts the next Bridge. It may be killed in the middle of what it takes over;
// then the one after it finds a half-done recovery.
func (r *round) takeOver() {
	r.tb.Helper()
	if r.Recover > 0 {
		r.hold(crashpoint.StoreCommit, r.Recover-1)
		r.start()
		begin := time.Now()
		for r.held(crashpoint.StoreCommit) == 0 && time.Since(begin) < fewCommits { // it may have less to store
			if open, _ := r.open(); len(open) == 0 && time.Since(begin) > fewCommits/4 {
				break
			}
			<-time.After(5 * pause)
		}
		r.killBridge()
		r.letGo()
	}
	if r.Start == "" || !r.startOnABadDisk() {
		r.start()
	}
	r.dead = false
}

// fewCommits is how long a Bridge gets to come to the transaction in which it dies.
const fewCommits = 4 * time.Second

// sendUnderStrike delegates the task, strikes when the point is reached, and lets go.
func (r *round) sendUnderStrike(terminal string) reply {
	r.tb.Helper()
	if r.untouched() {
		ctx, cancel := context.WithTimeout(r.tb.Context(), callLimit)
		defer cancel()
		return send(ctx, r.c, terminal, r.text)
	}
	if r.Point == programRuns {
		r.host.SetMode(fakehost.Held)
		if err := os.WriteFile(r.host.Log+fakehost.HoldSuffix, nil, 0o600); err != nil {
			r.tb.Fatal(err)
		}
	} else {
		r.hold(r.Point, r.Skip)
	}
	ctx, cancel := context.WithTimeout(r.tb.Context(), callLimit+patience)
	defer cancel()
	replies := make(chan reply, 1)
	delegate := func() {
		go func(c *fakehost.Client) { replies <- send(ctx, c, terminal, r.text) }(r.c)
	}
	delegate()
	struck := r.awaitPoint(replies, delegate)
	undo := func() {}
	if struck {
		undo = r.strike()
	}
	r.release(struck)
	undo()
	if r.Again > 0 && !r.dead {
		<-time.After(r.Again)
		r.killBridge()
	}
	select {
	case got := <-replies:
		return got
	case <-time.After(callLimit):
		r.tb.Fatalf("a send was not answered within %v", callLimit)
		return reply{}
	}
}

// awaitPoint waits until a process is held; false: the task ended without coming there. A
// machine that is too busy refuses the send before anything is typed: then it is sent again.
func (r *round) awaitPoint(replies chan reply, again func()) bool {
	r.tb.Helper()
	reached, looks := false, 0
	var last reply
	r.wait("the point "+r.Point, func() bool {
		select {
		case got := <-replies:
			if last = got; got.busy() {
				again()
			} else {
				replies <- got // has room: it is the only one
			}
		default:
		}
		if r.Point == programRuns {
			reached = len(r.host.Deliveries()) > 0
		} else {
			reached = r.held(r.Point) != 0
		}
		looks++ // told opens the Store, which costs more than a look into a folder
		return reached || r.maybeNever() && looks%10 == 0 && r.told()
	}, func() string {
		open, _ := r.open()
		return fmt.Sprintf("the Host was told %+v; open: %v\n%s", last, open, r.c.Stderr())
	})
	return reached
}

// told reports that the Host has heard of the task and the Bridge has nothing left to do.
func (r *round) told() bool {
	if len(r.host.Deliveries()) == 0 {
		return false
	}
	open, _ := r.open()
	return len(open) == 0
}

// release ends the hold. A disk that was struck goes on failing.
func (r *round) release(struck bool) {
	r.tb.Helper()
	if r.Point != programRuns {
		keep := struck && r.Victim == Disk && (r.disk == nil || r.How != Full)
		r.letGo()
		if keep {
			r.failAt(crashpoint.StoreCommit, r.How)
		}
		return
	}
	r.host.SetMode(fakehost.Accept)
	if err := os.Remove(r.host.Log + fakehost.HoldSuffix); err != nil {
		r.tb.Fatal(err)
	}
}

func send(ctx context.Context, c *fakehost.Client, terminal, text string) reply {
	res, err := c.Call(ctx, "agent_knock_knock_send", map[string]any{"terminal_id": terminal, "request": text})
	if err != nil {
		return reply{lost: true}
	}
	if res.IsError {
		return reply{code: res.Code(), said: string(res.JSON)}
	}
	var got struct {
		TurnID string `json:"turn_id"`
	}
	if json.Unmarshal(res.JSON, &got) != nil || got.TurnID == "" {
		return reply{code: "unreadable: " + string(res.JSON)}
	}
	return reply{turn: got.TurnID}
}

// firstWrite sends another task to a free terminal: whatever died before, it must not wait
// for a lock of the dead.
func (r *round) firstWrite(spare *pane) {
	r.tb.Helper()
	start := time.Now()
	var got reply
	for got.turn == "" {
		terminal := r.ready(spare)
		ctx, cancel := context.WithTimeout(r.tb.Context(), callLimit)
		try := time.Now()
		got = send(ctx, r.c, terminal, "SAY:second "+r.answer)
		r.first = time.Since(try)
		cancel()
		// A machine that is too busy to start a monitor in time refuses before anything is
		// typed; a Host tries again then.
		if got.turn == "" && (!got.busy() || time.Since(start) > patience) {
			r.tb.Fatalf("the next task was not taken: %+v; %s", got, r.c.Stderr())
		}
	}
	r.wait("the callback of the next task", func() bool {
		for _, d := range r.host.Deliveries() {
			if d.Body == "second "+r.answer {
				return true
			}
		}
		return false
	}, func() string { return r.c.Stderr() })
}

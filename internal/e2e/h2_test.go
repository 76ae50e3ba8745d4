package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// The case asks for 50 rounds; without AKK_KILL_SENDS there are fewer. gapWithin is the
// random time between a request and the end of input, drain the limit within which every
// request is answered.
const (
	allRounds = 50
	fewRounds = 10
	gapWithin = 20 * time.Millisecond
	drain     = 15 * time.Second
)

// TestH2ASendIsAnsweredExactlyAsItIsStoredWheneverInputEnds closes the input at a random
// moment after a send, many times. The reply says success if and only if the Store holds the
// Turn and the agent got the text, once. (H2 e, M05, L16.)
func TestH2ASendIsAnsweredExactlyAsItIsStoredWheneverInputEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	rounds := fewRounds
	if os.Getenv(envKillSends) != "" {
		rounds = allRounds
	}
	var panes []*pane // a round each, then a Bridge ends what these began
	for _, kind := range []string{standin.Codex, standin.Claude, standin.Codex, standin.Claude, standin.Codex} {
		panes = append(panes, w.agent(kind))
	}
	terms := finish(t, w, panes)
	stored, refused := 0, 0
	for i := range rounds {
		p, term := panes[i%len(panes)], terms[i%len(panes)]
		text := fmt.Sprintf("SAY:round %d", i)
		b := fakehost.Spawn(t, w.bridge())
		fmt.Fprintf(b.Stdin, "%s"+`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"agent_knock_knock_send","arguments":{"terminal_id":%q,"request":%q}}}`+"\n",
			initialize, term, text)
		<-time.After(time.Duration(rand.Int64N(int64(gapWithin))))
		b.Stdin.Close()
		closed := time.Now()
		got := replies(t, readAll(t, b.Stdout))
		if code := b.WaitExit(settle); code != 0 {
			t.Fatalf("round %d: exit %d: %s", i, code, b.Stderr())
		}
		if d := time.Since(closed); d > drain {
			t.Errorf("round %d: the Bridge took %v to end", i, d)
		}
		for _, id := range []string{"0", "1", "2"} {
			if len(got[id]) == 0 {
				t.Errorf("round %d: request %s was not answered", i, id)
			}
		}
		var reply struct {
			IsError           bool `json:"isError"`
			StructuredContent sent `json:"structuredContent"`
		}
		if err := json.Unmarshal(got["2"], &reply); err != nil {
			t.Fatal(err)
		}
		typed := slices.Contains(p.Input(t).Pastes, text)
		tn, ok := turnOf(t, w, text)
		success := ok && tn.Stage != turn.Aborted
		switch {
		case reply.IsError != !success || success != typed:
			t.Errorf("round %d: reply %s, stored %v (%s/%s), typed %v", i, got["2"], ok, tn.Status, tn.Stage, typed)
		case success:
			stored++
		default:
			refused++ // the agent is still busy with the round before, say
		}
		if success && string(tn.ID) != reply.StructuredContent.TurnID {
			t.Errorf("round %d: told %s, stored %s", i, reply.StructuredContent.TurnID, tn.ID)
		}
		if (i+1)%len(panes) == 0 {
			finish(t, w, panes)
		}
	}
	t.Logf("%d sends stored and told, %d refused", stored, refused)
	if stored < rounds/2 {
		t.Errorf("only %d of %d sends came through; the rounds prove little", stored, rounds)
	}
	for _, p := range panes {
		if n := slices.Max(presses(p.Input(t).Raw)); n > 1 {
			t.Errorf("a text got %d Enters", n)
		}
	}
}

// finish lets a Bridge end what rounds began, so that the next ones find idle agents. It
// returns their terminals.
func finish(t *testing.T, w *world, panes []*pane) (terminals []string) {
	t.Helper()
	c := w.start()
	for _, p := range panes {
		terminals = append(terminals, readyPane(t, c, p))
	}
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	return terminals
}

// turnOf is the Turn of a request, read from the Store.
func turnOf(t *testing.T, w *world, request string) (found turn.Turn, ok bool) {
	t.Helper()
	db, err := store.Open(t.Context(), w.host.Store, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		rows, err := turnsql.List(tx, "", 1000)
		for _, r := range rows {
			if r.Turn.RequestHash == ids.TextHash(request) {
				found, ok = r.Turn, true
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found, ok
}

func TestH2ALastLineWithoutItsEndIsAnsweredOrIgnoredNeverHalfApplied(t *testing.T) { // H2 d
	t.Parallel()
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := readyPane(t, c, p)
	c.Close(settle)
	b := fakehost.Spawn(t, w.bridge())
	fmt.Fprintf(b.Stdin, "%s"+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"agent_knock_knock_send","arguments":{"terminal_id":%q,"request":"SAY:x"}}}`, initialize, term)
	b.Stdin.Close()
	got := replies(t, readAll(t, b.Stdout))
	b.WaitExit(settle)
	tn, ok := turnOf(t, w, "SAY:x")
	answered := strings.Contains(string(got["2"]), "async_pending")
	if answered != ok || (ok && tn.Stage != turn.Accepted) {
		t.Errorf("reply %s, stored %v %s", got["2"], ok, tn.Stage)
	}
	if answered {
		p.typedOnce("SAY:x")
	} else {
		p.untouched()
	}
}

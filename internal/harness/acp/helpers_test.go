package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everything is what a client can do.
var everything = acp.ClientCaps{ElicitForm: true, ElicitURL: true, BooleanOptions: true}

// rig is a Conn with a scripted agent at its other end, both inside one synctest bubble:
// the clock moves only when nobody has anything to do.
type rig struct {
	t    *testing.T
	conn *acp.Conn
	sid  string

	mu     sync.Mutex
	cond   *sync.Cond
	events []acp.Event
	sent   []string // lines to the agent
	on     func(acp.Event)
}

func (r *rig) Handle(e acp.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	on := r.on
	r.cond.Broadcast()
	r.mu.Unlock()
	if on != nil {
		on(e)
	}
}

// inBubble runs f with a rig whose agent has the flags.
func inBubble(t *testing.T, flags string, o acp.Options, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		toAgent, fromUs := io.Pipe()
		toUs, fromAgent := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			fakeacp.Run(strings.Fields(flags), os.Environ(), toAgent, fromAgent, io.Discard)
			_ = fromAgent.Close()
			_ = toAgent.Close()
		}()
		r := newRig(t)
		o.Tap = r.tap
		r.conn = acp.Open(t.Context(), toUs, fromUs, r, o)
		defer func() {
			r.conn.Close()
			<-ended
			r.checkLast()
		}()
		f(r)
	})
}

// hand is an agent that the test plays itself.
type hand struct {
	t   *testing.T
	in  *bufio.Reader
	out io.Writer
}

// byHand runs f with a rig whose session is s1.
func byHand(t *testing.T, f func(r *rig, agent *hand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		toAgent, fromUs := io.Pipe()
		toUs, fromAgent := io.Pipe()
		r := newRig(t)
		r.sid = "s1"
		r.conn = acp.Open(t.Context(), toUs, fromUs, r, acp.Options{})
		f(r, &hand{t: t, in: bufio.NewReader(toAgent), out: fromAgent})
		r.conn.Close()
		r.checkLast()
	})
}

func (h *hand) next() message {
	line, err := h.in.ReadBytes('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	return parse(line)
}

func (h *hand) say(line string) {
	if _, err := io.WriteString(h.out, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	r.cond = sync.NewCond(&r.mu)
	return r
}

func (r *rig) tap(fromAgent bool, line []byte) {
	if !fromAgent {
		r.mu.Lock()
		r.sent = append(r.sent, string(line))
		r.mu.Unlock()
	}
}

// checkLast: Closed comes exactly once, as the last event.
func (r *rig) checkLast() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, e := range r.events {
		if _, closed := e.(*acp.Closed); closed != (i == len(r.events)-1) {
			r.t.Errorf("event %d of %d is %T", i, len(r.events), e)
		}
	}
}

// open initializes and opens a session.
func (r *rig) open(caps acp.ClientCaps) {
	r.t.Helper()
	if _, err := r.conn.Initialize(r.t.Context(), acp.Info{Name: "test", Version: "0"}, caps); err != nil {
		r.t.Fatal(err)
	}
	s, err := r.conn.NewSession(r.t.Context(), acp.SessionParams{CWD: "/proj"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sid = s.ID
}

func (r *rig) prompt(label, text string) (acp.PromptResult, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	return r.conn.Prompt(ctx, r.sid, label, acp.Text(text))
}

func (r *rig) mustPrompt(label, text string) acp.PromptResult {
	r.t.Helper()
	res, err := r.prompt(label, text)
	if err != nil {
		r.t.Fatalf("prompt %q: %v", text, err)
	}
	return res
}

func (r *rig) start(label, text string) *acp.Turn {
	r.t.Helper()
	turn, err := r.conn.StartPrompt(r.sid, label, acp.Text(text))
	if err != nil {
		r.t.Fatal(err)
	}
	return turn
}

func (r *rig) wait(turn *acp.Turn) (acp.PromptResult, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	return turn.Wait(ctx)
}

// transcript is what belongs to a turn, by its label.
func (r *rig) transcript(label string) acp.Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	var t acp.Transcript
	for _, e := range r.events {
		if u, ok := e.(*acp.Update); ok && u.Turn == label {
			if err := t.Update(u); err != nil {
				r.t.Error(err)
			}
		}
	}
	return t.Summary()
}

// await waits until an event fits and returns it.
func await[E acp.Event](r *rig, nth int) E {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var found []E
		for _, e := range r.events {
			if hit, ok := e.(E); ok {
				found = append(found, hit)
			}
			if _, closed := e.(*acp.Closed); closed && len(found) <= nth {
				r.t.Fatalf("the connection ended with %d events of the kind, wanted number %d", len(found), nth)
			}
		}
		if len(found) > nth {
			return found[nth]
		}
		r.cond.Wait()
	}
}

func all[E acp.Event](r *rig) []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []E
	for _, e := range r.events {
		if hit, ok := e.(E); ok {
			found = append(found, hit)
		}
	}
	return found
}

// methods are the methods of the lines sent, "result" and "error" for answers.
func (r *rig) methods() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, line := range r.sent {
		var m struct {
			Method        string
			Result, Error json.RawMessage
		}
		_ = json.Unmarshal([]byte(line), &m)
		switch {
		case m.Method != "":
			names = append(names, m.Method)
		case m.Error != nil:
			names = append(names, "error")
		default:
			names = append(names, "result")
		}
	}
	return names
}

func (r *rig) countSent(method string) int {
	n := 0
	for _, m := range r.methods() {
		if m == method {
			n++
		}
	}
	return n
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func texts(s acp.Summary) []string {
	var all []string
	for _, m := range s.Messages {
		all = append(all, m.ID+"="+m.Text)
	}
	return all
}

func equalLists(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func sameJSON(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	var g, w any
	_ = json.Unmarshal(got, &g)
	_ = json.Unmarshal(want, &w)
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func last[E acp.Event](r *rig) E {
	found := all[E](r)
	if len(found) == 0 {
		var none E
		r.t.Fatalf("no %T came", none)
	}
	return found[len(found)-1]
}

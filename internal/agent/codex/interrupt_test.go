package codex

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var _ agent.Interrupter = (*Adapter)(nil)

// Only a running thread is asked to stop, and exactly one turn of it; what may have been
// written is never called "not sent".
func TestInterruptStopsOneTurnAndSaysWhetherItMayHaveArrived(t *testing.T) {
	answer := func(rpc *appserver.Error, drop bool) func(json.RawMessage) (any, *appserver.Error, bool) {
		return func(json.RawMessage) (any, *appserver.Error, bool) { return map[string]any{}, rpc, drop }
	}
	for _, tc := range []struct {
		name, status, turn string
		edit               func(*turn.Anchor)
		answer             func(json.RawMessage) (any, *appserver.Error, bool)
		want               fault.Code
		asked              int
	}{
		{name: "running", status: "active", turn: "T", answer: answer(nil, false), asked: 1},
		{name: "idle", status: "idle", turn: "T", want: agent.NotSubmitted},
		{name: "not loaded", status: "notLoaded", turn: "T", want: agent.NotSubmitted},
		{name: "no turn known", status: "active", want: agent.NotSubmitted},
		{name: "no server", status: "active", turn: "T", edit: func(a *turn.Anchor) { a.Extra[extraSocket] = filepath.Join(t.TempDir(), "none") }, want: agent.NotSubmitted},
		{name: "no socket known", status: "active", turn: "T", edit: func(a *turn.Anchor) { delete(a.Extra, extraSocket) }, want: agent.NotSubmitted},
		{name: "another turn runs", status: "active", turn: "T", answer: answer(&appserver.Error{Code: -32600, Message: "no such turn"}, false), want: agent.NotSubmitted, asked: 1},
		{name: "internal error", status: "active", turn: "T", answer: answer(&appserver.Error{Code: -32603}, false), want: CodeInputUncertain, asked: 1},
		{name: "hung up", status: "active", turn: "T", answer: answer(nil, true), want: CodeInputUncertain, asked: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, a, _, anc := served(t, tc.status)
			if tc.edit != nil {
				tc.edit(&anc)
			}
			var got string
			s.onInterrupt = func(p json.RawMessage) (any, *appserver.Error, bool) { got = string(p); return tc.answer(p) }
			err := a.Interrupt(context.Background(), agent.Ref{}, anc, tc.turn)
			if fault.CodeOf(err) != tc.want {
				t.Errorf("%v", err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			asked := len(slices.DeleteFunc(slices.Clone(s.calls), func(m string) bool { return m != "turn/interrupt" }))
			if asked != tc.asked || asked > 0 && got != `{"threadId":"`+testThread+`","turnId":"T"}` {
				t.Errorf("asked %d times: %s", asked, got)
			}
		})
	}
}

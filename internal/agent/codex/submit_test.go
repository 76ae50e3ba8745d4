package codex

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestSubmitStartsOneTurnWithOurID(t *testing.T) {
	s, a, _, anc := served(t, "systemError") // a failed turn before does not matter
	var got string
	s.onStart = func(p json.RawMessage) (any, *appserver.Error, bool) {
		got = string(p)
		return map[string]any{"turn": map[string]any{"id": "T"}}, nil, false
	}
	sub, err := a.Submit(context.Background(), agent.Ref{}, anc, "msg-1", " !do it \n")
	if err != nil || sub.NativeTurnID != "T" || sub.ThreadID != testThread {
		t.Fatal(sub, err)
	}
	if want := `{"clientUserMessageId":"msg-1","input":[{"text":"!do it","type":"text"}],"threadId":"` + testThread + `"}`; got != want {
		t.Error(got)
	}
}

// Nothing was written, or it was refused as invalid: proved. Written and unanswered:
// uncertain, never again.
func TestSubmitSaysWhetherTheRequestMayHaveArrived(t *testing.T) {
	refuse := func(code int) func(json.RawMessage) (any, *appserver.Error, bool) {
		return func(json.RawMessage) (any, *appserver.Error, bool) {
			return nil, &appserver.Error{Code: code, Message: "no"}, false
		}
	}
	for _, tc := range []struct {
		name, status string
		edit         func(*scripted, *turn.Anchor)
		start        func(json.RawMessage) (any, *appserver.Error, bool)
		want         fault.Code
		starts       int
	}{
		{name: "busy: turn/start would join the running turn", status: "active", want: agent.NotSubmitted},
		{name: "not loaded", status: "notLoaded", want: agent.NotSubmitted},
		{name: "a state that is not known", status: "dreaming", want: agent.NotSubmitted},
		{name: "unknown thread", status: "idle", edit: func(_ *scripted, a *turn.Anchor) { a.ThreadID = thread2 }, want: agent.NotSubmitted},
		{name: "no server", status: "idle", edit: func(_ *scripted, a *turn.Anchor) {
			a.Extra[extraSocket] = filepath.Join(t.TempDir(), "none")
		}, want: agent.NotSubmitted},
		{name: "no socket known", status: "idle", edit: func(_ *scripted, a *turn.Anchor) { delete(a.Extra, extraSocket) }, want: agent.NotSubmitted},
		{name: "unknown method", status: "idle", start: refuse(-32601), want: agent.NotSubmitted, starts: 1},
		{name: "internal error", status: "idle", start: refuse(-32603), want: CodeInputUncertain, starts: 1},
		{name: "hung up after the request", status: "idle", start: func(json.RawMessage) (any, *appserver.Error, bool) { return nil, nil, true }, want: CodeInputUncertain, starts: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, a, _, anc := served(t, tc.status)
			s.onStart = tc.start
			if tc.edit != nil {
				tc.edit(s, &anc)
			}
			_, err := a.Submit(context.Background(), agent.Ref{}, anc, "msg-1", "do it")
			if fault.CodeOf(err) != tc.want || s.seen("turn/start") != tc.starts {
				t.Errorf("%v after %d turn/start", err, s.seen("turn/start"))
			}
		})
	}
}

func TestAnswerGoesToExactlyTheRequestThatWasShown(t *testing.T) {
	s, a, _, anc := served(t, "active")
	ask := map[string]any{"threadId": testThread, "turnId": "T", "itemId": "c", "command": "date"}
	s.ask("0", "item/fileChange/requestApproval", ask)
	m := s.pending[0]
	ref := agent.Ref{}
	p := *requestPrompt(ref.Endpoint, m, known.ServerRequests[m.Method])
	if err := a.Answer(context.Background(), ref, anc, p, "acceptForSession"); fault.CodeOf(err) != fault.Invalid || len(s.answers) != 0 {
		t.Errorf("a lasting answer: %v", err)
	}
	if err := a.Answer(context.Background(), ref, anc, p, "accept"); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	got := strings.Join(s.answers, " ")
	s.mu.Unlock()
	if got != `{"decision":"accept"}` {
		t.Error(got)
	}
	ask["command"] = "rm -rf /" // the same id, another request
	s.ask("0", "item/fileChange/requestApproval", ask)
	if err := a.Answer(context.Background(), ref, anc, p, "accept"); fault.CodeOf(err) != fault.NotFound || len(s.answers) != 1 {
		t.Errorf("a changed request: %v", err)
	}
}

package codex

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestOfRequestsAtOneTimeTheFirstIsToldUntilItIsAnswered(t *testing.T) {
	p := func(id string) *turn.Prompt { return &turn.Prompt{RequestID: id} }
	var a asked
	if !a.open(p("1")) || a.open(p("2")) || a.open(p("3")) || a.open(p("2")) {
		t.Error("not exactly the first was told")
	}
	if told, next := a.resolve("2"); told || next != nil {
		t.Errorf("one that was not told: %v %v", told, next)
	}
	if told, next := a.resolve("other"); told || next != nil {
		t.Errorf("one that is not known: %v %v", told, next)
	}
	if told, next := a.resolve("1"); !told || next == nil || next.RequestID != "3" {
		t.Errorf("the told one: %v %+v", told, next)
	}
	if told, next := a.resolve("3"); !told || next != nil {
		t.Errorf("the last one: %v %+v", told, next)
	}
	if told, _ := a.resolve("before this connection"); !told {
		t.Error("a request from before this connection stays open")
	}
	for range 2 * maxAsked {
		a.open(p(string(rune('a' + len(a)))))
	}
	if len(a) > maxAsked {
		t.Errorf("%d are remembered", len(a))
	}
}

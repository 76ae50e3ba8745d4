package dispatch_test

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// While a terminal's thread is being changed nothing that types is offered there, and a
// send that comes all the same gets no key and is told which change keeps the terminal.
func TestATerminalWhoseThreadIsBeingChangedOffersNothingThatTypes(t *testing.T) {
	r := newRig(t)
	done := r.completed()
	if row := r.row(); row.Actions["send"].Tool == "" || row.Actions["respond"].Tool == "" {
		t.Fatalf("not at rest: %+v", row)
	}
	id := ids.NewTransition()
	r.update(func(tx *store.Tx) error {
		_, err := nativesql.Insert(tx, native.Prepare(native.Transition{ID: id, CallKey: string(id), Operation: native.NewThread,
			Endpoint: done.Endpoint, Process: done.Process}, tx.Now), "bridge-a")
		return err
	})
	row := r.row()
	if row.Actions["send"].Tool != "" || row.Actions["respond"].Tool != "" || !strings.Contains(row.Reason, string(id)) || row.Actions["status"].Tool == "" {
		t.Errorf("%+v", row)
	}
	if _, err := r.Send(t.Context(), dispatch.SendInput{CallID: "another", Request: "do it", TerminalID: r.terminal}); !fault.Is(err, native.CodeOpen) || !strings.Contains(err.Error(), string(id)) {
		t.Errorf("%v", err)
	}
	if _, err := r.respond("an answer", done, "the blue one"); !fault.Is(err, native.CodeOpen) || !strings.Contains(err.Error(), string(id)) {
		t.Errorf("%v", err)
	}
	r.typed("", 0)
}

package turntools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turntools"
)

// callbacks answers a retry with whatever a round draws.
type callbacks struct {
	do     outbox.Disposition
	status outbox.Status
}

func (c *callbacks) RetryDelivery(_ context.Context, s outbox.Source, id ids.DeliveryID) (outbox.Disposition, outbox.Delivery, error) {
	return c.do, outbox.Delivery{DeliveryID: id, Source: s, Status: c.status, Attempts: 2, LeaseExpiresAt: time.Unix(1, 0),
		Event: outbox.Event{ID: "msg-1", Kind: "completion", Body: []byte(canaryAnchor)}, LastError: "code"}, nil
}

// lifeCalls shows a Turn of a story by the tools of its life. The results of cancel and
// renew are read back by replaying the call that the record names.
func (w *world) lifeCalls(t *rapid.T, id ids.TurnID) {
	w.service.Callbacks = &callbacks{
		rapid.SampledFrom([]outbox.Disposition{outbox.DoNothing, outbox.DoSettle, outbox.DoRefuse, outbox.DoLeave, outbox.DoGiveUp, outbox.DoStop, outbox.DoRetry, outbox.DoWait}).Draw(t, "do"),
		rapid.SampledFrom([]outbox.Status{outbox.Pending, outbox.Delivering, outbox.Delivered, outbox.Failed, outbox.Unproved, outbox.Exhausted, outbox.Superseded}).Draw(t, "delivery"),
	}
	args := map[string]any{"turn_id": id}
	w.refusedWell(w.try("retry_callback", args))
	w.remember(id, "cancel", "$.cancel.call")
	if out := w.refusedWell(w.try("cancel", args)); out != nil {
		var got struct {
			Replayed   bool   `json:"replayed"`
			Outcome    string `json:"outcome"`
			Status     string `json:"turn_status"`
			StopProved bool   `json:"stop_proved"`
		}
		if err := json.Unmarshal(out, &got); err != nil || !got.Replayed || got.StopProved && got.Status != string(turn.Cancelled) ||
			(got.Outcome == "stopped") != (got.Status == string(turn.Cancelled) && got.StopProved) {
			t.Fatalf("%s %v", out, err)
		}
	}
	w.remember(id, "renew_call", "$.renew_call")
	w.refusedWell(w.try("renew", map[string]any{"turn_id": id, "minutes": 5}))
	w.refusedWell(w.try("close", map[string]any{"turn_id": id, "reason": "password=hunter2hunter2"}))
}

// remember writes the id of the next call into a record that has one.
func (w *world) remember(id ids.TurnID, has, path string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE turn SET state = json_set(state, ?, ?) WHERE turn_id = ? AND json_extract(state, ?) IS NOT NULL", path, w.nextCall(), id, "$."+has)
		return err
	})
}

// refusedWell fails unless a call succeeded, or was refused with a code, one line and a next
// step. It returns the result of one that succeeded.
func (w *world) refusedWell(out tooltest.Outcome) json.RawMessage {
	w.t.Helper()
	if !out.IsError {
		return out.Structured
	}
	var e struct {
		Error struct{ Code, Message, Hint string } `json:"error"`
	}
	if err := json.Unmarshal(out.Structured, &e); err != nil || e.Error.Code == "" || e.Error.Code == "internal" || e.Error.Hint == "" ||
		strings.Contains(e.Error.Message, "\n") {
		w.t.Fatalf("%s %v", out.Structured, err)
	}
	return nil
}

// A model may drop what a schema says with combinations, so it is refused at run time too,
// and nothing that is not in the schema is taken at all.
func TestBadArgumentsOfTheToolsOfATurnsLifeAreRefusedBeforeAnythingRuns(t *testing.T) { // spec cases 17, part 2.0
	w := newWorld(t)
	turnID, term := "turn-20260102T030405-01234567", string(w.term.ID)
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"cancel", map[string]any{}},
		{"cancel", map[string]any{"turn_id": turnID, "key": "C-c"}},
		{"cancel", map[string]any{"turn_id": "latest"}},
		{"cancel", map[string]any{"terminal_id": term}},
		{"renew", map[string]any{"minutes": 5}},
		{"renew", map[string]any{"turn_id": turnID, "minutes": 0}},
		{"renew", map[string]any{"turn_id": turnID, "minutes": -5}},
		{"renew", map[string]any{"turn_id": turnID, "minutes": "5"}},
		{"renew", map[string]any{"turn_id": turnID, "minutes": 1e9}},
		{"retry_callback", map[string]any{}},
		{"retry_callback", map[string]any{"turn_id": turnID, "watch_id": "terminal-watch-00000000-0000-4000-8000-000000000000"}},
		{"retry_callback", map[string]any{"turn_id": turnID, "delivery_id": "x"}},
		{"close", map[string]any{}},
		{"close", map[string]any{"turn_id": turnID, "terminal_id": term}},
		{"close", map[string]any{"terminal_id": term}},
		{"close", map[string]any{"turn_id": turnID, "expected_transition_id": "transition-0123456789abcdef"}},
		{"close", map[string]any{"turn_id": turnID, "token": "x"}},
		{"list", map[string]any{"status": "gone"}},
		{"list", map[string]any{"limit": 0}},
		{"list", map[string]any{"store_dir": "/"}},
		{"status", map[string]any{}},
		{"status", map[string]any{"turn_id": turnID, "terminal_id": term}},
		{"status", map[string]any{"terminal_id": term, "watch_id": "terminal-watch-00000000-0000-4000-8000-000000000000"}},
	} {
		params, err := json.Marshal(map[string]any{"name": "agent_knock_knock_" + c.tool, "arguments": c.args})
		if err != nil {
			t.Fatal(err)
		}
		w.calls++
		w.host.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 1000+w.calls, params))
		if r := w.host.Reply(); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s %v: %s", c.tool, c.args, r.Result)
		}
	}
}

// Annotations tell the truth: what may end, discard or repeat something says so.
func TestTheToolsSayWhatTheyMayDo(t *testing.T) {
	w := newWorld(t)
	r := toolkit.New()
	turntools.Register(r, w.service)
	for _, tool := range r.Tools() {
		a := tool.Annotations()
		name := strings.TrimPrefix(tool.Name, "agent_knock_knock_")
		switch name {
		case "list", "status":
			if !a.ReadOnly || a.Destructive {
				t.Errorf("%s: %+v", name, a)
			}
		case "cancel", "close":
			if a.ReadOnly || !a.Destructive || a.Idempotent != (name == "close") {
				t.Errorf("%s: %+v", name, a)
			}
		default:
			if a.ReadOnly {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

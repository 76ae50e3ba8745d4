package tooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// notes is a table with one tool that changes something and one that reads.
func notes(*testing.T) *toolkit.Registry {
	r := toolkit.New()
	var kept []string
	toolkit.Register(r, toolkit.Spec{
		Name: "write", Title: "Write", Description: "Keeps a note.", Effect: toolkit.Mutating,
		Input:  json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1}},"required":["text"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"call":{"type":"string"},"notes":{"type":"integer"}},"required":["call","notes"],"additionalProperties":false}`),
	}, func(_ context.Context, call toolkit.Call, in struct {
		Text string `json:"text"`
	}) (any, error) {
		kept = append(kept, in.Text)
		return map[string]any{"call": call.ID, "notes": len(kept)}, nil
	})
	toolkit.Register(r, toolkit.Spec{
		Name: "read", Title: "Read", Description: "Shows a note.", Effect: toolkit.ReadOnly,
		Input: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"],"additionalProperties":false}`),
	}, func(_ context.Context, _ toolkit.Call, in struct {
		Number int `json:"number"`
	}) (any, error) {
		if in.Number < 1 || in.Number > len(kept) {
			return nil, fault.New(fault.NotFound, "notes.read", "there is no note %d", in.Number).WithHint("there are %d", len(kept))
		}
		return map[string]string{"text": kept[in.Number-1]}, nil
	})
	return r
}

func TestTranscriptsMatch(t *testing.T) {
	tooltest.Run(t, "testdata", notes, tooltest.Options{})
}

func TestCallSeparatesAFailedCallFromARefusedOne(t *testing.T) {
	h := tooltest.Start(t, notes(t))
	h.Initialize()
	out, err := h.Call("read", map[string]int{"number": 3})
	if err != nil || !out.IsError || out.Content[0].Text != "there is no note 3 (there are 0)" {
		t.Errorf("a failed call gave %+v, %v", out, err)
	}
	var rpc *tooltest.ReplyError
	if _, err := h.Call("read", nil); !errors.As(err, &rpc) || rpc.Code != -32602 {
		t.Errorf("a refused call gave %v", err)
	}
	if rest, err := h.Close(); err != nil || len(rest) != 0 {
		t.Errorf("the session ended with %v, %q", err, rest)
	}
}

package toolkit_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func TestATrustedTableReadsASchemaAtItsFirstUseOnly(t *testing.T) {
	r := toolkit.New()
	r.TrustDeclarations()
	wrong := json.RawMessage(`{"type":"object","properties":{}}`) // open
	ran := false
	toolkit.Register(r, toolkit.Spec{Name: "wrong", Description: "d", Effect: toolkit.ReadOnly, Input: wrong},
		func(context.Context, toolkit.Call, none) (any, error) { ran = true; return nil, nil })
	toolkit.Register(r, toolkit.Spec{Name: "good", Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject)}, nothing)
	if r.Verify() == nil {
		t.Error("Verify does not find the open schema")
	}
	if tools := r.Tools(); len(tools) != 2 || string(tools[0].PublishedInput) != `{"type":"object"}` || string(tools[1].PublishedInput) != emptyObject {
		t.Errorf("%+v", tools)
	}
	s := r.Open("bridge-1", slog.New(slog.DiscardHandler))
	got, err := s.Arrive(toolkit.Arrival{Tool: "wrong", ID: json.RawMessage("1")}).Run(t.Context(), nil)
	if err != nil || !got.IsError || !strings.Contains(string(got.Structured), `"internal"`) || ran {
		t.Errorf("ran: %v, %+v, %v", ran, got, err)
	}
}

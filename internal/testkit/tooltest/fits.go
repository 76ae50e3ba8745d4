package tooltest

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

// Fits fails the test unless the tool's published schemas take the arguments, which decode
// as an In, and describe the result out.
func Fits[In any](t *testing.T, tool, args string, out any) {
	t.Helper()
	r := toolkit.New()
	r.CheckOutput()
	toolkit.Register(r, toolkit.Spec{Name: tool, Description: "x", Input: schemas.ToolInput(tool), Output: schemas.ToolOutput(tool), Effect: toolkit.Mutating},
		func(context.Context, toolkit.Call, In) (any, error) { return out, nil })
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	session := r.Open(Instance, slog.New(slog.DiscardHandler))
	got, err := session.Arrive(toolkit.Arrival{ID: json.RawMessage(`1`), Tool: tool}).Run(t.Context(), json.RawMessage(args))
	if err != nil || got.IsError {
		t.Errorf("%+v %v", got.Text, err)
	}
}

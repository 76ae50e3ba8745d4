package toolkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func ExampleRegister() {
	type input struct {
		Name  string `json:"name"`
		Times int64  `json:"times"`
	}
	r := toolkit.New()
	toolkit.Register(r, toolkit.Spec{
		Name:        "greet",
		Title:       "Greet",
		Description: "Greets somebody.",
		Effect:      toolkit.Mutating,
		Input: json.RawMessage(`{
			"type": "object",
			"properties": {
				"name":  {"type": "string", "minLength": 1},
				"times": {"type": "integer", "minimum": 1}
			},
			"required": ["name"],
			"additionalProperties": false
		}`),
	}, func(ctx context.Context, call toolkit.Call, in input) (any, error) {
		if in.Name == "nobody" {
			return nil, fault.New(fault.NotFound, "greet", "there is no %s", in.Name).WithHint("name somebody")
		}
		// Here the greeting would be stored under call.ID, which makes a repetition of
		// the same request harmless. From now on later calls may start:
		toolkit.Committed(ctx)
		return map[string]any{"greeted": in.Name, "times": in.Times}, nil
	})

	// The transport does this for every tools/call.
	session := r.Open("bridge-1", slog.New(slog.DiscardHandler))
	for _, args := range []string{`{"name":"Ada","times":9007199254740993}`, `{"name":"nobody"}`, `{"nam":"Ada"}`, `{"name":""}`} {
		ticket := session.Arrive(toolkit.Arrival{ID: json.RawMessage(`7`), Tool: "greet"})
		result, err := ticket.Run(context.Background(), json.RawMessage(args))
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println(result.IsError, result.Text)
	}
	// Output:
	// false {"greeted":"Ada","times":9007199254740993}
	// true there is no nobody (name somebody)
	// refused: toolkit.call: greet: unknown argument nam; it takes name, times
	// refused: toolkit.call: greet: argument name must be of type string and must have at least 1 characters
}

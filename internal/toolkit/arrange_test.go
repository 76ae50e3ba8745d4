package toolkit

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
)

func TestToolsAreArrangedByTheTableAndNoToolIsWithoutAPlace(t *testing.T) {
	r := New()
	for _, name := range []string{"c", "a", "b"} {
		Register(r, Spec{Name: name, Description: "d", Effect: ReadOnly, Input: json.RawMessage(`{"type":"object","additionalProperties":false}`)},
			func(context.Context, Call, struct{}) (any, error) { return nil, nil })
	}
	if err := r.Arrange([]string{"a", "x", "b", "c"}); err != nil || !slices.Equal(r.Names(), []string{"a", "b", "c"}) {
		t.Errorf("%v %v", r.Names(), err)
	}
	for _, wrong := range [][]string{{"a", "b"}, {"a", "b", "c", "a"}} {
		if r.Arrange(wrong) == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

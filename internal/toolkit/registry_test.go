package toolkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

type none struct{}

const emptyObject = `{"type":"object","properties":{},"additionalProperties":false}`

func nothing(context.Context, toolkit.Call, none) (any, error) { return nil, nil }

func TestAWrongDeclarationIsRefusedAtRegistration(t *testing.T) {
	good := toolkit.Spec{Name: "ok", Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject)}
	cases := map[string]func(s *toolkit.Spec){
		"no effect":        func(s *toolkit.Spec) { s.Effect = 0 },
		"unknown effect":   func(s *toolkit.Spec) { s.Effect = 9 },
		"bad name":         func(s *toolkit.Spec) { s.Name = "Bad Name" },
		"taken name":       func(s *toolkit.Spec) { s.Name = "taken" },
		"no description":   func(s *toolkit.Spec) { s.Description = "" },
		"no input":         func(s *toolkit.Spec) { s.Input = nil },
		"input not object": func(s *toolkit.Spec) { s.Input = json.RawMessage(`{"type":"string"}`) },
		"open input":       func(s *toolkit.Spec) { s.Input = json.RawMessage(`{"type":"object","properties":{}}`) },
		"open nested input": func(s *toolkit.Spec) {
			s.Output = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object","properties":{}}}}`)
		},
		"open items": func(s *toolkit.Spec) {
			s.Output = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","items":{"type":"object","properties":{}}}}}`)
		},
		"property unknown to the type": func(s *toolkit.Spec) {
			s.Input = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)
		},
		"required is no property": func(s *toolkit.Spec) {
			s.Input = json.RawMessage(`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`)
		},
		"open output": func(s *toolkit.Spec) { s.Output = json.RawMessage(`{"type":"object"}`) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			r := toolkit.New()
			taken := good
			taken.Name = "taken"
			toolkit.Register(r, taken, nothing)
			s := good
			spoil(&s)
			defer func() {
				if p := recover(); p == nil {
					t.Error("was accepted")
				} else if !strings.HasPrefix(fmt.Sprint(p), "toolkit: tool ") {
					t.Errorf("panicked with %v", p)
				}
			}()
			toolkit.Register(r, s, nothing)
		})
	}
}

func TestAFieldThatTheSchemaDoesNotNameIsRefusedAtRegistration(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("was accepted")
		}
	}()
	toolkit.Register(toolkit.New(), toolkit.Spec{Name: "ok", Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject)},
		func(context.Context, toolkit.Call, struct {
			Extra string `json:"extra"`
		}) (any, error) {
			return nil, nil
		})
}

func TestVerifyFindsASchemaThatDoesNotResolve(t *testing.T) {
	for _, bad := range []string{
		`{"type":"object","properties":{"a":{"type":"string","pattern":"("}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/nope"}},"additionalProperties":false}`,
	} {
		r := toolkit.New()
		toolkit.Register(r, toolkit.Spec{Name: "ok", Description: "d", Effect: toolkit.ReadOnly,
			Input: json.RawMessage(emptyObject), Output: json.RawMessage(bad)}, nothing)
		if err := r.Verify(); err == nil {
			t.Errorf("Verify accepted %s", bad)
		}
	}
}

func TestReferencesOfAnOutputSchemaStillResolveWhenItIsPublished(t *testing.T) {
	r := toolkit.New()
	toolkit.Register(r, toolkit.Spec{Name: "ok", Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject),
		Output: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`)}, nothing)
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

func TestAnnotationsFollowFromTheEffect(t *testing.T) {
	for _, tc := range []struct {
		spec toolkit.Spec
		want toolkit.Annotations
	}{
		{toolkit.Spec{Effect: toolkit.ReadOnly}, toolkit.Annotations{ReadOnly: true, Idempotent: true}},
		{toolkit.Spec{Effect: toolkit.ReadOnly, OpenWorld: true}, toolkit.Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true}},
		{toolkit.Spec{Effect: toolkit.Mutating}, toolkit.Annotations{}},
		{toolkit.Spec{Effect: toolkit.Mutating, Idempotent: true}, toolkit.Annotations{Idempotent: true}},
		{toolkit.Spec{Effect: toolkit.Destructive, OpenWorld: true}, toolkit.Annotations{Destructive: true, OpenWorld: true}},
	} {
		if got := tc.spec.Annotations(); got != tc.want {
			t.Errorf("%+v gives %+v, want %+v", tc.spec, got, tc.want)
		}
	}
}

func TestToolsKeepTheOrderOfRegistration(t *testing.T) {
	r := toolkit.New()
	names := []string{"zebra", "ant", "mole", "bee"}
	for _, n := range names {
		toolkit.Register(r, toolkit.Spec{Name: n, Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject)}, nothing)
	}
	for i, tool := range r.Tools() {
		if tool.Name != names[i] {
			t.Errorf("place %d has %s, want %s", i, tool.Name, names[i])
		}
	}
}

func TestCombinationsAreCheckedAndNotPublished(t *testing.T) {
	r := toolkit.New()
	s := targetSpec
	s.Name, s.Description, s.Effect = "tool", "d", toolkit.ReadOnly
	toolkit.Register(r, s, func(context.Context, toolkit.Call, target) (any, error) { return nil, nil })
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	published := string(r.Tools()[0].PublishedInput)
	if strings.Contains(published, "oneOf") || !strings.HasPrefix(published, `{"type":"object","properties":{"terminal":{"type":"string"`) ||
		!strings.HasSuffix(published, `"additionalProperties":false}`) {
		t.Errorf("published as %s", published)
	}
	if _, err := call(t.Context(), r.Open("b", quiet), "tool", `{"session":"a","terminal":"terminal:1"}`); err == nil {
		t.Error("both targets were accepted")
	}
}

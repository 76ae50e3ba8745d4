package toolkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

var quiet = slog.New(slog.DiscardHandler)

// one returns a session over a table with one tool.
func one[In any](t *testing.T, s toolkit.Spec, log *slog.Logger, h func(context.Context, toolkit.Call, In) (any, error)) *toolkit.Session {
	t.Helper()
	r := toolkit.New()
	s.Name, s.Description = "tool", "d"
	if s.Effect == 0 {
		s.Effect = toolkit.ReadOnly
	}
	toolkit.Register(r, s, h)
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	r.CheckOutput()
	return r.Open("bridge-1", log)
}

func call(ctx context.Context, s *toolkit.Session, tool, args string) (toolkit.Result, error) {
	return s.Arrive(toolkit.Arrival{ID: json.RawMessage(`1`), Tool: tool}).Run(ctx, json.RawMessage(args))
}

type target struct {
	Terminal string   `json:"terminal"`
	Session  string   `json:"session"`
	Agent    string   `json:"agent"`
	Minutes  *float64 `json:"minutes"`
	Tags     []string `json:"tags"`
}

var targetSpec = toolkit.Spec{Input: json.RawMessage(`{
	"type":"object",
	"properties":{
		"terminal":{"type":"string","pattern":"^terminal:"},
		"session":{"type":"string","minLength":1,"maxLength":20},
		"agent":{"enum":["codex","claude"]},
		"minutes":{"type":"number","exclusiveMinimum":0},
		"tags":{"type":"array","items":{"type":"string"},"maxItems":2}
	},
	"oneOf":[{"required":["terminal"]},{"required":["session"]}],
	"additionalProperties":false}`)}

func TestBadArgumentsAreRefusedBeforeAnythingRuns(t *testing.T) { // spec case 17
	ran := false
	s := one(t, targetSpec, quiet, func(context.Context, toolkit.Call, target) (any, error) {
		ran = true
		return nil, nil
	})
	for args, want := range map[string]string{
		`{"terminal":"terminal:1","session":"a"}`: "the arguments do not go together: exactly one of (terminal), (session) must hold",
		`{}`:                                         "the arguments do not go together: exactly one of (terminal), (session) must hold",
		``:                                           "the arguments do not go together: exactly one of (terminal), (session) must hold",
		`{"session":"a","Session":"b"}`:              "unknown argument Session; it takes agent, minutes, session, tags, terminal",
		`{"session":"a","session":"a"}`:              "arguments $.session: is given twice",
		`{"session":7}`:                              "arguments $.session: must be a string, not a number",
		`{"session":null}`:                           "arguments $.session: must not be null",
		`{"session":""}`:                             "argument session must be of type string and must have at least 1 characters and must have at most 20 characters",
		`{"terminal":"x"}`:                           "argument terminal must be of type string and must match ^terminal:",
		`{"session":"a","agent":"vi"}`:               `argument agent must be one of "codex", "claude"`,
		`{"session":"a","minutes":0}`:                "argument minutes must be of type number and must be above 0",
		`{"session":"a","minutes":"5"}`:              "arguments $.minutes: must be a number, not a string",
		`{"session":"a","minutes":1e999}`:            "arguments $.minutes: must be a number in range",
		`{"session":"a","tags":["a","b","c"]}`:       "argument tags must be of type array and must have at most 2 items",
		`{"session":"a","tags":["a",{"b":1,"b":2}]}`: "arguments $.tags[1].b: is given twice",
		`[]`:                                     "arguments must be a JSON object",
		`"x"`:                                    "arguments must be a JSON object",
		`{"session":"\ud800"}`:                   "arguments $.session: has a lone surrogate escape",
		`{"` + strings.Repeat("k", 200) + `":1}`: "unknown argument " + strings.Repeat("k", 77) + "...; it takes agent, minutes, session, tags, terminal",
		`{"session":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`: "arguments $.session" + strings.Repeat("[0]", 31) + ": is nested deeper than 32 levels",
	} {
		_, err := call(t.Context(), s, "tool", args)
		if !fault.Is(err, toolkit.BadCall) {
			t.Errorf("%.60s was not refused: %v", args, err)
			continue
		}
		if _, msg, _ := fault.Public(err); msg != "tool: "+want || strings.Contains(msg, "\n") {
			t.Errorf("%.60s\n got %s\nwant tool: %s", args, msg, want)
		}
	}
	if _, err := call(t.Context(), s, "other", "{}"); !fault.Is(err, toolkit.BadCall) {
		t.Errorf("an unknown tool: %v", err)
	}
	if ran {
		t.Error("the handler ran")
	}
	if r, err := call(t.Context(), s, "tool", `{"session":"a","minutes":0.5,"tags":[]}`); err != nil || r.IsError || !ran {
		t.Errorf("a good call: %+v, %v", r, err)
	}
}

func TestRefusalsAreSafeForConcurrentUse(t *testing.T) {
	s := one(t, targetSpec, quiet, func(context.Context, toolkit.Call, target) (any, error) { return nil, nil })
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := call(t.Context(), s, "tool", `{"terminal":"x"}`); !fault.Is(err, toolkit.BadCall) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
}

func TestAFailureHasOneShape(t *testing.T) { // spec case 18
	long := strings.Repeat("é", 2000)
	for name, tc := range map[string]struct {
		err  error
		want string // structuredContent
	}{
		"a fault":         {fault.New(fault.Conflict, "op", "it is taken").WithHint("use another"), `{"error":{"code":"conflict","message":"it is taken","hint":"use another"}}`},
		"a wrapped fault": {fmt.Errorf("outer: %w", fault.Wrap(errors.New("disk sector 7"), fault.Invalid, "op", "it is bad")), `{"error":{"code":"invalid","message":"it is bad"}}`},
		"no fault":        {errors.New("password=hunter2"), `{"error":{"code":"internal","message":"internal error","hint":"see the Bridge's log on stderr"}}`},
		"a secret":        {fault.New(fault.Invalid, "op", "refused --token sk-1234567890abcdef\nnext"), `{"error":{"code":"invalid","message":"refused --token [redacted] next"}}`},
		"advice":          {toolkit.WithRetry(fault.New(fault.Timeout, "op", "late"), toolkit.RetryNever), `{"error":{"code":"timeout","message":"late","retry":"never"}}`},
		"control":         {fault.New(fault.Invalid, "op", "a\x1b[31mb\x00c"), `{"error":{"code":"invalid","message":"a[31mbc"}}`},
		"a long text":     {fault.New(fault.Invalid, "op", "%s", long), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(t, toolkit.Spec{Input: json.RawMessage(emptyObject), Output: json.RawMessage(emptyObject)}, quiet,
				func(context.Context, toolkit.Call, none) (any, error) { return nil, tc.err })
			r, err := call(t.Context(), s, "tool", "{}")
			if err != nil || !r.IsError {
				t.Fatalf("got %+v, %v", r, err)
			}
			if tc.want != "" && string(r.Structured) != tc.want {
				t.Errorf("got  %s\nwant %s", r.Structured, tc.want)
			}
			if len(r.Text) > toolkit.MaxText || strings.ContainsAny(r.Text, "\n\x1b\x00") || r.Text == "" {
				t.Errorf("text of %d bytes: %q", len(r.Text), r.Text)
			}
			if len(tc.err.Error()) > toolkit.MaxText && !strings.HasSuffix(r.Text, "...") {
				t.Errorf("a cut text does not end with ...: %q", r.Text[len(r.Text)-10:])
			}
		})
	}
}

func TestAFailureMatchesThePublishedOutputSchema(t *testing.T) {
	r := toolkit.New()
	toolkit.Register(r, toolkit.Spec{Name: "tool", Description: "d", Effect: toolkit.ReadOnly, Input: json.RawMessage(emptyObject),
		Output: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)},
		func(context.Context, toolkit.Call, none) (any, error) {
			return nil, toolkit.WithRetry(fault.New(fault.Invalid, "op", "no").WithHint("yes"), toolkit.RetrySafe)
		})
	res, err := call(t.Context(), r.Open("bridge-1", quiet), "tool", "{}")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(r.Tools()[0].PublishedOutput, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for doc, ok := range map[string]bool{string(res.Structured): true, `{"a":"x"}`: true, `{}`: false, `{"a":"x","error":{}}`: false} {
		var v any
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestAPanicIsAFailureWithItsStackOnlyInTheLog(t *testing.T) {
	var log bytes.Buffer
	s := one(t, toolkit.Spec{Effect: toolkit.Mutating, Input: json.RawMessage(emptyObject)}, slog.New(slog.NewTextHandler(&log, nil)),
		func(context.Context, toolkit.Call, none) (any, error) { panic("the secret cause") })
	r, err := call(t.Context(), s, "tool", "{}")
	if err != nil || !r.IsError || strings.Contains(string(r.Structured), "secret") || !strings.Contains(string(r.Structured), `"code":"internal"`) {
		t.Errorf("got %+v, %v", r, err)
	}
	if !strings.Contains(log.String(), "the secret cause") || !strings.Contains(log.String(), "call_test.go") {
		t.Errorf("the log lacks the cause or the stack: %s", log.String())
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAResultThatCannotBeShownIsAFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		value  any
		effect toolkit.Effect
		want   string
	}{
		"too large, read":       {map[string]string{"a": strings.Repeat("x", toolkit.MaxResult)}, toolkit.ReadOnly, `"retry":"safe"`},
		"too large, changed":    {map[string]string{"a": strings.Repeat("x", toolkit.MaxResult)}, toolkit.Mutating, `"retry":"never"`},
		"not an object":         {[]int{1}, toolkit.ReadOnly, `"code":"internal"`},
		"not JSON":              {map[string]any{"a": func() {}}, toolkit.ReadOnly, `"code":"internal"`},
		"not the output":        {map[string]int{"b": 1}, toolkit.ReadOnly, `"code":"internal"`},
		"not the output's type": {map[string]int{"a": 1}, toolkit.ReadOnly, `"code":"internal"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(t, toolkit.Spec{Effect: tc.effect, Input: json.RawMessage(emptyObject),
				Output: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)}, quiet,
				func(context.Context, toolkit.Call, none) (any, error) { return tc.value, nil })
			r, err := call(t.Context(), s, "tool", "{}")
			if err != nil || !r.IsError || !strings.Contains(string(r.Structured), tc.want) {
				t.Errorf("got %.300s, %v", r.Structured, err)
			}
		})
	}
}

package harnessserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// maxBody bounds a request and a response.
const maxBody = 16 << 20

// operation is one path of the API. call gets a whole, checked JSON object.
type operation struct {
	public bool // answers without the token
	call   func(ctx context.Context, body []byte) (any, error)
}

// limits of a request's document.
var limits = strictjson.Limits{MaxBytes: maxBody, MaxDepth: 64}

// takes makes an operation of a function with a closed type of parameters. A key that the
// type does not name is refused by a code of its own before anything else is looked at.
func takes[In any](fn func(ctx context.Context, in In) (any, error)) operation {
	keys := keysOf(reflect.TypeFor[In]())
	return operation{call: func(ctx context.Context, body []byte) (any, error) {
		var in In
		if err := decode(body, keys, &in, limits); err != nil {
			return nil, err
		}
		return fn(ctx, in)
	}}
}

func decode(body []byte, keys []string, in any, lim strictjson.Limits) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil || top == nil {
		return harness.Fail(err, harness.InvalidJSON, "the body must be one JSON object")
	}
	for _, key := range sorted(top) {
		if !slices.Contains(keys, key) {
			return harness.UnknownKey(key)
		}
	}
	err := strictjson.Decode(body, in, lim)
	if fault.Is(err, fault.Invalid) {
		_, msg, hint := fault.Public(err)
		e := harness.Fail(err, harness.InvalidParam, "%s", msg)
		if hint != "" {
			e = e.Advise("%s", hint)
		}
		return e
	}
	return err
}

func sorted(m map[string]json.RawMessage) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// keysOf lists the JSON names of a struct, embedded ones too.
func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, keysOf(f.Type)...)
		case name != "" && name != "-":
			out = append(out, name)
		}
	}
	return out
}

// readBody reads at most the limit. An empty body is an empty object.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, harness.Refuse(harness.RequestTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return nil, harness.Fail(err, harness.InvalidJSON, "the body was not received whole")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	return body, nil
}

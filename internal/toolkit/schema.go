package toolkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema is a declared schema. Register reads its structure; the validator is built at
// the first use, because building all of them is most of the cost of a start.
type schema struct {
	names    []string // the properties, sorted
	required []string // as declared
	resolve  func() (*jsonschema.Resolved, error)
}

// declare parses a schema and requires it to be an object, closed unless open is set.
func declare(raw json.RawMessage, open bool) (*schema, error) {
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("is not a JSON object: %w", err)
	}
	if tree["type"] != "object" {
		return nil, fmt.Errorf(`must have type "object"`)
	}
	if err := closed(tree, "$"); err != nil && !open {
		return nil, err
	}
	properties, _ := tree["properties"].(map[string]any)
	s := &schema{names: slices.Sorted(maps.Keys(properties))}
	required, _ := tree["required"].([]any)
	for _, name := range required {
		text, ok := name.(string)
		if !ok || properties[text] == nil {
			return nil, fmt.Errorf("requires %v, which is not a property", name)
		}
		s.required = append(s.required, text)
	}
	s.resolve = sync.OnceValues(func() (*jsonschema.Resolved, error) { return resolve(raw) })
	return s, nil
}

func resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// closed requires additionalProperties:false beside every list of properties of an
// object schema. Branches of oneOf, anyOf, allOf, not and if are conditions on an object
// that is closed elsewhere, so they are not asked.
func closed(node map[string]any, path string) error {
	if node["type"] == "object" {
		_, lists := node["properties"]
		if extra, ok := node["additionalProperties"]; (lists || path == "$") && (!ok || extra != false) {
			return fmt.Errorf("%s must have additionalProperties: false", path)
		}
	}
	for _, group := range []string{"properties", "$defs"} {
		children, _ := node[group].(map[string]any)
		for name, child := range children {
			if sub, ok := child.(map[string]any); ok {
				if err := closed(sub, path+"."+name); err != nil {
					return err
				}
			}
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		return closed(items, path+"[]")
	}
	return nil
}

// fits reports whether a struct type has exactly the schema's properties as JSON fields.
// Other types are not looked into.
func (s *schema) fits(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var fields []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, name)
	}
	slices.Sort(fields)
	if !slices.Equal(fields, s.names) {
		return fmt.Errorf("has the properties %q, the Go type the fields %q", s.names, fields)
	}
	return nil
}

// failureSchema describes structuredContent of a failed call.
const failureSchema = `{"type":"object","properties":{"error":{"type":"object","properties":{` +
	`"code":{"type":"string"},"message":{"type":"string"},"hint":{"type":"string"},` +
	`"retry":{"type":"string","enum":["safe","check_first","never"]}},` +
	`"required":["code","message"],"additionalProperties":false}},` +
	`"required":["error"],"additionalProperties":false}`

// withFailure returns a schema for success or failure. Clients exist that check
// structuredContent of a failed call against the published schema as well. $defs move to
// the root, where their references look for them.
func withFailure(success json.RawMessage, failure string, open bool) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(success, &members); err != nil {
		return nil, err
	}
	defs := members["$defs"]
	delete(members, "$defs")
	delete(members, "$schema")
	body, err := json.Marshal(members) // sorts keys: the same bytes every time
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	either := "oneOf"
	if open { // an open success may describe a failure too
		either = "anyOf"
	}
	b.WriteString(`{"type":"object",` + quote(either) + `:[`)
	b.Write(body)
	b.WriteString("," + failure + "]")
	if defs != nil {
		b.WriteString(`,"$defs":`)
		b.Write(defs)
	}
	b.WriteString("}")
	var out bytes.Buffer
	if err := json.Compact(&out, b.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// withoutCombinations returns the schema without oneOf, anyOf and allOf at its top level.
// Everything else stays as it was written, in its order.
func withoutCombinations(raw json.RawMessage) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // {
		return nil, err
	}
	var kept [][]byte
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		switch name {
		case "oneOf", "anyOf", "allOf":
			continue
		}
		kept = append(kept, append([]byte(quote(name)+":"), value...))
	}
	var out bytes.Buffer
	err := json.Compact(&out, slices.Concat([]byte("{"), bytes.Join(kept, []byte(",")), []byte("}")))
	return out.Bytes(), err
}

package harnesstools

import (
	"bytes"
	"encoding/json"
	"slices"
)

// member is a key and its value, in the order of the document: the order of a form's fields
// is the agent's choice.
type member struct {
	name  string
	value json.RawMessage
}

// members splits an object; ok is false for anything else.
func members(raw json.RawMessage) (out []member, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		t, err := dec.Token()
		name, isString := t.(string)
		var v json.RawMessage
		if err != nil || !isString || dec.Decode(&v) != nil {
			return nil, false
		}
		out = append(out, member{name, v})
	}
	return out, true
}

func joined(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

var (
	rootKeys  = []string{"type", "title", "description", "properties", "required"}
	fieldKeys = []string{"type", "title", "description", "default", "enum", "enumNames", "oneOf", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "items", "minItems", "maxItems"}
	formats   = []string{`"email"`, `"uri"`, `"date"`, `"date-time"`}
)

// flatForm passes a schema to the Host when it has only the flat fields that Hosts can show;
// otherwise plain is false. What Hosts do not know, such as _meta, is left out.
func flatForm(schema json.RawMessage, titled bool) (out json.RawMessage, plain bool) {
	root, ok := members(schema)
	if !ok {
		return nil, false
	}
	var kept []member
	for _, m := range root {
		if !slices.Contains(rootKeys, m.name) {
			continue
		}
		if m.name == "properties" {
			fields, ok := members(m.value)
			if !ok || len(fields) == 0 {
				return nil, false
			}
			for i, f := range fields {
				if fields[i].value, ok = flatField(f.value, titled); !ok {
					return nil, false
				}
			}
			m.value = joined(fields)
		}
		kept = append(kept, m)
	}
	hasFields := slices.ContainsFunc(kept, func(m member) bool { return m.name == "properties" })
	return joined(kept), hasFields
}

// flatField passes one field. A choice with titles becomes names beside an enum for a Host
// that does not know the newer form.
func flatField(raw json.RawMessage, titled bool) (json.RawMessage, bool) {
	all, ok := members(raw)
	if !ok {
		return nil, false
	}
	var kind string
	var kept []member
	for _, m := range all {
		switch {
		case !slices.Contains(fieldKeys, m.name), m.name == "format" && !slices.Contains(formats, string(m.value)):
			continue
		case m.name == "type":
			if json.Unmarshal(m.value, &kind) != nil {
				return nil, false
			}
		case m.name == "oneOf" && !titled:
			names, ok := enumOf(m.value)
			if !ok {
				return nil, false
			}
			kept = append(kept, names...)
			continue
		}
		kept = append(kept, m)
	}
	switch kind {
	case "string", "number", "integer", "boolean":
		return joined(kept), true
	case "array":
		return joined(kept), titled && isChoice(kept)
	}
	return nil, false
}

func enumOf(oneOf json.RawMessage) ([]member, bool) {
	var list []struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
	if json.Unmarshal(oneOf, &list) != nil || len(list) == 0 {
		return nil, false
	}
	var values, names []string
	for _, c := range list {
		if c.Title == "" {
			c.Title = c.Const
		}
		values, names = append(values, c.Const), append(names, c.Title)
	}
	v, _ := json.Marshal(values) // strings always marshal
	n, _ := json.Marshal(names)
	return []member{{"enum", v}, {"enumNames", n}}, true
}

// isChoice reports whether an array takes some of a fixed list.
func isChoice(field []member) bool {
	for _, m := range field {
		if m.name != "items" {
			continue
		}
		var items map[string]json.RawMessage
		if json.Unmarshal(m.value, &items) != nil {
			return false
		}
		return items["enum"] != nil || items["anyOf"] != nil || items["oneOf"] != nil
	}
	return false
}

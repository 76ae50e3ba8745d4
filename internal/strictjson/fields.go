package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	jsonNumber      = reflect.TypeFor[json.Number]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether t's own method reads its JSON, as json.RawMessage does.
func decodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return t.Implements(jsonUnmarshaler) || t.Implements(textUnmarshaler)
	}
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// isBytes reports whether encoding/json reads t from a base64 string.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !decodesItself(t.Elem())
}

// fieldsOf maps every key that encoding/json would fill in t, in its exact spelling, to
// the type of its value. A field of an outer struct hides one that is embedded. A field
// with the "string" option maps to nil: its text is not looked into.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type, t.NumField())
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && !decodesItself(f.Type) {
				embedded = append(embedded, inner)
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
		if strings.Contains(","+options+",", ",string,") {
			fields[name] = nil
		}
	}
	for _, inner := range embedded {
		for name, typ := range fieldsOf(inner) {
			if _, hidden := fields[name]; !hidden {
				fields[name] = typ
			}
		}
	}
	return fields
}

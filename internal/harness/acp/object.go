package acp

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose fields are read one by one, so that one field of an
// unexpected type does not hide the others.
type object map[string]json.RawMessage

// asObject returns nil for anything that is not an object.
func asObject(raw json.RawMessage) object {
	var o object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// asList returns the elements of an array, and false for anything else.
func asList(raw json.RawMessage) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	return list, true
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (o object) strPtr(key string) *string {
	raw := o[key]
	if isNull(raw) {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}

func (o object) str(key string) string {
	if s := o.strPtr(key); s != nil {
		return *s
	}
	return ""
}

// integer reads a whole number, also one that is written as 1.0.
func (o object) integer(key string) *int64 {
	raw := o[key]
	if isNull(raw) {
		return nil
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return &n
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || f != float64(int64(f)) {
		return nil
	}
	n = int64(f)
	return &n
}

func (o object) boolean(key string) bool {
	var b bool
	return json.Unmarshal(o[key], &b) == nil && b
}

// has reports whether the key is there and neither null nor false.
func (o object) has(key string) bool {
	raw, ok := o[key]
	return ok && !isNull(raw) && string(bytes.TrimSpace(raw)) != "false"
}

func (o object) sub(key string) object { return asObject(o[key]) }

func (o object) list(key string) []json.RawMessage {
	list, _ := asList(o[key])
	return list
}

// clip makes text valid UTF-8 of at most limit bytes.
func clip(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
		for cut := 0; cut < utf8.UTFMax && len(text) > 0; cut++ {
			if r, _ := utf8.DecodeLastRuneInString(text); r != utf8.RuneError {
				break
			}
			text = text[:len(text)-1]
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

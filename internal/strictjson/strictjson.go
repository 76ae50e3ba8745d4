// Package strictjson decodes JSON from outside into a closed Go type, and gives a value
// one canonical form and one hash.
//
// encoding/json forgives much: duplicate keys (the last wins), keys in another letter
// case, null for anything, broken UTF-8 and lone surrogates (replaced in silence). A
// document that two readers may understand differently is refused here, before a value
// reaches its type. The package knows no document of ours.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// The limits that apply where [Limits] has a zero.
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 32
	// maxDepthEver keeps the recursion of this package, and of encoding/json, shallow
	// whatever a caller asks for.
	maxDepthEver = 1000
)

const op = "strictjson.decode"

// Limits bounds a document. A zero field means the default.
type Limits struct {
	MaxBytes int // of the whole document
	MaxDepth int // nested arrays and objects; a scalar document has depth 0
	// MaxStringBytes bounds every decoded string and key, in bytes of UTF-8; the
	// default is MaxBytes.
	MaxStringBytes int
	// AllowNull accepts null where the Go type is a pointer, slice or map. Without it
	// null is accepted only where the type is an interface, a json.RawMessage or
	// decodes itself, so that null never passes for an absent field.
	AllowNull bool
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	l.MaxDepth = min(l.MaxDepth, maxDepthEver)
	if l.MaxStringBytes <= 0 {
		l.MaxStringBytes = l.MaxBytes
	}
	return l
}

// Decode reads exactly one JSON document from data into v, which must be a non-nil
// pointer. It refuses with [fault.Invalid] a document that is too large or too deep,
// that has invalid UTF-8, a byte order mark, a duplicate key, a lone surrogate or
// trailing data, that has a field which v's type does not name letter for letter, and a
// value of another JSON type than v's. The error names the JSON path and the rule and
// never shows a value. When it refuses, v may be partly set only for a value that
// decodes itself (json.Unmarshaler).
//
// It does not tell an absent field from a zero one and knows no required fields.
func Decode(data []byte, v any, lim Limits) error {
	lim = lim.withDefaults()
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fault.New(fault.Internal, op, "the target of a decode must be a non-nil pointer")
	}
	if err := checkText(data, lim); err != nil {
		return err
	}
	w := walker{data: data, lim: lim}
	if err := w.document(target.Type().Elem()); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		// The walker has proved structure and types; what is left is a value that its
		// own type refuses. Its text may quote the value, so it is not passed on.
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) && typed.Field != "" {
			return fault.New(fault.Invalid, op, "$.%s: has a value that is not allowed here", typed.Field)
		}
		return fault.New(fault.Invalid, op, "$: has a value that is not allowed here")
	}
	return nil
}

// checkText proves that data is one syntactically valid JSON document in clean UTF-8.
func checkText(data []byte, lim Limits) error {
	if len(data) > lim.MaxBytes {
		return fault.New(fault.Invalid, op, "$: is %d bytes, more than the limit of %d", len(data), lim.MaxBytes)
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return fault.New(fault.Invalid, op, "$: starts with a byte order mark").
			WithHint("save the document as UTF-8 without BOM")
	}
	if !utf8.Valid(data) {
		return fault.New(fault.Invalid, op, "$: is not valid UTF-8")
	}
	if len(bytes.TrimLeft(data, " \t\r\n")) == 0 {
		return fault.New(fault.Invalid, op, "$: is empty; one JSON document is needed")
	}
	if json.Valid(data) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if err == nil {
		return fault.New(fault.Invalid, op, "$: has data after the document, at %s", position(data, dec.InputOffset()))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fault.New(fault.Invalid, op, "$: is not valid JSON at %s", position(data, syntax.Offset))
	}
	return fault.New(fault.Invalid, op, "$: is not valid JSON: it ends too early")
}

// position turns a byte offset into what an editor shows.
func position(data []byte, offset int64) string {
	offset = max(0, min(offset, int64(len(data))))
	before := data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Sprintf("line %d, column %d", line, max(column, 1))
}

package strictjson

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// maxPathKey is the most bytes of one key that an error path shows.
const maxPathKey = 64

// walker visits a document that json.Valid has accepted, next to the Go type that it is
// for. A nil type means that anything is welcome below that point.
type walker struct {
	data []byte
	pos  int
	lim  Limits
	path []string // ".name" or "[3]"
}

func (w *walker) refuse(format string, args ...any) error {
	return fault.New(fault.Invalid, op, "$%s: "+format, append([]any{strings.Join(w.path, "")}, args...)...)
}

func (w *walker) document(t reflect.Type) error { return w.value(t, 0) }

func (w *walker) space() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return
		}
	}
}

// value checks the value at pos and leaves pos behind it.
func (w *walker) value(t reflect.Type, depth int) error {
	w.space()
	t, nullable := w.resolve(t)
	switch c := w.data[w.pos]; c {
	case '{', '[':
		if depth >= w.lim.MaxDepth {
			return w.refuse("is nested deeper than %d levels", w.lim.MaxDepth)
		}
		if c == '{' {
			return w.object(t, depth+1)
		}
		return w.array(t, depth+1)
	case '"':
		if t != nil && (t.Kind() != reflect.String && !isBytes(t) || t == jsonNumber) {
			return w.refuse("must be %s, not a string", want(t))
		}
		_, err := w.text()
		return err
	case 't', 'f':
		w.pos += len("true")
		if c == 'f' {
			w.pos++
		}
		if t != nil && t.Kind() != reflect.Bool {
			return w.refuse("must be %s, not a boolean", want(t))
		}
		return nil
	case 'n':
		w.pos += len("null")
		if t != nil && !(w.lim.AllowNull && nullable) {
			return w.refuse("must not be null")
		}
		return nil
	default:
		return w.number(t)
	}
}

// resolve follows pointers and says whether AllowNull lets the place be null. Types that
// decode themselves, and interfaces, are opaque: nil.
func (w *walker) resolve(t reflect.Type) (_ reflect.Type, nullable bool) {
	for t != nil {
		if t.Kind() == reflect.Interface || decodesItself(t) {
			return nil, true
		}
		if t.Kind() != reflect.Pointer {
			return t, nullable || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
		}
		t, nullable = t.Elem(), true
	}
	return nil, true
}

func (w *walker) object(t reflect.Type, depth int) error {
	var fields map[string]reflect.Type
	var elem reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct:
		fields = fieldsOf(t)
	case t.Kind() == reflect.Map:
		elem = t.Elem()
	default:
		return w.refuse("must be %s, not an object", want(t))
	}
	w.pos++ // {
	seen := make(map[string]struct{})
	for w.space(); w.data[w.pos] != '}'; w.space() {
		if w.data[w.pos] == ',' {
			w.pos++
			w.space()
		}
		w.path = append(w.path, ".(key)")
		key, err := w.text()
		if err != nil {
			return err
		}
		w.path[len(w.path)-1] = pathKey(key)
		if _, again := seen[key]; again {
			return w.refuse("is given twice")
		}
		seen[key] = struct{}{}
		below := elem
		if fields != nil {
			known := false
			if below, known = fields[key]; !known {
				return w.refuse("is not a known field")
			}
		}
		w.space()
		w.pos++ // :
		if err := w.value(below, depth); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	w.pos++ // }
	return nil
}

func (w *walker) array(t reflect.Type, depth int) error {
	var elem reflect.Type
	switch {
	case t == nil:
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !isBytes(t):
		elem = t.Elem()
	default:
		return w.refuse("must be %s, not an array", want(t))
	}
	w.pos++ // [
	n := 0
	for w.space(); w.data[w.pos] != ']'; w.space() {
		if w.data[w.pos] == ',' {
			w.pos++
		}
		w.path = append(w.path, "["+strconv.Itoa(n)+"]")
		if err := w.value(elem, depth); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
		n++
	}
	w.pos++ // ]
	if t != nil && t.Kind() == reflect.Array && n != t.Len() {
		return w.refuse("must have exactly %d items, not %d", t.Len(), n)
	}
	return nil
}

// text reads the string at pos, refuses a lone surrogate, which encoding/json would turn
// into U+FFFD, and returns the decoded string.
func (w *walker) text() (string, error) {
	start := w.pos
	escaped := false
	high := false // a high surrogate waits for its other half
	for w.pos++; w.data[w.pos] != '"'; w.pos++ {
		if w.data[w.pos] != '\\' {
			if high {
				return "", w.refuse("has a lone surrogate escape")
			}
			continue
		}
		escaped = true
		w.pos++
		unit := rune(0)
		if w.data[w.pos] == 'u' {
			n, _ := strconv.ParseUint(string(w.data[w.pos+1:w.pos+5]), 16, 16) // hex digits: json.Valid said so
			unit = rune(n)
			w.pos += 4
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if low != high {
			return "", w.refuse("has a lone surrogate escape")
		}
		high = unit >= 0xD800 && unit <= 0xDBFF
	}
	if high {
		return "", w.refuse("has a lone surrogate escape")
	}
	w.pos++
	s := string(w.data[start+1 : w.pos-1])
	if escaped {
		if err := json.Unmarshal(w.data[start:w.pos], &s); err != nil {
			return "", w.refuse("is not a readable string")
		}
	}
	if len(s) > w.lim.MaxStringBytes {
		return "", w.refuse("is a string of %d bytes, more than the limit of %d", len(s), w.lim.MaxStringBytes)
	}
	return s, nil
}

func (w *walker) number(t reflect.Type) error {
	start := w.pos
	for w.pos < len(w.data) && strings.IndexByte("+-.eE0123456789", w.data[w.pos]) >= 0 {
		w.pos++
	}
	if t == nil {
		return nil
	}
	n := string(w.data[start:w.pos])
	var err error
	switch kind := t.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Int64:
		_, err = strconv.ParseInt(n, 10, t.Bits())
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		_, err = strconv.ParseUint(n, 10, t.Bits())
	case kind == reflect.Float32 || kind == reflect.Float64:
		_, err = strconv.ParseFloat(n, t.Bits())
	case t == jsonNumber:
	default:
		return w.refuse("must be %s, not a number", want(t))
	}
	if err != nil {
		return w.refuse("must be %s in range", want(t))
	}
	return nil
}

// want names a Go type in the words of JSON.
func want(t reflect.Type) string {
	switch kind := t.Kind(); {
	case kind == reflect.Struct || kind == reflect.Map:
		return "an object"
	case t == jsonNumber:
		return "a number"
	case isBytes(t) || kind == reflect.String:
		return "a string"
	case kind == reflect.Slice || kind == reflect.Array:
		return "an array"
	case kind == reflect.Bool:
		return "a boolean"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// pathKey renders a key for an error path: bounded, and without control characters.
func pathKey(key string) string {
	plain := key != ""
	for _, c := range key {
		plain = plain && (c == '_' || c == '$' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	if len(key) > maxPathKey {
		cut := maxPathKey
		for cut > 0 && !utf8.RuneStart(key[cut]) {
			cut--
		}
		key = key[:cut] + "..."
	}
	if plain {
		return "." + key
	}
	return "[" + strconv.QuoteToASCII(key) + "]"
}

package redact

import (
	"bytes"
	"encoding/json"
)

// Strict is [String] with the names and shapes of a [Stream] too. It is for what is stored or
// shown of a program's settings and of its own words. Text that a person decides on keeps to
// String, which hides less of it.
func Strict(s string) string { return String(string(Bytes([]byte(s)))) }

// StrictLine is [Line] after [Strict].
func StrictLine(s string, max int) string { return Line(string(Bytes([]byte(s))), max) }

// SecretName reports whether what a variable, a header or a key of this name holds is secret.
// Of a name longer than any known one only the end counts.
func SecretName(name string) bool {
	return secretName([]byte(name[max(0, len(name)-maxWord):]))
}

// JSON masks a JSON value: every string in it as [Strict] does, and whole strings under the
// name of a secret. A value without a secret comes back as it is; text that is not JSON is
// the mask alone. The order of keys is kept only where nothing was masked.
func JSON(raw []byte) []byte {
	if Strict(string(raw)) == string(raw) {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a large number stays what it is
	if d.Decode(&v) != nil || d.More() {
		return []byte(`"` + Mask + `"`)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(masked(v, false)) != nil {
		return []byte(`"` + Mask + `"`)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

// masked masks the strings of a decoded value; named says that it stands under the name of a
// secret.
func masked(v any, named bool) any {
	switch v := v.(type) {
	case string:
		if named && v != "" {
			return Mask
		}
		return Strict(v)
	case []any:
		for i := range v {
			v[i] = masked(v[i], named)
		}
	case map[string]any:
		for k := range v {
			v[k] = masked(v[k], named || SecretName(k))
		}
	}
	return v
}

package redact

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"time"
)

// maxValueBytes bounds one value of a JSON line.
const maxValueBytes = 1024

// jsonHandler is a slog.Handler that writes one redacted JSON object for one record.
type jsonHandler struct {
	level  slog.Leveler
	out    *output
	prefix string
	attrs  []field
}

// field is one rendered attribute: its key and its value are JSON.
type field struct{ key, value string }

// NewJSONHandler is [NewHandler] for programs that read logs: one JSON object a line with
// time, level, msg and the attributes, groups as dotted keys. A line that would be longer
// than [MaxLineBytes] leaves its last attributes out and says "truncated".
func NewJSONHandler(w io.Writer, level slog.Leveler) slog.Handler {
	if level == nil {
		level = slog.LevelInfo
	}
	return &jsonHandler{level: level, out: &output{w: w}}
}

var _ slog.Handler = (*jsonHandler)(nil)

func (h *jsonHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

func (h *jsonHandler) Handle(_ context.Context, r slog.Record) error {
	fields := []field{
		{`"time"`, encoded(r.Time.UTC().Format(time.RFC3339Nano))}, {`"level"`, encoded(strings.ToLower(r.Level.String()))},
		{`"msg"`, encoded(Line(String(r.Message), maxValueBytes))},
	}
	if r.Time.IsZero() {
		fields = fields[1:]
	}
	fields = append(fields, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		fields = appendField(fields, h.prefix, a)
		return true
	})
	const end = `,"truncated":true`
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range fields {
		if b.Len()+len(f.key)+len(f.value)+len(end)+len(",:}\n") > MaxLineBytes {
			b.WriteString(end)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f.key + ":" + f.value)
	}
	b.WriteString("}\n")
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, b.String())
	return err
}

func (h *jsonHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = h.attrs[:len(h.attrs):len(h.attrs)]
	for _, a := range attrs {
		next.attrs = appendField(next.attrs, h.prefix, a)
	}
	return &next
}

func (h *jsonHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	return &next
}

// appendField renders one attribute, groups as dotted keys. Numbers and truth values stay
// what they are.
func appendField(to []field, prefix string, a slog.Attr) []field {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			to = appendField(to, prefix, member)
		}
		return to
	}
	if a.Key == "" {
		return to
	}
	f := field{key: encoded(Line(prefix+a.Key, maxValueBytes))}
	switch {
	case sensitiveKey(a.Key):
		f.value = encoded(Mask)
	case v.Kind() == slog.KindInt64 || v.Kind() == slog.KindUint64 || v.Kind() == slog.KindBool:
		f.value = v.String()
	default:
		f.value = encoded(Line(String(render(v)), maxValueBytes))
	}
	return append(to, f)
}

// encoded is a JSON string; invalid UTF-8 is replaced.
func encoded(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always has a form
		return `""`
	}
	return string(b)
}

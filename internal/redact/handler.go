package redact

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MaxLineBytes bounds one log line, its line break included.
const MaxLineBytes = 4096

const program = "agent-knock-knock"

// handler is a slog.Handler that writes one redacted line for one record.
type handler struct {
	level  slog.Leveler
	out    *output
	prefix string // of the open groups, "a.b."
	attrs  string // already rendered, each with a leading blank
}

// output serialises the lines of every handler made from one NewHandler call.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// NewHandler returns a handler that writes lines to w, which must be stderr or a file and
// never the stdout of a Bridge:
//
//	[agent-knock-knock:info] message key=value key2="two words"
//
// A line is at most [MaxLineBytes], holds no control character and no secret of a known
// shape; the value under a secret's name (token, password, ...) is masked whatever it
// looks like. There is no time: whoever collects stderr stamps it. A nil level means Info.
func NewHandler(w io.Writer, level slog.Leveler) slog.Handler {
	if level == nil {
		level = slog.LevelInfo
	}
	return &handler{level: level, out: &output{w: w}}
}

var _ slog.Handler = (*handler)(nil)

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("[" + program + ":" + strings.ToLower(r.Level.String()) + "] ")
	b.WriteString(Line(r.Message, MaxLineBytes))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.prefix, a)
		return b.Len() < MaxLineBytes // what comes later would be cut anyway
	})
	// Redact the whole once more: a secret may be split over a key and its value.
	line := cut(flatten(String(b.String())), MaxLineBytes-1) + "\n"
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, line)
	return err
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		appendAttr(&b, h.prefix, a)
	}
	next := *h
	next.attrs = b.String()
	return &next
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	return &next
}

// appendAttr renders one attribute, groups as dotted keys.
func appendAttr(b *strings.Builder, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			appendAttr(b, prefix, member)
		}
		return
	}
	if a.Key == "" {
		return // slog's contract: an empty attribute is left out
	}
	text := Mask
	if !sensitiveKey(a.Key) {
		text = quoted(Line(render(v), MaxLineBytes))
	}
	b.WriteString(" " + flatten(prefix+a.Key) + "=" + text)
}

// render leaves calling foreign methods to fmt, which survives one that panics.
func render(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		if e, ok := v.Any().(error); ok {
			return fmt.Sprint(e)
		}
		return fmt.Sprintf("%+v", v.Any())
	default:
		return v.String()
	}
}

// quoted quotes a value that a reader could not tell from its neighbours.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, ` "=`) {
		return strconv.Quote(s)
	}
	return s
}

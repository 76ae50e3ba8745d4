package telemetry

import (
	"encoding/hex"
	"strings"
)

// Wanted is what the environment asks for.
type Wanted struct {
	Traces, Metrics bool
	// Refused says, one line each, what it asks for that there is not.
	Refused []string
}

// On reports whether anything is to be told.
func (w Wanted) On() bool { return w.Traces || w.Metrics }

// protocol is the only one of OTLP that is spoken.
const protocol = "http/protobuf"

// Want reads the standard variables. Without an endpoint or an exporter nothing is wanted.
func Want(getenv func(string) string) Wanted {
	var w Wanted
	get := func(name string) string { return strings.ToLower(strings.TrimSpace(getenv(name))) }
	if get("OTEL_SDK_DISABLED") == "true" {
		return w
	}
	signal := func(name string) bool {
		exporter := get("OTEL_" + name + "_EXPORTER")
		endpoint := get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_"+name+"_ENDPOINT") != ""
		switch {
		case exporter == "none", exporter == "" && !endpoint:
			return false
		case exporter != "" && exporter != "otlp":
			w.Refused = append(w.Refused, "OTEL_"+name+"_EXPORTER names an exporter that is not here; otlp and none are")
			return false
		}
		spoken := get("OTEL_EXPORTER_OTLP_" + name + "_PROTOCOL")
		if spoken == "" {
			spoken = get("OTEL_EXPORTER_OTLP_PROTOCOL")
		}
		if spoken != "" && spoken != protocol {
			w.Refused = append(w.Refused, "OTEL_EXPORTER_OTLP_PROTOCOL asks for another protocol than "+protocol+"; no "+strings.ToLower(name)+" are exported")
			return false
		}
		return true
	}
	w.Traces, w.Metrics = signal("TRACES"), signal("METRICS")
	return w
}

// TraceParent reads a W3C traceparent; ok is false for one that is none.
func TraceParent(s string) (trace TraceID, span SpanID, sampled, ok bool) {
	p := strings.Split(strings.TrimSpace(s), "-")
	if len(p) < 4 || len(p[0]) != 2 || p[0] == "ff" || p[0] == "00" && len(p) != 4 || len(p[1]) != 32 || len(p[2]) != 16 || len(p[3]) != 2 || strings.ToLower(s) != s {
		return trace, span, false, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], p[0]}, {trace[:], p[1]}, {span[:], p[2]}, {flags[:], p[3]}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return TraceID{}, SpanID{}, false, false
		}
	}
	if trace == (TraceID{}) || span == (SpanID{}) {
		return TraceID{}, SpanID{}, false, false
	}
	return trace, span, flags[0]&1 == 1, true
}

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
)

// receiver is a real OTLP/HTTP receiver.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	spans    map[string]*tracev1.Span // by span id: the same span may come twice
	twice    int
	services []map[string]string
	metrics  map[string]*metricsv1.Metric // the newest of each name
	raw      []byte                       // every body, for the canary
	requests int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{spans: map[string]*tracev1.Span{}, metrics: map[string]*metricsv1.Metric{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = r.take(req.URL.Path, body)
		}
		if err != nil {
			t.Errorf("%s: %v", req.URL.Path, err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(path string, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.raw = append(r.raw, body...)
	if path == "/v1/metrics" {
		var m collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, rm := range m.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					r.metrics[m.Name] = m
				}
			}
		}
		return nil
	}
	var m collectortrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	for _, rs := range m.ResourceSpans {
		r.services = append(r.services, attrWords(rs.Resource.Attributes))
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if _, had := r.spans[string(s.SpanId)]; had {
					r.twice++
				}
				r.spans[string(s.SpanId)] = s
			}
		}
	}
	return nil
}

func attrWords(all []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		out[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// named returns the spans of a name that are there.
func (r *receiver) named(name string) (out []*tracev1.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// waitOne waits for the one span of a name.
func (r *receiver) waitOne(t *testing.T, name string) *tracev1.Span {
	t.Helper()
	var got []*tracev1.Span
	faketmux.Wait(t, "the span "+name, func() bool { got = r.named(name); return len(got) > 0 }, func() string { return r.seen() })
	if len(got) != 1 {
		t.Errorf("%d spans %s", len(got), name)
	}
	return got[0]
}

func (r *receiver) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.spans {
		names = append(names, s.Name)
	}
	return dump(map[string]any{"spans": names, "requests": r.requests})
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// sums returns the points of a counter or gauge by the value of one attribute.
func (r *receiver) sums(metric, key string) map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int64{}
	m := r.metrics[metric]
	if m == nil {
		return out
	}
	for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
		out[attrWords(p.Attributes)[key]] += p.GetAsInt()
	}
	return out
}

// telling is the variables that send to a receiver soon.
func telling(url string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=500"}
}

// withTelemetry puts akk-telemetry beside the other programs.
func (w *world) withTelemetry(t testing.TB) {
	t.Helper()
	if err := os.Link(gobuild.Program(t, module+"internal/telemetry/akktelemetry"), filepath.Join(filepath.Dir(w.bin), "akk-telemetry")); err != nil {
		t.Fatal(err)
	}
}

// startWith starts a Bridge with more in its environment.
func (w *world) startWith(env ...string) *fakehost.Client {
	w.t.Helper()
	b := w.bridge()
	b.Env = append(b.Env, env...)
	return fakehost.Start(w.t, b)
}

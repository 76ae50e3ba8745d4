package export

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/agent-knock-knock/akk/internal/telemetry"
)

// seconds are the histograms' bounds: an acceptance takes well under a second, a callback
// that is tried again some minutes.
var seconds = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 180}

type meters struct {
	provider *sdkmetric.MeterProvider
	counters map[string]metric.Int64Counter
	timers   map[string]metric.Float64Histogram
	levels   atomic.Pointer[telemetry.Levels] // nil until the first were told
}

func newMeters(ctx context.Context, res *resource.Resource) (*meters, error) {
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, err
	}
	m := &meters{counters: map[string]metric.Int64Counter{}, timers: map[string]metric.Float64Histogram{},
		provider: sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))}
	return m, m.make(m.provider.Meter(scopeName))
}

func (m *meters) make(meter metric.Meter) error {
	var errs []error
	counter := func(name, unit, text string) {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		m.counters[name] = c
		errs = append(errs, err)
	}
	timer := func(name, text string) {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(seconds...))
		m.timers[name] = h
		errs = append(errs, err)
	}
	counter(telemetry.MetricSends, "{send}", "submissions by their outcome")
	counter(telemetry.MetricCallbacks, "{attempt}", "attempts of callbacks by their outcome")
	timer(telemetry.MetricAccept, "from the send to the agent's own record of it")
	timer(telemetry.MetricDelivery, "from the event to the Host's acknowledgement")

	gauge := func(name, unit, text string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return g
	}
	total := func(name, unit, text string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	open := gauge(telemetry.MetricOpenTurns, "{turn}", "tasks of the Store that keep a terminal")
	backlog := gauge(telemetry.MetricBacklog, "{callback}", "callbacks of the Store that are on their way")
	dead := gauge(telemetry.MetricDeadLetters, "{callback}", "callbacks of the Store that died and were neither redriven nor discarded")
	restarts := total(telemetry.MetricRestarts, "{restart}", "workers that ended and were started again")
	dropped := total(telemetry.MetricDropped, "{fact}", "facts that were not told because too many waited")
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l := m.levels.Load()
		if l == nil {
			return nil
		}
		o.ObserveInt64(open, l.OpenTurns)
		o.ObserveInt64(backlog, l.Backlog)
		o.ObserveInt64(dead, l.DeadLetters)
		o.ObserveInt64(dropped, l.Dropped)
		for name, n := range l.Restarts {
			o.ObserveInt64(restarts, n, metric.WithAttributes(attribute.String(telemetry.KeyWorker, name)))
		}
		return nil
	}, open, backlog, dead, restarts, dropped)
	return errors.Join(append(errs, err)...)
}

func (m *meters) tell(ctx context.Context, n telemetry.News) {
	if n.Levels != nil {
		m.levels.Store(n.Levels)
	}
	for _, c := range n.Counts {
		attrs := metric.WithAttributes(attributes(c.Attrs)...)
		if c.Timed {
			m.timers[c.Metric].Record(ctx, c.Seconds, attrs)
		} else {
			m.counters[c.Metric].Add(ctx, 1, attrs)
		}
	}
}

func (m *meters) stop(ctx context.Context) { _ = m.provider.Shutdown(ctx) } // what failed was complained about

// Package export tells facts to a receiver with the OpenTelemetry SDK: it reads lines,
// asks package telemetry what is new, and makes spans and measurements of that.
//
// It is linked by the program akk-telemetry alone, so that no other start pays for the SDK
// and its exporters. It knows no Store and holds no rule; what the standard OTEL_* variables
// say, the SDK reads itself.
package export

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/telemetry"
)

const (
	// FlushLimit bounds what is done after the end of the input, whatever the receiver does.
	FlushLimit = 1500 * time.Millisecond
	// BeatEvery is the pace of the signs of life.
	BeatEvery = 4 * time.Second
	// complainEvery is the least time between two lines about a receiver that does not take
	// what it is sent.
	complainEvery = time.Minute
	startLimit    = 5 * time.Second

	serviceName = "agent-knock-knock"
	scopeName   = "github.com/agent-knock-knock/akk"
)

// Options is who tells what.
type Options struct {
	Release  string
	Instance string // the Bridge
	Traces   bool
	Metrics  bool
	Window   telemetry.Window
	Parent   string // a W3C traceparent to which tasks of this Bridge are linked, or ""
	Log      *slog.Logger
}

// Serve reads facts from in until its end and tells them; beat gets a byte at a steady
// pace. It returns within FlushLimit of the end of in. A line that cannot be read is
// logged and left out. A receiver that hangs, refuses or is gone is no error.
func Serve(ctx context.Context, in io.Reader, beat io.Writer, o Options) error {
	otel.SetErrorHandler(&complaints{log: o.Log})
	res, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", serviceName),
			attribute.String("service.version", o.Release),
			attribute.String("service.instance.id", o.Instance)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv()) // last: what its user names, wins
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && res == nil {
		return fault.Wrap(err, fault.Invalid, "telemetry.resource", "the resource cannot be described")
	}
	t, err := newTeller(ctx, res, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { beats(ctx, beat) })
	readErr := t.read(ctx, in)
	cancel()
	beating.Wait()
	flush, end := context.WithTimeout(context.WithoutCancel(ctx), FlushLimit)
	defer end()
	t.stop(flush)
	return readErr
}

func beats(ctx context.Context, w io.Writer) {
	tick := time.NewTicker(BeatEvery)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte("\n")); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// teller is the two pipelines; either may be missing.
type teller struct {
	o       Options
	once    telemetry.Once
	tracing *tracing
	meters  *meters
}

func newTeller(ctx context.Context, res *resource.Resource, o Options) (*teller, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit) // the exporters only read their settings
	defer cancel()
	t := &teller{o: o}
	var err error
	if o.Traces {
		if t.tracing, err = newTracing(ctx, res, o.Parent); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "telemetry.traces", "the exporter of traces cannot be made").WithHint("look at the OTEL_EXPORTER_OTLP_* variables")
		}
	}
	if o.Metrics {
		if t.meters, err = newMeters(ctx, res); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "telemetry.metrics", "the exporter of metrics cannot be made").WithHint("look at the OTEL_EXPORTER_OTLP_* variables")
		}
	}
	return t, nil
}

func (t *teller) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4<<10), telemetry.MaxLine)
	for lines.Scan() {
		f, err := telemetry.Decode(lines.Bytes())
		if err != nil {
			t.o.Log.Warn("a fact was left out", "err", err)
			continue
		}
		t.tell(ctx, f)
	}
	return lines.Err()
}

func (t *teller) tell(ctx context.Context, f telemetry.Fact) {
	news := telemetry.Read(f, t.o.Window, &t.once)
	if t.tracing != nil && news.Trace != nil {
		t.tracing.tell(ctx, *news.Trace, news.Over)
	}
	if t.meters != nil {
		t.meters.tell(ctx, news)
	}
}

// stop sends what is left, both at once, until ctx ends.
func (t *teller) stop(ctx context.Context) {
	var both sync.WaitGroup
	if t.tracing != nil {
		both.Go(func() { t.tracing.stop(ctx) })
	}
	if t.meters != nil {
		both.Go(func() { t.meters.stop(ctx) })
	}
	both.Wait()
}

// complaints logs what the SDK could not do, a line a minute at most.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	last  time.Time
	quiet int
}

// Handle implements the SDK's error handler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.last) < complainEvery {
		c.quiet++
		return
	}
	c.last = now
	c.log.Warn("telemetry was not taken", "err", err, "more", c.quiet)
	c.quiet = 0
}

func attributes(all []telemetry.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(all))
	for _, a := range all {
		if a.Word != "" {
			out = append(out, attribute.String(a.Key, a.Word))
		} else {
			out = append(out, attribute.Int64(a.Key, a.Number))
		}
	}
	return out
}

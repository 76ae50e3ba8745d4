package export

import (
	"context"
	"os"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-knock-knock/akk/internal/telemetry"
)

// batchDelay is how long a span waits for others, unless OTEL_BSP_SCHEDULE_DELAY says
// otherwise: a Bridge that is killed takes with it what still waits.
const batchDelay = time.Second

type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	links    []trace.Link
}

func newTracing(ctx context.Context, res *resource.Resource, parent string) (*tracing, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	var batch []sdktrace.BatchSpanProcessorOption
	if os.Getenv("OTEL_BSP_SCHEDULE_DELAY") == "" {
		batch = append(batch, sdktrace.WithBatchTimeout(batchDelay))
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithIDGenerator(derived{}), sdktrace.WithBatcher(exporter, batch...))
	t := &tracing{provider: p, tracer: p.Tracer(scopeName)}
	if id, span, sampled, ok := telemetry.TraceParent(parent); ok {
		flags := trace.TraceFlags(0).WithSampled(sampled)
		t.links = []trace.Link{{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(id), SpanID: trace.SpanID(span), TraceFlags: flags, Remote: true})}}
	}
	return t, nil
}

// tell makes the spans of a trace. The root is started each time, so that the sampler
// decides for the whole trace and always the same, and only ended, which exports it, when
// the task is over.
func (t *tracing) tell(ctx context.Context, tr telemetry.Trace, over bool) {
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(tr.Root.Start), trace.WithAttributes(attributes(tr.Root.Attrs)...)}
	if tr.Local {
		options = append(options, trace.WithLinks(t.links...))
	}
	ctx, root := t.tracer.Start(named(ctx, tr.ID, tr.Root.ID), tr.Root.Name, options...)
	for _, s := range tr.Spans {
		parent := ctx
		if s.Parent != tr.Root.ID { // of a round: its own span may have been told long ago
			parent = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: trace.TraceID(tr.ID), SpanID: trace.SpanID(s.Parent), TraceFlags: root.SpanContext().TraceFlags(), Remote: true}))
		}
		_, span := t.tracer.Start(named(parent, tr.ID, s.ID), s.Name, trace.WithTimestamp(s.Start), trace.WithAttributes(attributes(s.Attrs)...), trace.WithSpanKind(kind(s)))
		finish(span, s)
	}
	if over {
		finish(root, tr.Root)
	}
}

func kind(s telemetry.Span) trace.SpanKind {
	if s.Name == telemetry.SpanCallback {
		return trace.SpanKindProducer
	}
	return trace.SpanKindInternal
}

func finish(span trace.Span, s telemetry.Span) {
	if s.Failed {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(s.End))
}

func (t *tracing) stop(ctx context.Context) { _ = t.provider.Shutdown(ctx) } // what failed was complained about

// derived gives spans the ids that the rules derived.
type derived struct{}

type idsKey struct{}

type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements the SDK's generator for a root.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, _ := ctx.Value(idsKey{}).(spanIDs)
	return i.trace, i.span
}

// NewSpanID implements it for a child.
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	i, _ := ctx.Value(idsKey{}).(spanIDs)
	return i.span
}

func named(ctx context.Context, id telemetry.TraceID, span telemetry.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, spanIDs{trace.TraceID(id), trace.SpanID(span)})
}

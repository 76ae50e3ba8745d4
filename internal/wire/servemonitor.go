package wire

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

// staleAfter is how long a monitor's loop may go without a Beat before it is unhealthy.
const staleAfter = 12 * time.Second

// maxFingerprint bounds the fingerprint of a prompt, which is a hash.
const maxFingerprint = 256

// Feed is what a running watch sends into.
type Feed struct {
	ctx     context.Context
	out     chan *monitorv1.WatchResponse
	slots   chan struct{} // one per observation that is not acknowledged
	entered chan time.Time
	gone    chan string   // the newest answered prompt that the watch has not taken yet
	beat    atomic.Int64  // UnixNano of the last Beat
	tick    chan struct{} // asks for a Beat
	waiting atomic.Int32  // Emits that wait for the Bridge

	mu     sync.Mutex
	armed  bool
	sent   uint64
	acked  uint64
	final  bool
	outMax sync.Mutex // keeps numbers in the order of out
}

func newFeed(ctx context.Context) *Feed {
	f := &Feed{
		ctx: ctx, out: make(chan *monitorv1.WatchResponse, maxUnacked+1),
		slots: make(chan struct{}, maxUnacked), entered: make(chan time.Time, 1), gone: make(chan string, 1), tick: make(chan struct{}, 1),
	}
	f.Beat()
	return f
}

// Tick asks the loop for a Beat, with each heartbeat: a silent monitor wakes once for both.
func (f *Feed) Tick() <-chan struct{} { return f.tick }

// Beat says that the loop makes progress. It must be called for each Tick.
func (f *Feed) Beat() { f.beat.Store(time.Now().UnixNano()) }

// fresh reports progress. A loop that waits for the Bridge is not to blame.
func (f *Feed) fresh() bool {
	return f.waiting.Load() > 0 || time.Since(time.Unix(0, f.beat.Load())) < staleAfter
}

// Entered receives when Enter was pressed, if that was not known at the start.
func (f *Feed) Entered() <-chan time.Time { return f.entered }

// Answered receives the fingerprint of a prompt that was answered and then seen gone.
func (f *Feed) Answered() <-chan string { return f.gone }

// answered keeps the newest: one prompt is open at a time, so an older one is over anyway.
func (f *Feed) answered(fingerprint string) {
	for {
		select {
		case f.gone <- fingerprint:
			return
		default:
		}
		select {
		case <-f.gone:
		default:
		}
	}
}

// Emit sends an observation. [turn.ObsArmed] must be the first and is not numbered. Emit
// waits while too many observations are not acknowledged; it fails when the watch ends.
func (f *Feed) Emit(o turn.Observation) error {
	if err := checkObservation(o); err != nil {
		return err
	}
	f.outMax.Lock()
	defer f.outMax.Unlock()
	if o.Kind == turn.ObsArmed {
		if f.arm() {
			return f.send(&monitorv1.WatchResponse{Event: &monitorv1.WatchResponse_Armed{Armed: &monitorv1.Armed{At: timeToProto(o.At)}}})
		}
		return nil
	}
	crashpoint.Of(crashpoint.MonitorSaw, string(o.Kind))
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	select {
	case f.slots <- struct{}{}:
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
	n, err := f.number(o.Kind.Final())
	if err != nil {
		return err
	}
	return f.send(&monitorv1.WatchResponse{Event: &monitorv1.WatchResponse_Observation{
		Observation: &monitorv1.NumberedObservation{Number: n, Observation: observationToProto(o)}}})
}

func (f *Feed) arm() (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first, f.armed = !f.armed, true
	return first
}

func (f *Feed) number(final bool) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return 0, fault.New(fault.Internal, "wire.feed", "an observation came before the monitor was armed")
	}
	f.sent++
	f.final = final
	return f.sent, nil
}

func (f *Feed) send(m *monitorv1.WatchResponse) error {
	select {
	case f.out <- m:
		return nil
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}

func (f *Feed) acknowledge(n uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.sent {
		return status.Errorf(codes.InvalidArgument, "observation %d was not sent", n)
	}
	for ; f.acked < n; f.acked++ {
		<-f.slots
	}
	return nil
}

// Acknowledged is the number of the last observation that the Bridge has stored.
func (f *Feed) Acknowledged() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked
}

func (f *Feed) ended() (final bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.final
}

// WatchFunc watches one Turn or Watch until its native turn ended or ctx did. It emits into feed
// and beats it.
type WatchFunc func(ctx context.Context, spec MonitorSpec, feed *Feed) error

// ServeMonitor is the whole main of akk-monitor: it returns when the Bridge said so or is
// gone. run is called at most once.
func ServeMonitor(ctx context.Context, run WatchFunc, o ServeOptions) error {
	m := &monitorServer{server: newServer(ctx, kindMonitor, monitorv1.MonitorService_ServiceDesc.ServiceName, o), run: run, opened: make(chan struct{})}
	return m.serve(func(s *grpc.Server) { monitorv1.RegisterMonitorServiceServer(s, m) })
}

type monitorServer struct {
	monitorv1.UnimplementedMonitorServiceServer
	*server
	run WatchFunc

	feedMu sync.Mutex
	feed   *Feed
	opened chan struct{} // closed when feed is set
}

func (m *monitorServer) Configure(_ context.Context, r *monitorv1.ConfigureRequest) (*monitorv1.ConfigureResponse, error) {
	fp, err := m.configure(handoffFromProto(r.GetHandoff()))
	return &monitorv1.ConfigureResponse{Fingerprint: fp}, err
}

func (m *monitorServer) Watch(r *monitorv1.WatchRequest, stream grpc.ServerStreamingServer[monitorv1.WatchResponse]) error {
	if _, err := m.ready(); err != nil {
		return err
	}
	spec := specFromProto(r)
	if err := spec.check(); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(m.group.Context(), cancel)()
	feed, err := m.open(ctx)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	m.group.Go(func(context.Context) { result <- m.run(ctx, spec, feed) })
	err = m.pump(feed, stream, result)
	if err != nil {
		m.health.set(false)
		level := slog.LevelWarn
		if status.Code(err) == codes.Canceled { // the Bridge ended it: the usual way
			level = slog.LevelDebug
		}
		m.opts.Log.Log(ctx, level, "watch ended early", spec.Subject().Kind(), string(spec.Subject()), "error", err)
	}
	return err
}

func (m *monitorServer) open(ctx context.Context) (*Feed, error) {
	m.feedMu.Lock()
	defer m.feedMu.Unlock()
	if m.feed != nil {
		return nil, status.Error(codes.Aborted, "this monitor has a watch already")
	}
	m.feed = newFeed(ctx)
	close(m.opened)
	return m.feed, nil
}

// pump is the only sender of the stream.
func (m *monitorServer) pump(f *Feed, stream grpc.ServerStreamingServer[monitorv1.WatchResponse], result <-chan error) error {
	tick := time.NewTicker(HeartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-f.out:
			if err := stream.Send(e); err != nil {
				return err
			}
		case now := <-tick.C:
			serving := f.fresh()
			m.health.set(serving)
			select {
			case f.tick <- struct{}{}:
			default: // the last one is not answered yet
			}
			beat := &monitorv1.Heartbeat{At: timeToProto(now), Serving: serving}
			if err := stream.Send(&monitorv1.WatchResponse{Event: &monitorv1.WatchResponse_Heartbeat{Heartbeat: beat}}); err != nil {
				return err
			}
		case err := <-result:
			return m.finish(f, stream, err)
		}
	}
}

// finish sends what run emitted last and turns its end into the stream's.
func (m *monitorServer) finish(f *Feed, stream grpc.ServerStreamingServer[monitorv1.WatchResponse], err error) error {
	for len(f.out) > 0 {
		if serr := stream.Send(<-f.out); serr != nil {
			return serr
		}
	}
	switch {
	case err == nil && f.ended():
		return nil
	case err == nil:
		return status.Error(codes.Internal, "the watch ended before the native turn did")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the watch was ended")
	}
	return status.Error(codes.Internal, clip(err.Error(), maxTailShown))
}

func (m *monitorServer) Acknowledge(ctx context.Context, r *monitorv1.AcknowledgeRequest) (*monitorv1.AcknowledgeResponse, error) {
	f, err := m.current(ctx)
	if err == nil {
		err = f.acknowledge(r.GetNumber())
	}
	return &monitorv1.AcknowledgeResponse{}, err
}

func (m *monitorServer) MarkEntered(ctx context.Context, r *monitorv1.MarkEnteredRequest) (*monitorv1.MarkEnteredResponse, error) {
	f, err := m.current(ctx)
	if err != nil {
		return nil, err
	}
	if r.GetEnteredAt() == nil {
		return nil, status.Error(codes.InvalidArgument, "entered_at is missing")
	}
	select {
	case f.entered <- timeFromProto(r.GetEnteredAt()):
	default: // Enter is pressed once
	}
	return &monitorv1.MarkEnteredResponse{}, nil
}

func (m *monitorServer) MarkAnswered(ctx context.Context, r *monitorv1.MarkAnsweredRequest) (*monitorv1.MarkAnsweredResponse, error) {
	f, err := m.current(ctx)
	if err != nil {
		return nil, err
	}
	if fp := r.GetPromptFingerprint(); fp == "" || len(fp) > maxFingerprint {
		return nil, status.Error(codes.InvalidArgument, "prompt_fingerprint is missing or too long")
	}
	f.answered(r.GetPromptFingerprint())
	return &monitorv1.MarkAnsweredResponse{}, nil
}

// current is the watch. A Bridge that has asked for it may say more before the request for
// the watch is served: such a call waits, within its own deadline.
func (m *monitorServer) current(ctx context.Context) (*Feed, error) {
	select {
	case <-m.opened:
	case <-ctx.Done():
		return nil, status.Error(codes.Aborted, "this monitor has no watch")
	}
	m.feedMu.Lock()
	defer m.feedMu.Unlock()
	return m.feed, nil
}

package wire

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

// EventKind says what a monitor sent.
type EventKind int

// The kinds of [Event].
const (
	EventArmed EventKind = iota + 1
	EventObservation
	EventHeartbeat
)

// Event is one message of a monitor's stream.
type Event struct {
	Kind        EventKind
	At          time.Time        // armed and heartbeat: the monitor's clock
	Number      uint64           // observation: 1, 2, 3, ... within this monitor
	Observation turn.Observation // observation
	Serving     bool             // heartbeat: what its health service would answer
}

// Monitor is one akk-monitor that serves one Turn or one Terminal Watch.
type Monitor struct {
	*worker
	client      monitorv1.MonitorServiceClient
	stream      grpc.ServerStreamingClient[monitorv1.WatchResponse]
	cancel      context.CancelFunc
	next        uint64
	fingerprint string
}

// StartMonitor starts an akk-monitor, configures it, sees that it is healthy and starts
// the watch. The monitor is armed when Next returned [EventArmed]. ctx bounds the start
// only; the watch ends by Stop or Kill, which must be called when err is nil.
func StartMonitor(ctx context.Context, o Options, h Handoff, spec MonitorSpec) (*Monitor, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	w, err := startWorker(ctx, o, kindMonitor, monitorv1.MonitorService_ServiceDesc.ServiceName)
	if err != nil {
		return nil, err
	}
	m := &Monitor{worker: w, client: monitorv1.NewMonitorServiceClient(w.conn)}
	if err := m.open(ctx, h, spec); err != nil {
		m.Kill()
		return nil, err
	}
	return m, nil
}

func (m *Monitor) open(ctx context.Context, h Handoff, spec MonitorSpec) error {
	err := m.call(ctx, "wire.monitor.configure", func(ctx context.Context) error {
		answer, err := m.client.Configure(ctx, &monitorv1.ConfigureRequest{Handoff: handoffToProto(h)})
		m.fingerprint = answer.GetFingerprint()
		return err
	})
	if err != nil {
		return err
	}
	if m.fingerprint != h.Fingerprint {
		return fault.New(CodeFingerprint, "wire.monitor.configure", "%s computed another Profile fingerprint", m.kind).
			WithHint("restart the Host Bridge; the three programs must come from one release")
	}
	if err := m.Healthy(ctx); err != nil {
		return err
	}
	// The stream outlives the start. Its end is Stop, and before that the end of the
	// process, which breaks the connection.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.cancel = cancel
	m.stream, err = m.client.Watch(streamCtx, specToProto(spec))
	return m.callError("wire.monitor.watch", err)
}

// Next waits for the monitor's next message. io.EOF means that the watch ended in order:
// the last observation was final. Next has no bound of its own: the caller watches the
// heartbeats and calls Kill, which ends it.
func (m *Monitor) Next() (Event, error) {
	p, err := m.stream.Recv()
	if err != nil {
		return Event{}, m.callError("wire.monitor.next", err)
	}
	switch e := p.GetEvent().(type) {
	case *monitorv1.WatchResponse_Armed:
		return Event{Kind: EventArmed, At: timeFromProto(e.Armed.GetAt())}, nil
	case *monitorv1.WatchResponse_Heartbeat:
		return Event{Kind: EventHeartbeat, At: timeFromProto(e.Heartbeat.GetAt()), Serving: e.Heartbeat.GetServing()}, nil
	case *monitorv1.WatchResponse_Observation:
		m.next++
		if n := e.Observation.GetNumber(); n != m.next {
			return Event{}, fault.New(CodeLost, "wire.monitor.next", "observation %d came in place of %d", n, m.next)
		}
		o := observationFromProto(e.Observation.GetObservation())
		if err := checkObservation(o); err != nil {
			return Event{}, err
		}
		return Event{Kind: EventObservation, Number: m.next, Observation: o}, nil
	}
	return Event{}, fault.New(CodeLost, "wire.monitor.next", "the monitor sent a message of unknown kind")
}

// Acknowledge tells the monitor that every observation up to number is stored.
func (m *Monitor) Acknowledge(ctx context.Context, number uint64) error {
	return m.call(ctx, "wire.monitor.acknowledge", func(ctx context.Context) error {
		_, err := m.client.Acknowledge(ctx, &monitorv1.AcknowledgeRequest{Number: number})
		return err
	})
}

// MarkEntered tells the monitor when Enter was pressed.
func (m *Monitor) MarkEntered(ctx context.Context, at time.Time) error {
	return m.call(ctx, "wire.monitor.mark_entered", func(ctx context.Context) error {
		_, err := m.client.MarkEntered(ctx, &monitorv1.MarkEnteredRequest{EnteredAt: timeToProto(at)})
		return err
	})
}

// MarkAnswered tells the monitor that a prompt was answered and then seen gone.
func (m *Monitor) MarkAnswered(ctx context.Context, fingerprint string) error {
	return m.call(ctx, "wire.monitor.mark_answered", func(ctx context.Context) error {
		_, err := m.client.MarkAnswered(ctx, &monitorv1.MarkAnsweredRequest{PromptFingerprint: fingerprint})
		return err
	})
}

// Stop ends the watch and the process, in order when it listens, within StopLimit.
func (m *Monitor) Stop() {
	m.cancelStream()
	m.worker.Stop()
}

// Kill ends the process at once.
func (m *Monitor) Kill() {
	m.worker.Kill()
	m.cancelStream()
}

func (m *Monitor) cancelStream() {
	if m.cancel != nil {
		m.cancel()
	}
}

// MaxUnacknowledged is how many observations a monitor sends ahead of the Bridge; a queue
// of this size never blocks its reader.
const MaxUnacknowledged = maxUnacked

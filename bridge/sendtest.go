package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// testLimit bounds a test callback: the start of the worker and the Profile's own limit.
const testLimit = 60 * time.Second

// nobody is the Sink of a process that watches nothing.
type nobody struct{}

func (nobody) Observe(context.Context, ids.SubjectID, turn.Observation) error {
	return fault.New(fault.NotFound, "bridge.send_test", "nothing is watched here")
}

// sendTest runs the Host's callback program once, as a Bridge would: through a worker of
// its own, with the Profile's limits. Nothing is stored, and nothing is tried again.
func sendTest(ctx context.Context, o cli.HostBridgeOptions, r *doctor.Report) {
	ctx, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	key := make([]byte, 32)
	rand.Read(key)
	p := o.Admitted.Profile
	route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: p.ID, ProfileRevision: p.Revision,
		ProfileFingerprint: o.Admitted.Fingerprint, SessionDigest: outbox.SessionDigest(key, o.Admitted.Session)}
	name := rand.Text()
	d := outbox.New(route, outbox.Source{Kind: outbox.SourceTest, ID: "test-" + name}, outbox.Event{
		ID: "msg-test-" + name, Type: "done", Kind: "test", Metadata: map[string]string{"test": "true"},
		Body: fmt.Appendf(nil, "TEST from Agent Knock Knock: doctor --send-test sent this to see whether callbacks arrive. No task is behind it; nothing needs to be done."),
	}, time.Now())
	start := time.Now()
	out, err := deliverTest(ctx, o, route, d)
	r.Delivered(d, out, time.Since(start), err)
}

// deliverTest brings a worker up for one attempt and ends it again.
func deliverTest(ctx context.Context, o cli.HostBridgeOptions, route outbox.Route, d outbox.Delivery) (outbox.Outcome, error) {
	runDir, err := wire.OpenRunDir("")
	if err != nil {
		return outbox.Outcome{}, err
	}
	defer runDir.Close()
	spawner := proc.NewSpawner()
	defer spawner.Close()
	s, err := supervise.New(ctx, supervise.Config{Spawner: spawner, Binaries: wire.Binaries{}, RunDir: runDir, Handoff: handoff(o, route, ids.NewBridge()),
		Sink: nobody{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return outbox.Outcome{}, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		_ = s.Stop(stop) // it killed what did not end
	}()
	if err := s.AwaitCallback(ctx); err != nil {
		return outbox.Outcome{}, err
	}
	return s.Deliver(ctx, wire.CallbackJob{DeliveryID: d.DeliveryID, AttemptID: ids.AttemptID("attempt-" + d.Event.ID), Attempt: 1,
		IdempotencyKey: d.IdempotencyKey, RouteID: d.RouteID, Route: d.Route, Source: d.Source, Event: d.Event})
}

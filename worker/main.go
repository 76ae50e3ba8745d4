// Command akk-callback runs the Host's callback program for the Bridge and classifies
// what it answered. It opens no Store, knows no Turn and retries nothing. The Bridge
// starts it; by hand it does nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/agent-knock-knock/akk/internal/callbackexec"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// The worker waits nearly always; an early collection keeps its heap near what it holds.
const (
	gcPercent   = 25
	idleRunners = 2 // kept ready, so that a delivery does not wait for a process start
)

func main() {
	proc.MaybeRunner()
	if wire.PrintVersion(os.Stdout, "akk-callback", os.Args) {
		return
	}
	debug.SetGCPercent(gcPercent)
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	log := wire.NewWorkerLog()
	spawner := proc.NewSpawner()
	defer spawner.Close()
	runners := proc.NewRunners(spawner, idleRunners)
	defer runners.Close()
	executor := callbackexec.New(runners, clock.System{})
	prepare := func(h wire.Handoff) (wire.RunFunc, error) {
		p, err := profile.Parse(h.ProfileDocument)
		if err != nil {
			return nil, err
		}
		if err := runners.Warm(); err != nil {
			log.Warn("no runner is ready yet", "error", err)
		}
		_ = proc.ReleaseImage() // what only the start needed; what stays costs nothing
		return func(ctx context.Context, j wire.CallbackJob) outbox.Outcome {
			return executor.Run(ctx, callbackexec.Job{
				Profile: p, Live: h.Route, Route: j.Route, RouteID: j.RouteID, Session: h.ControllerSession,
				DeliveryID: j.DeliveryID, MessageID: j.Event.ID, IdempotencyKey: j.IdempotencyKey, Body: j.Event.Body,
				Env: h.Environment, Attempt: j.Attempt, AttemptID: j.AttemptID,
			})
		}, nil
	}
	return wire.ServeCallback(ctx, prepare, wire.ServeOptions{Fingerprint: fingerprint, Log: log, Stdout: os.Stdout})
}

func fingerprint(document []byte) (string, error) {
	p, err := profile.Parse(document)
	if err != nil {
		return "", err
	}
	return p.Fingerprint()
}

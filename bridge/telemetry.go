package main

import (
	"os"

	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/telemetry/feed"
	"github.com/agent-knock-knock/akk/internal/version"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// traceParent is how a Host that is traced names its span to the programs that it starts.
const traceParent = "TRACEPARENT"

// newFeed returns telemetry as the environment asks for it: nil, which is off, when it asks
// for none. Nothing is started yet.
func (b *bridge) newFeed() *feed.Feed {
	wanted := telemetry.Want(os.Getenv)
	for _, why := range wanted.Refused {
		b.log.Warn("telemetry is not as asked for", "reason", why)
	}
	if !wanted.On() {
		return nil
	}
	program, err := wire.Sibling(telemetry.Program)
	if err != nil {
		b.log.Warn("telemetry is off", "err", err)
		return nil
	}
	return feed.New(feed.Config{Program: program, Release: version.Version, Bridge: b.id, Wanted: wanted,
		Environ: os.Environ(), DB: b.db, Spawner: b.spawner, Parent: os.Getenv(traceParent), Log: b.log})
}

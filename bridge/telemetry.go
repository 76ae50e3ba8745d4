package main

import (
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/telemetry/feed"
	"github.com/agent-knock-knock/akk/internal/version"
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
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		b.log.Warn("telemetry is off: the directory of this program cannot be found", "err", err)
		return nil
	}
	return feed.New(feed.Config{Program: filepath.Join(filepath.Dir(self), telemetry.Program), Release: version.Version, Bridge: b.id, Wanted: wanted,
		Environ: os.Environ(), DB: b.db, Spawner: b.spawner, Parent: os.Getenv(traceParent), Log: b.log})
}

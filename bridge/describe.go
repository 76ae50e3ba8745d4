package main

import (
	"os"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"
)

// answerOperators opens the socket on which doctor asks this Bridge. A Bridge without it
// works; it only cannot be asked.
func (b *bridge) answerOperators() {
	s, err := control.Serve(controlDir(), b.id, b.describe, b.log)
	if err != nil {
		b.log.Warn("doctor cannot ask this Bridge", "err", err)
		return
	}
	b.control = s
}

func (b *bridge) describe() control.Description {
	a := b.options.Admitted
	d := control.Description{BridgeID: b.id, PID: os.Getpid(), Version: version.Version, WireVersion: version.Wire, Host: b.options.Host, HostVersion: b.options.HostVersion,
		ProfileID: a.Profile.ID, ProfileRevision: a.Profile.Revision, ProfileFingerprint: a.Fingerprint, StoreDir: b.db.Dir(), StoreWritable: b.db.Writable(),
		StartedAt: b.started, Workers: b.supervisor.Status()}
	if w, on := b.telemetry.Status(); on {
		d.Workers = append(d.Workers, w)
	}
	if err := a.CheckDrift(); err != nil {
		_, d.ProfileDrift, _ = fault.Public(err)
	}
	return d
}

package main

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// watchMonitors lets the use cases of Watches start monitors without knowing gRPC.
type watchMonitors struct{ s *supervise.Supervisor }

var _ watcher.Monitors = watchMonitors{}

func (m watchMonitors) Watch(ctx context.Context, w watch.Watch) error {
	return m.s.Watch(ctx, wire.MonitorSpec{WatchID: w.ID, Mode: wire.WatchMode(w.Mode), Anchor: w.Anchor, Accepted: w.Seen, OpenPrompt: w.OpenPrompt,
		Ref: agent.Ref{Endpoint: w.Endpoint, Process: w.Process, Cwd: w.Workspace}})
}

func (m watchMonitors) Forget(id ids.WatchID) { m.s.Forget(ids.SubjectID(id)) }

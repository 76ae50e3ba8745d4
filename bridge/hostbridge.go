package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/callbackexec"
	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/reconcile"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/retention"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/telemetry/feed"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/version"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/wire"
)

const (
	serverName = "agent-knock-knock-host-bridge"
	// stopLimit bounds the end of the workers after the session ended.
	stopLimit = 5 * time.Second
	// gcPercent keeps the Bridge small: it waits nearly always, so an early collection costs
	// little. There is no memory limit, see docs/adr/0009-no-memory-limit.md.
	gcPercent = 50
)

// hostBridge serves one Host until its input ends or a signal comes. Everything that can
// refuse does so before the first MCP frame.
func hostBridge(ctx context.Context, o cli.HostBridgeOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	id := ids.NewBridge()
	log := slog.New(redact.NewHandler(stderr, o.LogLevel))
	if o.LogJSON { // a reader of many Bridges' logs must tell them apart
		log = slog.New(redact.NewJSONHandler(stderr, o.LogLevel)).With("bridge", id, "pid", os.Getpid(), "host", o.Host, "profile", o.Admitted.Profile.ID)
	}
	ctx, stopParent := followParent(ctx, log)
	defer stopParent()

	b, err := newBridge(ctx, o, id, log)
	if err != nil {
		return err
	}
	defer b.close()
	registry := toolkit.New()
	registry.TrustDeclarations()
	session := mcpserver.Config{
		Name: serverName, Version: version.Version, Registry: registry, In: stdin, Out: stdout, Log: log, Instance: b.id,
		OnReady: b.begin,
	}
	if err := b.offer(&session); err != nil {
		return err
	}
	serveErr := mcpserver.Serve(ctx, session)
	return b.end(serveErr)
}

// followParent ends ctx when the Host is gone, even if somebody else still holds the write
// end of our stdin (case M09). The returned function stops following and waits for that.
func followParent(ctx context.Context, log *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	gone, err := proc.WatchParent(ctx)
	if err != nil {
		log.Warn("the Host process cannot be watched; only the end of stdin ends this Bridge", "err", err)
		return ctx, cancel
	}
	var following sync.WaitGroup
	following.Go(func() {
		select {
		case <-gone:
			log.Info("the Host process ended")
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); following.Wait() }
}

// bridge is the running parts of one Host Bridge.
type bridge struct {
	id         ids.BridgeID
	options    cli.HostBridgeOptions
	started    time.Time
	log        *slog.Logger
	db         *store.DB
	absent     func() // takes back the announcement that this Bridge lives
	spawner    *proc.Spawner
	runDir     *wire.RunDir
	supervisor *supervise.Supervisor
	turns      *dispatch.Service
	watches    *watcher.Service
	threads    *threads.Service
	panels     *panels.Service
	pump       *delivery.Pump
	loop       *reconcile.Loop
	control    *control.Server
	telemetry  *feed.Feed // nil when it is off
	ctx        context.Context
}

// newBridge makes the parts. What it made before a failure is released again.
func newBridge(ctx context.Context, o cli.HostBridgeOptions, id ids.BridgeID, log *slog.Logger) (*bridge, error) {
	// The parts outlive the session's ctx: what was accepted is drained after it ended.
	b := &bridge{id: id, options: o, started: time.Now(), log: log, absent: func() {}, ctx: context.WithoutCancel(ctx)}
	if err := b.build(ctx, o); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bridge) build(ctx context.Context, o cli.HostBridgeOptions) (err error) {
	binaries := wire.Binaries{}
	if err := binaries.Check(); err != nil {
		return err
	}
	if b.db, err = store.Open(ctx, o.StoreDir, store.Options{Sets: tableSets(o)}); err != nil {
		return err
	}
	if err := b.register(o); err != nil {
		return err
	}
	if b.runDir, err = wire.OpenRunDir(o.RuntimeDir); err != nil {
		return err
	}
	b.spawner = proc.NewSpawner()
	b.telemetry = b.newFeed()
	route := route(b.db, o.Admitted)
	sink := &sink{}
	b.supervisor, err = supervise.New(b.ctx, supervise.Config{
		Spawner: b.spawner, Binaries: binaries, RunDir: b.runDir, Handoff: handoff(o, route, b.id), Sink: sink, Log: b.log,
		Restarted: b.telemetry.Restarted,
	})
	if err != nil {
		return err
	}
	b.pump = delivery.New(delivery.Config{DB: b.db, Worker: callbackWorker{b.supervisor, o.Admitted.CheckDrift}, Owner: b.id, Live: route, Clock: clock.System{}, Log: b.log,
		Ended: b.telemetry.Callback})
	scanner := discover.New(o.TmuxSockets, codex.New(codex.Options{}), claude.New(claude.Options{}))
	b.watches = watcher.New(watcher.Config{DB: b.db, Bridge: b.id, Scanner: scanner, Monitors: watchMonitors{b.supervisor}, Route: route,
		CheckProfile: o.Admitted.CheckDrift, Enqueued: b.pump.Kick, Clock: clock.System{}, Log: b.log})
	desk := keyboard.Desk{Finder: scanner, LockDir: lockDir(), Clock: clock.System{}}
	b.threads = threads.New(threads.Config{DB: b.db, Bridge: b.id, Scanner: scanner, Desk: desk, CheckProfile: o.Admitted.CheckDrift, Clock: clock.System{}, Log: b.log})
	b.turns = dispatch.New(dispatch.Config{
		DB: b.db, Bridge: b.id, Scanner: scanner, Watches: b.watches, Transitions: b.threads,
		Monitors: monitors{b.supervisor}, Route: route, CheckProfile: o.Admitted.CheckDrift, Enqueued: b.pump.Kick,
		LockDir: lockDir(), Clock: clock.System{}, Log: b.log, Callbacks: b.pump, Policy: o.Policy,
		Told: b.telemetry.Turn,
	})
	b.panels = panels.New(panels.Config{DB: b.db, Desk: desk, Sender: b.turns, Clock: clock.System{}, Extended: o.Extended, Log: b.log})
	b.turns.Rows = []dispatch.RowSource{b.watches, b.threads, b.panels} // before anybody can ask
	sink.turns, sink.watches = b.turns, b.watches
	b.loop = reconcile.New(clock.System{}, b.log, 0,
		reconcile.Phase{Name: "turns", Startup: b.turns.Sweep, Sweep: b.turns.Sweep},
		reconcile.Phase{Name: "threads", Startup: b.threads.Sweep, Sweep: b.threads.Sweep},
		reconcile.Phase{Name: "watches", Startup: b.watches.Sweep, Sweep: b.watches.Sweep},
		reconcile.Phase{Name: "callbacks", Startup: b.recoverCallbacks, Sweep: b.recoverCallbacks},
		reconcile.Phase{Name: "retention", Sweep: (&retention.Keeper{DB: b.db, Clock: clock.System{}, Log: b.log}).Sweep},
		reconcile.Phase{Name: "memory", Sweep: (&lean{clock: clock.System{}}).Sweep},
	)
	return nil
}

// register makes this Bridge an owner that others can see. Its record is stored with the
// first write, which the pump makes once MCP is connected: the commit waits for the disk,
// and the Host's first request need not. A disk that is full therefore refuses the first
// task, not the start; a Store that cannot be opened, migrated or announced in still ends
// the start. A Store of a newer release is only read: then there is nothing to own.
func (b *bridge) register(o cli.HostBridgeOptions) error {
	if !b.db.Writable() {
		b.log.Warn("the Store was written by a newer release; tools can only read", "store", b.db.Dir())
		return nil
	}
	release, err := b.db.Announce(b.id)
	if err != nil {
		return err
	}
	b.absent = release
	p := o.Admitted.Profile
	b.db.First(func(tx *store.Tx) error {
		return turnsql.PutBridge(tx, turnsql.Bridge{ID: b.id, Host: o.Host, HostVersion: o.HostVersion, ProfileID: p.ID,
			ProfileRevision: p.Revision, ProfileFingerprint: o.Admitted.Fingerprint, PID: os.Getpid()})
	})
	return nil
}

// begin starts the Host-owned lifecycle, once MCP is connected.
func (b *bridge) begin() {
	b.answerOperators()
	b.telemetry.Start(b.ctx)
	debug.SetGCPercent(gcPercent) // not before: a start needs no collection
	b.pump.Start(b.ctx)
	b.loop.Start(b.ctx)
	// Ready before it is needed: the first callback should not wait for a process start.
	if err := b.supervisor.WarmCallback(); err != nil {
		b.log.Warn("the callback worker is not up yet; it is started again when needed", "err", err)
	}
}

// recoverCallbacks takes over what dead Bridges left and wakes what is due.
func (b *bridge) recoverCallbacks(ctx context.Context) error {
	if !b.db.Writable() {
		return nil
	}
	n, err := b.pump.Recover(ctx)
	if n > 0 {
		b.log.Info("recovered callbacks", "count", n)
	}
	b.pump.Kick()
	return err
}

// end stops the parts in the order in which they use one another. The session's error, if
// any, is the exit.
func (b *bridge) end(sessionErr error) error {
	if b.control != nil {
		b.control.Stop()
	}
	b.loop.Stop()
	b.pump.Stop()
	var telling sync.WaitGroup
	telling.Go(b.telemetry.Stop) // beside the workers' end: it has its own bound
	defer telling.Wait()
	ctx, cancel := context.WithTimeout(b.ctx, stopLimit)
	defer cancel()
	if err := b.supervisor.Stop(ctx); err != nil {
		b.log.Warn("workers did not stop in order; they were killed", "err", err)
	}
	if b.db.Writable() {
		if err := b.db.Update(ctx, func(tx *store.Tx) error { return turnsql.EndBridge(tx, b.id) }); err != nil {
			b.log.Warn("the end of this Bridge was not recorded", "err", err)
		}
	}
	return sessionErr
}

// close releases what newBridge took. Every part may be missing.
func (b *bridge) close() {
	b.absent()
	if b.runDir != nil {
		if err := b.runDir.Close(); err != nil {
			b.log.Debug("the runtime directory stays for the next start to sweep", "err", err)
		}
	}
	if b.spawner != nil {
		b.spawner.Close()
	}
	if b.db != nil {
		if err := b.db.Close(); err != nil {
			b.log.Warn("the Store did not close cleanly", "err", err)
		}
	}
}

func route(db *store.DB, a *profile.Admitted) outbox.Route {
	return outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: a.Profile.ID, ProfileRevision: a.Profile.Revision,
		ProfileFingerprint: a.Fingerprint, SessionDigest: outbox.SessionDigest(db.Secret(), a.Session)}
}

// handoff is what the workers are told. The allowed environment and the session value go
// to the callback worker alone, in memory.
func handoff(o cli.HostBridgeOptions, route outbox.Route, id ids.BridgeID) wire.Handoff {
	env := callbackexec.Present(o.Admitted.Profile.Callback.Environment.Allow, os.LookupEnv)
	return wire.Handoff{ProfileDocument: o.Admitted.Document, Fingerprint: o.Admitted.Fingerprint, Selection: o.Admitted.Selection,
		Source: o.Admitted.Source, Host: o.Host, HostVersion: o.HostVersion, Route: route, BridgeID: id,
		Environment: env, ControllerSession: o.Admitted.Session}
}

// lockDir holds the input locks of panes: per user, because two Stores may name one pane.
// Like tmux's own sockets it is below /tmp and nowhere else: two Bridges whose Hosts gave
// them different environments must still keep one another out of a pane.
func lockDir() string { return "/tmp/agent-knock-knock-" + uid() }

// runtimeVariable names the one place for the sockets of Bridges. With it, a Bridge puts
// its own there and the operator's commands look nowhere else.
const runtimeVariable = "AKK_RUNTIME_DIR"

func namedRuntimeDir() string {
	if dir := os.Getenv(runtimeVariable); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// runtimeDir holds what other programs of this user look for.
func runtimeDir() string {
	if dir := namedRuntimeDir(); dir != "" {
		return filepath.Join(dir, "agent-knock-knock")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "agent-knock-knock")
	}
	return filepath.Join(os.TempDir(), "agent-knock-knock-"+uid())
}

// Command akk-monitor serves one Turn or one Terminal Watch for the Bridge: it follows the agent's own records
// and looks at its screen, and reports what it saw. It opens no Store, types nothing and
// delivers nothing. The Bridge starts it; by hand it does nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/observe"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// gcPercent: many monitors run at once and nearly always wait. An early collection keeps the
// heap of each near what it holds, and costs CPU only while something happens.
const gcPercent = 25

// adapters makes the adapter of each agent by its name in anchors.
var adapters = map[string]func() agent.Adapter{
	codex.Kind: func() agent.Adapter { return codex.New(codex.Options{}) },
	"claude":   func() agent.Adapter { return claude.New(claude.Options{}) },
}

func main() {
	if wire.PrintVersion(os.Stdout, "akk-monitor", os.Args) {
		return
	}
	debug.SetGCPercent(gcPercent)
	err := wire.ServeMonitor(context.Background(), watch, wire.ServeOptions{Fingerprint: fingerprint, Log: wire.NewWorkerLog(), Stdout: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func watch(ctx context.Context, s wire.MonitorSpec, feed *wire.Feed) error {
	adapter, ok := adapters[s.Anchor.Agent]
	if !ok {
		return fault.New(fault.Invalid, "monitor.watch", "agent %q is not known here", s.Anchor.Agent)
	}
	release() // what the start needed
	defer leanSoon(ctx)()
	run := observe.Run
	switch s.Mode {
	case wire.WatchTask:
		run = observe.RunTask
	case wire.WatchActivity:
		run = observe.RunActivity
	}
	return run(ctx,
		observe.Config{Screen: tmux.At(s.Ref.Endpoint.Socket), Entered: feed.Entered(), Answered: feed.Answered(), Beat: feed.Beat, Tick: feed.Tick()},
		observe.Spec{
			Ref: s.Ref, Anchor: s.Anchor, Pasted: s.Pasted, EnteredAt: s.EnteredAt, Accepted: s.Accepted, OpenPrompt: s.OpenPrompt,
		},
		adapter(), feed.Emit)
}

// settled is when a watch has looked at all that it looks at; from then on it nearly always
// waits.
const settled = 10 * time.Second

// leanSoon gives back what the first looks needed, once they are over. The returned func
// waits for that, or keeps it from happening.
func leanSoon(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		t := time.NewTimer(settled)
		defer t.Stop()
		select {
		case <-t.C:
			release()
		case <-ctx.Done():
		}
	})
	return func() { cancel(); waits.Wait() }
}

// release gives back memory that is free and the pages of the program itself. What the
// system does not take back stays, and harms nothing.
func release() {
	debug.FreeOSMemory()
	_ = proc.ReleaseImage()
}

func fingerprint(document []byte) (string, error) {
	p, err := profile.Parse(document)
	if err != nil {
		return "", err
	}
	return p.Fingerprint()
}

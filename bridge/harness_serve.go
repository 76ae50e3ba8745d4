package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/harness/harnessserver"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// idleRunners are kept ready, so that the next agent does not wait for a process start.
const idleRunners = 1

// harnessServe runs the server of headless agents until ctx, or its lifeline, ends.
func harnessServe(ctx context.Context, o cli.HarnessServeOptions, stdin io.Reader, stderr io.Writer) error {
	debug.SetGCPercent(gcPercent)
	log := slog.New(redact.NewHandler(stderr, o.LogLevel))
	spawner := proc.NewSpawner()
	defer spawner.Close()
	runners := proc.NewRunners(spawner, idleRunners)
	defer runners.Close()
	serve := harnessserver.Options{
		Config: o.Config, ConfigPath: o.ConfigPath, Log: log,
		Launcher: sessions.On(launch.NewLocal(runners, os.Environ(), launch.Options{
			TermGrace: o.Config.Transport.TerminateGraceSeconds.Duration(), StderrLines: o.Config.Transport.StderrTailLines,
		})),
	}
	if o.Supervised {
		serve.Lifeline = stdin
	}
	return harnessserver.Run(ctx, serve)
}

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/harness/autostart"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/harnesstools"
	"github.com/agent-knock-knock/akk/internal/harness/logkeeper"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/version"
)

const harnessName = "agent-knock-knock-harness"

// harnessMCP serves the tools for headless agents to one Host. Its end ends nothing else.
func harnessMCP(ctx context.Context, o cli.HarnessMCPOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	debug.SetGCPercent(gcPercent)
	log := slog.New(redact.NewHandler(stderr, o.LogLevel))
	ctx, stopParent := followParent(ctx, log)
	defer stopParent()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := client.New(o.Settings)
	defer c.Close()
	registry := toolkit.New()
	registry.TrustDeclarations()
	harnesstools.Register(registry, harnesstools.Options{
		Caller: c, Elicit: o.Settings.Elicit, ElicitTimeout: o.Settings.ElicitTimeout, Log: log,
		Finder: &autostart.Starter{Settings: o.Settings, Client: c, Self: self, Env: os.Environ(), Log: log},
	})
	return mcpserver.Serve(ctx, mcpserver.Config{Name: harnessName, Version: version.Version, Registry: registry, In: stdin, Out: stdout, Log: log, Instance: ids.NewBridge()})
}

// harnessSupervise keeps one server and its log.
func harnessSupervise(ctx context.Context, stdin io.Reader) error {
	order, err := logkeeper.ReadOrder(stdin)
	if err != nil {
		return err
	}
	return logkeeper.Keep(ctx, order)
}

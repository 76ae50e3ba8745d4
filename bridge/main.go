// Command agent-knock-knock is the Bridge and its command line. This package only wires:
// it makes the parts, hands them to one another and ends them in order.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/pane"
	"github.com/agent-knock-knock/akk/internal/proc"
)

func main() {
	os.Exit(run())
}

func run() int {
	proc.MaybeRunner()
	if wrapsPane() {
		return runWrapper()
	}
	// A library that prints, or reads, must not break the MCP stream (case M16): from here
	// on only the one who is handed these two files has the Host's pipes.
	stdin, stdout, err := mcpserver.TakeStdio()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cli.Name, err)
		return 1
	}
	// SIGHUP too: a Bridge that runs in a terminal must not leave workers behind when the
	// terminal closes.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A write to a closed stderr must be an error, not the end. Ignoring the signal would
	// do too, but children inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return cli.Main(ctx, cli.Arguments(os.Args), stdin, stdout, os.Stderr, cli.Deps{HostBridge: hostBridge, List: list, Machine: machineReport, Bridges: runningBridges, Outbox: outboxCommands, Prune: pruneStore, SendTest: sendTest, Top: runTop, Pane: pane.Start, Attach: attach(stdin, stdout), Coordination: coordinationServer, HarnessServe: harnessServe, HarnessMCP: harnessMCP, HarnessSupervise: harnessSupervise})
}

// Command agent-knock-knock is the Bridge and its command line. This package only wires:
// it makes the parts, hands them to one another and ends them in order.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	stdin, stdout := claimStdio()
	// SIGHUP too: a Bridge that runs in a terminal must not leave workers behind when the
	// terminal closes. A broken stdout is an error of the write, not a signal.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE)
	return cli.Main(ctx, os.Args[1:], stdin, stdout, os.Stderr, cli.Deps{HostBridge: hostBridge, List: list})
}

// claimStdio keeps the process's stdin and stdout for the one who may use them and points
// the global names elsewhere: a library that prints, or reads, must not break the MCP
// stream (case M16).
func claimStdio() (io.Reader, io.Writer) {
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	if null, err := os.Open(os.DevNull); err == nil {
		os.Stdin = null
	}
	return in, out
}

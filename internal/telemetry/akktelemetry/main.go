// Command akk-telemetry tells a Bridge's traces and metrics to an OpenTelemetry receiver.
// The Bridge starts it, when the OTEL_* variables ask for it, and writes facts to its stdin;
// by hand it does nothing. It is a program of its own so that no other start pays for the
// SDK. It opens no Store and no terminal, and ends soon after its stdin.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/telemetry/export"
	"github.com/agent-knock-knock/akk/internal/version"
)

const (
	gcPercent = 50
	// overtime is what an end may take beyond the flush before it is cut off.
	overtime = 200 * time.Millisecond
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(telemetry.Program, version.Version)
		return
	}
	debug.SetGCPercent(gcPercent)
	os.Exit(run())
}

func run() int {
	var o export.Options
	var release string
	var spans, counts int64
	flag.StringVar(&release, "release", "", "of who starts it")
	flag.StringVar(&o.Instance, "bridge", "", "who starts it")
	flag.BoolVar(&o.Traces, "traces", false, "tell traces")
	flag.BoolVar(&o.Metrics, "metrics", false, "tell metrics")
	flag.Int64Var(&spans, "spans-from", 0, "ms since 1970: older spans were told")
	flag.Int64Var(&counts, "counts-from", 0, "ms since 1970: what ended earlier was counted")
	flag.StringVar(&o.Parent, "traceparent", "", "of the Host")
	flag.Parse()
	if release != version.Version {
		fmt.Fprintf(os.Stderr, "%s is of release %q, agent-knock-knock of %q\n", telemetry.Program, version.Version, release)
		return telemetry.ExitMismatch
	}
	// The terminal's signals are for the Bridge, which ends this program by its stdin.
	signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
	o.Release, o.Window = version.Version, telemetry.Window{Spans: time.UnixMilli(spans), Counts: time.UnixMilli(counts)}
	o.Log = slog.New(redact.NewHandler(os.Stderr, slog.LevelInfo))
	in := &lastGasp{from: os.Stdin, after: export.FlushLimit + overtime}
	if err := export.Serve(context.Background(), in, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// lastGasp ends the process some time after its input ended, whatever hangs.
type lastGasp struct {
	from  io.Reader
	after time.Duration
}

func (l *lastGasp) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if err != nil {
		time.AfterFunc(l.after, func() { os.Exit(1) })
	}
	return n, err
}

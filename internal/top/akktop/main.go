// Command akk-top is the live view behind `agent-knock-knock top`, which starts it. It is
// a program of its own so that no other start pays for the terminal library, see package
// live. It reads, and changes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/top"
	"github.com/agent-knock-knock/akk/internal/top/live"
	"github.com/agent-knock-knock/akk/internal/version"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("akk-top", version.Version)
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "akk-top:", err)
		os.Exit(1)
	}
}

func run() error {
	var eye top.Eye
	var interval time.Duration
	var color bool
	var release string
	flag.StringVar(&eye.StoreDir, "store", "", "Store directory")
	flag.Func("control", "a directory of Bridges' sockets, our own first; may be repeated", func(dir string) error {
		eye.Places = append(eye.Places, dir)
		return nil
	})
	flag.DurationVar(&interval, "interval", time.Second, "pause between two looks")
	flag.BoolVar(&color, "color", true, "colours")
	flag.StringVar(&release, "release", "", "of who starts it")
	flag.Parse()
	if release != version.Version {
		return fmt.Errorf("it is of release %q, agent-knock-knock of %q; install the programs of one release together, then run agent-knock-knock top", version.Version, release)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer eye.Close()
	return live.Run(ctx, eye.Look, os.Stdin, os.Stdout, interval, color)
}

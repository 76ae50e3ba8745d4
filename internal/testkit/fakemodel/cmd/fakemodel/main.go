// Command fakemodel runs the scripted model server until it is interrupted, see package
// fakemodel. It prints its URL on standard output.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "loopback `address`; port 0 takes a free one")
	logPath := flag.String("log", "", "`file` that gets one JSON line for every change of a request")
	flag.Parse()
	var log io.Writer
	if *logPath != "" {
		f, err := os.OpenFile(*logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		log = f
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := fakemodel.Listen(*listen, log)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.URL())
	<-ctx.Done()
	return nil
}

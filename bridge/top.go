package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/top"
	"github.com/agent-knock-knock/akk/internal/version"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// topProgram draws live, beside this program.
const topProgram = "akk-top"

// runTop draws the Store and the running Bridges, once or by the program beside this one.
func runTop(ctx context.Context, o cli.TopOptions, stdin io.Reader, stdout io.Writer) error {
	const op = "bridge.top"
	if o.Once {
		eye := top.Eye{StoreDir: o.StoreDir, Places: controlPlaces()}
		defer eye.Close()
		_, err := io.WriteString(stdout, top.Render(eye.Look(ctx), top.Frame{Width: o.Width, Height: o.Height, Color: o.Color, Now: time.Now(), Focus: 1})+"\n")
		return err
	}
	program, err := wire.Sibling(topProgram)
	if err != nil {
		return err
	}
	args := []string{"-release", version.Version, "-store", o.StoreDir, "-interval", o.Interval.String(), fmt.Sprintf("-color=%v", o.Color)}
	for _, place := range controlPlaces() {
		args = append(args, "-control", place)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	// SIGTERM, not the default SIGKILL: the program has the terminal to give back.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && cmd.ProcessState != nil && cmd.ProcessState.Success():
		return nil // it was told to end, and did
	case errors.As(err, &exit):
		return fault.Wrap(err, fault.Unavailable, op, "%s ended with %d", topProgram, exit.ExitCode()).WithHint("--once draws without it")
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, op, "%s cannot be run", cmd.Path).WithHint("put it next to agent-knock-knock (make install), or use --once")
	}
	return nil
}

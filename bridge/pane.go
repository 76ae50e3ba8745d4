package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pane"
)

// wrapsPane reports whether this process is the wrapper in a pane.
func wrapsPane() bool { return len(os.Args) == 3 && os.Args[1] == pane.WrapperArg }

// runWrapper is the wrapper's main. The keys of the terminal are the agent's: also while
// it lets an editor run, in which Ctrl-C would reach us. Notify, not Ignore: an ignored
// signal would stay ignored in the agent.
func runWrapper() int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	status, err := pane.Wrap(ctx, os.Args[2], pane.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	if err != nil {
		_, msg, hint := fault.Public(err)
		fmt.Fprintf(os.Stderr, "%s: %s: %s (%s)\n", cli.Name, fault.CodeOf(err), msg, hint)
	}
	return status
}

// attach runs tmux on the person's terminal until they detach.
func attach(stdin, stdout *os.File) func(ctx context.Context, argv []string) error {
	return func(ctx context.Context, argv []string) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fault.Wrap(err, fault.Unavailable, "pane.attach", "the agent runs, but tmux does not attach").WithHint("attach yourself with the line above")
		}
		return err
	}
}

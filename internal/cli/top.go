package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// TopOptions is a checked command line of top.
type TopOptions struct {
	StoreDir string // absolute
	Interval time.Duration
	Once     bool // draw once, as text, for a log or a program that is no terminal
	Color    bool
	// Width and Height are of a drawing that is made once.
	Width, Height int
}

// TopFunc draws until a person ends it.
type TopFunc func(ctx context.Context, o TopOptions, stdin io.Reader, stdout io.Writer) error

// The bounds of --interval.
const (
	fastest = 200 * time.Millisecond
	slowest = time.Hour
)

func newTop(deps Deps) *cobra.Command {
	var dir onceFlag
	o := TopOptions{Interval: time.Second, Width: 80, Height: 24}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show Bridges, workers, tasks and callbacks live in the terminal",
		Long: "Show every running Bridge with its workers, the Turns, Watches and callbacks of the Store, and what is wrong with them, live.\n" +
			"It changes nothing. Keys: tab moves to the next section, the arrows scroll it, q ends. It fits 80x24 and grows with the terminal.",
		Example: "  agent-knock-knock top\n" +
			"  agent-knock-knock top --once",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Interval < fastest || o.Interval > slowest {
				return usage(cmd, "--interval must be between %v and %v", fastest, slowest)
			}
			if o.Width < 40 || o.Width > 500 || o.Height < 10 || o.Height > 500 {
				return usage(cmd, "--width must be from 40 to 500, --height from 10 to 500")
			}
			var err error
			if o.StoreDir, err = storePath(dir.value, deps); err != nil {
				return err
			}
			if !o.Once && !deps.IsTerminal(cmd.OutOrStdout()) {
				return usage(cmd, "top needs a terminal, or --once")
			}
			o.Color = outputFor(cmd, false, deps).Color
			return deps.Top(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	addStoreFlag(cmd, &dir)
	f := cmd.Flags()
	f.DurationVar(&o.Interval, "interval", o.Interval, "pause between two looks")
	f.BoolVar(&o.Once, "once", false, "draw once, as text, and end")
	f.IntVar(&o.Width, "width", o.Width, "columns of --once")
	f.IntVar(&o.Height, "height", o.Height, "lines of --once")
	return cmd
}

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/retention"
)

// PruneReport is what store prune did.
type PruneReport struct {
	DryRun bool              `json:"dry_run"`
	Before time.Time         `json:"before"`
	Gone   retention.Removed `json:"removed"`
	// Size is the length of the Store's file in bytes, before and after.
	SizeBefore int64 `json:"size_bytes_before"`
	SizeAfter  int64 `json:"size_bytes_after"`
}

// PruneFunc forgets what ended longer than age ago, and shrinks the file.
type PruneFunc func(ctx context.Context, storeDir string, age time.Duration, dryRun bool) (PruneReport, error)

func newStore(deps Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Look after the Store's file",
		Example: "  agent-knock-knock store prune --older-than 30d --dry-run",
		Args:    cobra.ArbitraryArgs,
		RunE:    needCommand,
	}
	cmd.AddCommand(newStorePrune(deps))
	return cmd
}

func newStorePrune(deps Deps) *cobra.Command {
	var dir, age onceFlag
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Forget tasks that ended long ago, and shrink the file",
		Long: "Forget Turns, Terminal Watches and changes of threads that ended longer ago than --older-than, with their journals and callbacks,\n" +
			"and give the space back to the disk. What still keeps a terminal stays, and so does whatever has a callback that is on its way,\n" +
			"or that died and was neither redriven nor discarded. Every Bridge does the same by itself with 7d. Bridges may run meanwhile.\n" +
			"A task that is forgotten is not recognised when its tool call is repeated.",
		Example: "  agent-knock-knock store prune --older-than 30d --dry-run\n" +
			"  agent-knock-knock store prune --older-than 12h",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireFlags(cmd, "older-than"); err != nil {
				return err
			}
			d, ok := parseAge(age.value)
			if !ok {
				return usage(cmd, "--older-than %q is not an age such as 30d or 12h", age.value)
			}
			store, err := storePath(dir.value, deps)
			if err != nil {
				return err
			}
			r, err := deps.Prune(cmd.Context(), store, d, dryRun)
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				return writeJSON(cmd.OutOrStdout(), r)
			}
			return writePrune(cmd, r, out)
		},
	}
	addStoreFlag(cmd, &dir)
	cmd.Flags().Var(&age, "older-than", "how long ago it must have ended, such as 30d or 12h")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be forgotten")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func writePrune(cmd *cobra.Command, r PruneReport, out Output) error {
	table := NewTable("WHAT", map[bool]string{true: "WOULD BE FORGOTTEN", false: "FORGOTTEN"}[r.DryRun])
	for _, row := range []struct {
		what string
		n    int64
	}{{"turns", r.Gone.Turns}, {"watches", r.Gone.Watches}, {"changes of threads", r.Gone.Transitions}, {"sessions", r.Gone.Sessions}, {"bridges", r.Gone.Bridges}} {
		table.Row(Plain(row.what), Plain(fmt.Sprint(row.n)))
	}
	if r.Gone.Kept > 0 {
		table.Row(Plain("kept: a callback was not heard"), Red(fmt.Sprint(r.Gone.Kept)))
		table.Row(Plain(""), Dim("-> see `agent-knock-knock outbox list --dead`"))
	}
	if !r.DryRun {
		table.Row(Plain("file"), Plain(fmt.Sprintf("%.1f MiB, was %.1f MiB", float64(r.SizeAfter)/(1<<20), float64(r.SizeBefore)/(1<<20))))
	}
	return table.Write(cmd.OutOrStdout(), out)
}

// maxAgeDays bounds an age: a hundred years.
const maxAgeDays = 36500

// parseAge reads a positive number of days, such as 30d, or a duration, such as 12h.
func parseAge(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n > 0 && n <= maxAgeDays
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d > 0 && d <= maxAgeDays*24*time.Hour
}

package cli

import "github.com/spf13/cobra"

// ListOptions is a checked command line of list.
type ListOptions struct {
	StoreDir string // absolute
	All      bool   // settled Watches, too
	Output   Output
}

func newList(deps Deps) *cobra.Command {
	var storeDir onceFlag
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents in terminals and what may be done with each",
		Long:  "List every live agent in a terminal exactly once, its Session and Turn, and the active Watches. Types nothing.",
		Example: "  agent-knock-knock list\n" +
			"  agent-knock-knock list --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := storePath(storeDir.value, deps)
			if err != nil {
				return err
			}
			o := ListOptions{StoreDir: dir, All: all, Output: outputFor(cmd, asJSON, deps)}
			return deps.List(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.Var(&storeDir, "store-dir", "Store directory (default ~/.agent-knock-knock/store)")
	f.BoolVar(&all, "all", false, "show settled Watches, too")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

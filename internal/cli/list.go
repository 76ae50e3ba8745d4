package cli

import "github.com/spf13/cobra"

// ListOptions is a checked command line of list.
type ListOptions struct {
	StoreDir    string   // absolute
	TmuxSockets []string // absolute; none means every server of this user
	Output      Output
}

func newList(deps Deps) *cobra.Command {
	var storeDir onceFlag
	var sockets []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents in terminals and what may be done with each",
		Long:  "List every live agent in a terminal exactly once, its Session and its Turn. Types nothing.",
		Example: "  agent-knock-knock list\n" +
			"  agent-knock-knock list --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := storePath(storeDir.value, deps)
			if err != nil {
				return err
			}
			o := ListOptions{StoreDir: dir, Output: outputFor(cmd, asJSON, deps)}
			if o.TmuxSockets, err = socketPaths(sockets); err != nil {
				return err
			}
			return deps.List(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Var(&storeDir, "store-dir", "Store directory (default ~/.agent-knock-knock/store)")
	addSocketFlag(cmd, &sockets)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

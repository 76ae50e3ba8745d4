package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"
)

// CoordinationOptions is a checked command line of coordination mcp.
type CoordinationOptions struct {
	DB       string        // absolute, or "" for a ledger that ends with the process
	LeaseTTL time.Duration // 0 means the default
}

func newCoordination(deps Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "coordination",
		Short:   "Coordinate work among people and agents in a ledger",
		Long:    "The coordination ledger holds projects, work, assignments, evidence and handoffs. It runs nothing.",
		Example: "  agent-knock-knock coordination mcp --db ./ledger.db",
		Version: version.Version,
		Args:    cobra.ArbitraryArgs,
		RunE:    needCommand,
	}
	cmd.AddCommand(newCoordinationMCP(deps))
	return cmd
}

func newCoordinationMCP(deps Deps) *cobra.Command {
	var db onceFlag
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the ledger as MCP over stdio",
		Long: "Serve the coordination tools to the MCP client that started this process, until its stdin ends. Several processes\n" +
			"may serve one file. Without --db the ledger is in memory and ends with the process.",
		Example: "  agent-knock-knock coordination mcp --db ./ledger.db\n" +
			"  agent-knock-knock coordination mcp --db ./ledger.db --lease-ttl 15m",
		Version: version.Version,
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := absolute(db.value)
			if err != nil {
				return err
			}
			if cmd.Flag("lease-ttl").Changed && ttl <= 0 {
				return usage(cmd, "--lease-ttl must be above zero")
			}
			return deps.Coordination(cmd.Context(), CoordinationOptions{DB: path, LeaseTTL: ttl}, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Var(&db, "db", "ledger file, made when it is missing (default: in memory)")
	cmd.Flags().DurationVar(&ttl, "lease-ttl", 0, "term of a claim, rounded up to whole seconds (default 5m)")
	return cmd
}

// coordinationArgs lets -db and -version stand for --db and --version, as configurations of
// peers write them.
func coordinationArgs(args []string) []string {
	if len(args) < 2 || args[0] != "coordination" {
		return args
	}
	out := slices.Clone(args)
	for i, a := range out {
		if a == "-db" || a == "-version" || strings.HasPrefix(a, "-db=") {
			out[i] = "-" + a
		}
	}
	return out
}

// commandStatus is the exit code of a command line that failed: a wrong one of the ledger's
// server is 2, as it is of its peers, so that who starts it can tell it from a ledger that
// cannot be opened.
func commandStatus(args []string, err error) int {
	if len(args) > 0 && args[0] == "coordination" && fault.CodeOf(err) == CodeUsage {
		return 2
	}
	return exitStatus(err)
}

package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/version"
)

// CoordinationOptions is a checked command line of coordination mcp.
type CoordinationOptions struct {
	DB       string        // absolute, or "" for a ledger that ends with the process
	LeaseTTL time.Duration // 0 means the default
	Policy   ledgertools.Policy
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
	var policy ledgertools.Policy
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the ledger as MCP over stdio",
		Long: "Serve the coordination tools to the MCP client that started this process, until its stdin ends. Several processes\n" +
			"may serve one file. Without --db the ledger is in memory and ends with the process.\n" +
			"What the host switches off is not shown and cannot be called. Resources stay readable, whatever tools are left.",
		Example: "  agent-knock-knock coordination mcp --db ./ledger.db\n" +
			"  agent-knock-knock coordination mcp --db ./ledger.db --lease-ttl 15m\n" +
			"  agent-knock-knock coordination mcp --db ./ledger.db --read-only --no-view\n" +
			"  agent-knock-knock coordination mcp --db ./ledger.db --tools 'assignments.*,evidence.record' --tools coordination.capabilities",
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
			if _, err := policy.Offer(); err != nil { // now: the client is greeted before the ledger is opened
				return wrongPolicy(cmd, err)
			}
			return deps.Coordination(cmd.Context(), CoordinationOptions{DB: path, LeaseTTL: ttl, Policy: policy}, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Var(&db, "db", "ledger file, made when it is missing (default: in memory)")
	cmd.Flags().DurationVar(&ttl, "lease-ttl", 0, "term of a claim, rounded up to whole seconds (default 5m)")
	cmd.Flags().BoolVar(&policy.ReadOnly, "read-only", false, "serve only the tools that change nothing")
	cmd.Flags().Var((*toolNames)(&policy.Only), "tools", "serve only these tools, or families such as assignments.*; may be repeated (default: all)")
	cmd.Flags().BoolVar(&policy.NoView, "no-view", false, "do not offer the project's view to hosts that show apps")
	cmd.Flags().BoolVar(&policy.NoDiscovery, "no-skill-discovery", false, "do not serve skills.discover, the one tool that reads files")
	return cmd
}

// wrongPolicy is a list of tools that cannot be meant: only --tools can be wrong.
func wrongPolicy(cmd *cobra.Command, err error) error {
	if !fault.Is(err, fault.Invalid) {
		return err
	}
	_, msg, _ := fault.Public(err)
	return usage(cmd, "--tools: %s", msg)
}

// toolNames is a flag of names with commas between them. An empty value is an empty name, which
// no tool has: a variable that was not set must not serve every tool.
type toolNames []string

func (n *toolNames) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		*n = append(*n, strings.TrimSpace(name))
	}
	return nil
}

func (n *toolNames) String() string { return strings.Join(*n, ",") }

// Type is the word for the value in help texts.
func (n *toolNames) Type() string { return "NAME[,NAME...]" }

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

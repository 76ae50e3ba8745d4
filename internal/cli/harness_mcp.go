package cli

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/harness/client"
)

// HarnessMCPOptions is the checked start of harness mcp.
type HarnessMCPOptions struct {
	Settings client.Settings
	LogLevel slog.Level
}

func newHarnessMCP(deps Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools for headless agents as MCP over stdio",
		Long: "Serve the 13 tools for headless agents to the MCP client that started this process, until its stdin ends. The server behind\n" +
			"them is shared: one that answers at the address is used, and when nothing listens on a loopback address one is started in the\n" +
			"background at the first call. It outlives this process. There are no flags: the variables AKK_HARNESS_URL, _TIMEOUT_MS,\n" +
			"_AUTOSTART, _SERVER_ENTRY, _CONFIG, _STARTUP_TIMEOUT_MS, _MCP_CONFIG and _CLIENT_DIR (or the same with HARNESS_ACP_BRIDGE_)\n" +
			"configure it; see docs/HARNESS.md.",
		Example: "  agent-knock-knock harness mcp",
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			level, err := parseLevel(cmd, "", deps)
			if err != nil {
				return err
			}
			dir, err := os.Getwd()
			if err != nil {
				dir = "" // a relative setting is then refused by what uses it
			}
			home, _ := deps.LookupEnv(envHome)
			settings, err := client.Load(client.Source{LookupEnv: deps.LookupEnv, Dir: dir, Home: home})
			if err != nil {
				return err
			}
			return deps.HarnessMCP(cmd.Context(), HarnessMCPOptions{Settings: settings, LogLevel: level}, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

// newHarnessSupervise is the process between a background server and its log. People never
// call it, so help does not show it.
func newHarnessSupervise(deps Deps) *cobra.Command {
	return &cobra.Command{
		Use:     "supervise",
		Short:   "Keep the log of a server that harness mcp started",
		Long:    "Started by harness mcp, which says on stdin what to do. It starts the server, masks secrets in its output and appends the rest to a private log.",
		Example: "  agent-knock-knock harness supervise < order.json",
		Hidden:  true,
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return deps.HarnessSupervise(cmd.Context(), cmd.InOrStdin())
		},
	}
}

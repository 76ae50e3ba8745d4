package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/version"
)

// versionInfo is the JSON document of version.
type versionInfo struct {
	Version        string `json:"version"`
	Go             string `json:"go"`
	OS             string `json:"os"`
	Arch           string `json:"arch"`
	Wire           int    `json:"wire"`
	WriterProtocol int    `json:"writer_protocol"`
	// HarnessProtocol is the protocol of harness serve: clients ask for it before they start it.
	HarnessProtocol int `json:"harness_protocol"`
}

// versionArgs lets `--version --json` stand for `version --json`, also behind the name hacpd:
// it is how a client finds out what a program is.
func versionArgs(args []string) []string {
	if n := len(args); n >= 2 && args[n-2] == "--version" && args[n-1] == "--json" && (n == 2 || n == 4 && args[0] == "harness" && args[1] == "serve") {
		return []string{"version", "--json"}
	}
	return args
}

func newVersion(_ Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this build",
		Example: "  agent-knock-knock version --json",
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !asJSON {
				return writeAll(cmd.OutOrStdout(), fmt.Appendf(nil, "%s %s\n", Name, version.Version))
			}
			return writeJSON(cmd.OutOrStdout(), versionInfo{Version: version.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
				Wire: version.Wire, WriterProtocol: version.WriterProtocol, HarnessProtocol: client.Protocol})
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}
